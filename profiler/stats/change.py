"""Whether a series changed while it was measured, and from where on it is steady."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.records.record import Record
from profiler.stats.outliers import FAR, modified_z, robust_sigma
from profiler.stats.samples import Samples, checked, ratio_to

LEAST_EFFECT = 0.02
FALSE_ALARMS = 0.005
LEAST_FOR_STEADY = 8
_STEADY_P = 0.001


class Trend(Record):
    """How the last third of a series compares with the first, in the order they were made.

    `p_slower` and `p_faster` are one-sided. `change_at` is the index of the first sample after the largest change,
    null where the series did not change.
    """

    ratio: float
    p_slower: float
    p_faster: float
    slower: bool
    faster: bool
    change_at: int | None


def trend(samples: Sequence[float]) -> Trend:
    """Test whether samples rise or fall over the series by more than 2 %.

    Two rank tests, each one-sided and doubled for there being two (Bonferroni): Mann & Whitney, Annals of Mathematical
    Statistics 18(1), 1947, on the thirds, which sees steps; Mann, Econometrica 13(3), 1945, with Kendall's tau against
    the index, which sees drift. A direction is called at p < 0.005, so that a steady series raises an alarm in less
    than 1 %. Both hold samples for independent: neighbours that resemble each other raise more
    (`benchmarks/truth.py`). Raises InputError as `summarise` does, and for a median of zero in the first third.
    """
    values = checked(samples)
    third = max(1, values.size // 3)
    ratio = ratio_to(float(np.median(values[-third:])), float(np.median(values[:third])))
    p_slower, p_faster = _p_rising(values, third), _p_rising(-values, third)
    slower = p_slower < FALSE_ALARMS and ratio >= 1 + LEAST_EFFECT
    faster = p_faster < FALSE_ALARMS and ratio <= 1 / (1 + LEAST_EFFECT)
    return Trend(
        ratio=ratio,
        p_slower=p_slower,
        p_faster=p_faster,
        slower=slower,
        faster=faster,
        change_at=_change_at(values) if slower or faster else None,
    )


def steady_from(samples: Sequence[float]) -> int:
    """Return how many leading samples are slower than the rest: 0 where none are, never more than half.

    A start that is faster is no missing warm-up; `trend` tells of it. Raises InputError as `summarise` does.
    """
    values = checked(samples)
    if values.size < LEAST_FOR_STEADY:
        return 0
    return max(_leading_outliers(values), _slow_start(values))


def _p_rising(values: Samples, third: int) -> float:
    from scipy import stats as scipy_stats

    if values.min() == values.max():
        return 1.0
    thirds = scipy_stats.mannwhitneyu(values[-third:], values[:third], alternative="greater").pvalue
    whole = scipy_stats.kendalltau(np.arange(values.size), values, alternative="greater").pvalue
    return min(1.0, 2 * min(float(thirds), float(whole)))


def _change_at(values: Samples) -> int:
    """Return where the ranks before and after differ most: Pettitt, Applied Statistics 28(2), 1979."""
    from scipy.stats import rankdata

    before = np.cumsum(2 * rankdata(values) - (values.size + 1))[:-1]
    return int(np.abs(before).argmax()) + 1


def _leading_outliers(values: Samples) -> int:
    """Count the leading samples that are outliers upwards: one or two are too few for a rank test."""
    far = modified_z(values) > FAR
    return min(int(np.argmin(far)), values.size // 2)


def _slow_start(values: Samples) -> int:
    """Return White's truncation point, if the part before it is slower.

    White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), 1997.
    """
    from scipy.stats import mannwhitneyu

    cut = _truncation(values)
    before, after = values[:cut], values[cut:]
    if cut == 0 or np.median(before) < (1 + LEAST_EFFECT) * np.median(after):
        return 0
    return cut if mannwhitneyu(before, after, alternative="greater").pvalue < _STEADY_P else 0


def _truncation(values: Samples) -> int:
    """Return the cut, up to half, after which the mean's squared standard error is least (MSER).

    Outliers are drawn in to 3.5 robust standard deviations first, so that one does not decide the cut.
    """
    sigma = robust_sigma(values)
    centred = np.clip(values - np.median(values), -FAR * sigma, FAR * sigma)
    left = np.arange(values.size, 0, -1)
    sums, squares = (np.cumsum(powers[::-1])[::-1] for powers in (centred, centred**2))
    errors = (squares - sums**2 / left) / left**2
    return int(errors[: values.size // 2 + 1].argmin())

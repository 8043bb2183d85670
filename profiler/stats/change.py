"""Whether a series changed while it was measured, and from where on it is steady."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profiler.records.record import Record
from profiler.stats.outliers import FAR, modified_z
from profiler.stats.samples import Samples, checked, ratio_to

LEAST_FOR_TREND = 5
LEAST_FOR_STEADY = 8
TREND_EFFECT = 0.01
TREND_FALSE_ALARMS = 0.0085
STEADY_EFFECT = 0.02
STEADY_FALSE_ALARMS = 0.01


class Trend(Record):
    """How samples changed in the order they were made; `ratio` is the last third's median over the first's.

    `p_slower` and `p_faster` are one-sided. `change_at` is the index of the first sample after the largest change,
    null where there is neither.
    """

    ratio: float
    p_slower: float
    p_faster: float
    slower: bool
    faster: bool
    change_at: int | None


def trend(samples: Sequence[float]) -> Trend:
    """Tell whether samples rise or fall in the order they were made, by a per cent or more from third to third.

    Pearson's correlation with the index, one-sided, which is the most powerful unbiased test of a line in normal noise
    (Lehmann & Romano, Testing Statistical Hypotheses, 3rd ed. 2005, ch. 5) and sees steps as well. Each direction is
    called at p < 0.0085, so that a false alarm in less than 1 % of steady series can be shown (`benchmarks/truth.py`).
    Samples are held for independent: neighbours that resemble each other raise more. Raises InputError as `summarise`
    does, and for a median of zero in the first third.
    """
    values = checked(samples)
    third = max(1, values.size // 3)
    ratio = ratio_to(float(np.median(values[-third:])), float(np.median(values[:third])))
    p_slower, p_faster = _p_of_line(values)
    slower = p_slower < TREND_FALSE_ALARMS and ratio >= 1 + TREND_EFFECT
    faster = p_faster < TREND_FALSE_ALARMS and ratio <= 1 / (1 + TREND_EFFECT)
    return Trend(
        ratio=ratio,
        p_slower=p_slower,
        p_faster=p_faster,
        slower=slower,
        faster=faster,
        change_at=_change_at(values, slower) if slower or faster else None,
    )


def steady_from(samples: Sequence[float]) -> int:
    """Return how many leading samples are slower than the rest by 2 % or more: 0 where none are, at most half.

    A start that is faster is no missing warm-up; `trend` tells of it. Raises InputError as `summarise` does.
    """
    values = checked(samples)
    if values.size < LEAST_FOR_STEADY:
        return 0
    for lead in (_slow_start(values), _leading_outliers(values)):
        if lead and np.median(values[:lead]) >= (1 + STEADY_EFFECT) * np.median(values[lead:]):
            return lead
    return 0


def _p_of_line(values: Samples) -> tuple[float, float]:
    """Return the chances that a steady series rises, or falls, at least as clearly."""
    from scipy.stats import pearsonr

    places = _without_strays(values)
    heights = values[places] - np.median(values[places])  # scipy warns of what hardly varies around a large mean
    if values.size < LEAST_FOR_TREND or not heights.any():
        return 1.0, 1.0
    found = pearsonr(places, heights / np.ptp(heights), alternative="greater")
    return float(found.pvalue), float(1 - found.pvalue)


def _without_strays(values: Samples) -> npt.NDArray[np.intp]:
    """Return the places of all samples but outliers, unless these are more than a sixth and so no strays.

    Which samples are outliers does not depend on their order, so leaving them out adds no false alarms. A change
    shorter than a sixth does not move a third's median either.
    """
    near = np.flatnonzero(np.abs(modified_z(values)) <= FAR)
    return near if values.size - near.size <= values.size // 6 else np.arange(values.size)


def _change_at(values: Samples, rises: bool) -> int:
    contrast = _contrasts(values)
    return int((contrast.argmin() if rises else contrast.argmax()) + 1)


def _slow_start(values: Samples) -> int:
    """Return where samples before differ most from those after, if they are slower by a rank test.

    Mann & Whitney, Annals of Mathematical Statistics 18(1), 1947, with p multiplied by the number of places tried
    (Bonferroni), so that a steady series raises an alarm in at most 1 %.
    """
    from scipy.stats import mannwhitneyu

    half = values.size // 2
    cut = int(_contrasts(values)[:half].argmax()) + 1
    p_value = float(mannwhitneyu(values[:cut], values[cut:], alternative="greater").pvalue)
    return cut if p_value * half < STEADY_FALSE_ALARMS else 0


def _leading_outliers(values: Samples) -> int:
    """Count the leading samples that are outliers upwards, at most half: one or two are too few for a rank test."""
    return int(np.argmax(modified_z(values) <= FAR))


def _contrasts(values: Samples) -> Samples:
    """Return, for each place to cut, how far the ranks before lie above those after, in standard deviations.

    Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics 28(2), 1979.
    """
    from scipy.stats import rankdata

    before = np.arange(1, values.size)
    excess = np.cumsum(rankdata(values))[:-1] - before * (values.size + 1) / 2
    contrasts: Samples = excess / np.sqrt(before * (values.size - before) * (values.size + 1) / 12)
    return contrasts

"""Summaries of samples: quantiles, and intervals that say how they were made and what they can cover."""

from __future__ import annotations

import math
from collections.abc import Sequence

from profiler.errors import InputError
from profiler.records.record import Record
from profiler.stats.interval import LEAST_FOR_CONFIDENCE, Interval, median_interval, reachable_coverage
from profiler.stats.samples import checked, quantile

LEAST_FOR_P90 = 20
QUANTILE_METHOD = "linear (type 7)"


class Summary(Record):
    """What a set of samples says, in the samples' own unit; null where there are too few to say it.

    `ci95` is an interval for the median. `ci_reachable_coverage` is the most that any interval between two
    of the samples can cover: below 0.95 the 95 % of `ci95` is a name, not a promise.
    """

    n: int
    median: float
    p25: float | None
    p75: float | None
    p90: float | None
    ci95: Interval | None
    ci_method: str
    ci_reachable_coverage: float
    quantile_method: str = QUANTILE_METHOD


def summarise(samples: Sequence[float]) -> Summary:
    """Summarise non-negative samples such as durations or sizes. Raises InputError for none, NaN or negative ones.

    Quantiles interpolate linearly between order statistics, type 7 of Hyndman & Fan, "Sample quantiles in
    statistical packages", The American Statistician 50(4), 1996. One sample has no spread; p90 needs twenty, so
    that two lie above it.
    """
    values = checked(samples)
    quartiles = (quantile(values, 0.25), quantile(values, 0.75)) if values.size > 1 else (None, None)
    interval, method = median_interval(values)
    return Summary(
        n=values.size,
        median=quantile(values, 0.5),
        p25=quartiles[0],
        p75=quartiles[1],
        p90=quantile(values, 0.9) if values.size >= LEAST_FOR_P90 else None,
        ci95=interval,
        ci_method=method,
        ci_reachable_coverage=reachable_coverage(values.size),
    )


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Summary:
    """Summarise the ratios of pairs measured side by side, so that what drifts over a session cancels.

    The median of per-pair ratios, not the ratio of medians (Georges, Buytaert & Eeckhout, "Statistically rigorous
    Java performance evaluation", OOPSLA 2007, on why comparisons need intervals; Kalibera & Jones, "Rigorous
    benchmarking in reasonable time", ISMM 2013, on reporting ratios). Raises InputError for unequal lengths or a
    zero below the line.
    """
    above, below = checked(numerators), checked(denominators)
    if above.size != below.size:
        raise InputError(f"pairs need as many samples on both sides, got {above.size} and {below.size}")
    if not below.all():
        raise InputError("a ratio to a sample of zero says nothing", hint="Leave that pair out and count it.")
    return summarise((above / below).tolist())


def needed_n(samples: Sequence[float], share: float) -> int | None:
    """Return about how many samples would bring the interval to ± `share` of the median; null where none tells.

    An interval for a median shrinks with 1/√n (Serfling, Approximation Theorems of Mathematical Statistics, 1980,
    section 2.3). Never fewer than the six that a 95 % interval needs. Raises InputError as `summarise` does, and for
    a share that is not above zero.
    """
    if not share > 0:
        raise InputError(f"a share of the median is above zero, got {share}")
    summary = summarise(samples)
    if summary.ci95 is None or summary.median == 0:
        return None
    half_width = (summary.ci95[1] - summary.ci95[0]) / 2
    return max(LEAST_FOR_CONFIDENCE, math.ceil(summary.n * (half_width / summary.median / share) ** 2))

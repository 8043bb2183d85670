"""Summaries of samples: quantiles, and intervals that say how they were made and what they can cover."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profiler.errors import InputError
from profiler.records.record import Record

RESAMPLES = 9999
SEED = 20_240_601
LEAST_FOR_P90 = 20
LEAST_FOR_INTERVAL = 3
QUANTILE_METHOD = "linear (type 7)"
_BATCH_ELEMENTS = 1_000_000

Samples = npt.NDArray[np.float64]
Interval = tuple[float, float]


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
    values = _checked(samples)
    quartiles = (_quantile(values, 0.25), _quantile(values, 0.75)) if values.size > 1 else (None, None)
    interval, method = _median_interval(values)
    return Summary(
        n=values.size,
        median=_quantile(values, 0.5),
        p25=quartiles[0],
        p75=quartiles[1],
        p90=_quantile(values, 0.9) if values.size >= LEAST_FOR_P90 else None,
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
    above, below = _checked(numerators), _checked(denominators)
    if above.size != below.size:
        raise InputError(f"pairs need as many samples on both sides, got {above.size} and {below.size}")
    if not below.all():
        raise InputError("a ratio to a sample of zero says nothing", hint="Leave that pair out and count it.")
    return summarise((above / below).tolist())


def reachable_coverage(n: int) -> float:
    """Return the chance that the median lies between the smallest and largest of n samples: 1 − 2 · (1/2)ⁿ.

    Each sample falls below the median with chance 1/2, so all n fall on one side with 2 · (1/2)ⁿ (David & Nagaraja,
    Order Statistics, 3rd ed. 2003, ch. 7). A bootstrap median never leaves that range, so at n = 3, 4, 5 no
    interval made from it covers more than 75, 87.5, 93.75 %.
    """
    return 1.0 - 2.0 * 0.5**n


def _checked(samples: Sequence[float]) -> Samples:
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise InputError("there are no samples to summarise")
    if values.ndim != 1:
        raise InputError(f"samples are one list of numbers, not an array of shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        wrong = next(value for value in values.tolist() if not math.isfinite(value) or value < 0)
        raise InputError(f"samples are finite and not negative, got {wrong}", hint="A failed attempt is not a sample.")
    return values


def _quantile(values: Samples, share: float) -> float:
    return float(np.quantile(values, share, method="linear"))


def _median_interval(values: Samples) -> tuple[Interval | None, str]:
    """Bootstrap the median, percentile method with a fixed seed.

    Efron & Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13. On log-normal latencies it covers 91 to 95 %
    for six samples and more, and what can be reached for fewer (`benchmarks/interval_coverage.py`). Not BCa: its
    acceleration comes from the jackknife, which fails for the median (same book, ch. 11).
    """
    if values.size < LEAST_FOR_INTERVAL:
        return None, f"none: n < {LEAST_FOR_INTERVAL}"
    if values.min() == values.max():  # scipy calls this degenerate and answers NaN
        return (float(values[0]), float(values[0])), "all samples equal"
    return _bootstrap(values), f"bootstrap percentile, {RESAMPLES} resamples"


def _bootstrap(values: Samples) -> Interval:
    from scipy import stats as scipy_stats  # a second to import; only callers with samples wait for it

    result = scipy_stats.bootstrap(
        (values,),
        np.median,
        n_resamples=RESAMPLES,
        batch=max(1, _BATCH_ELEMENTS // values.size),
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)

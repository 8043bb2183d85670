"""The ratio of two medians with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.records.record import Record
from profiler.stats.interval import CONFIDENCE, LEAST_FOR_INTERVAL, Interval
from profiler.stats.samples import Samples, checked, ratio_to

RESAMPLES = 9999
LEAST_RESAMPLES = 999
SEED = 20_240_601
_ELEMENTS = 20_000_000
_BATCH_ELEMENTS = 1_000_000


class Ratio(Record):
    """A ratio of medians of two sets of samples that are not paired; no interval below three samples on a side."""

    ratio: float
    ci95: Interval | None
    n_above: int
    n_below: int


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Divide the median of `above` by that of `below`, with an interval.

    Percentile bootstrap of both sides (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13 and 16).
    Raises InputError as `summarise` does, and for a median of zero below the line.
    """
    upper, lower = checked(above), checked(below)
    few = min(upper.size, lower.size) < LEAST_FOR_INTERVAL
    return Ratio(
        ratio=ratio_to(float(np.median(upper)), float(np.median(lower))),
        ci95=None if few or not lower.all() else _interval(upper, lower),
        n_above=upper.size,
        n_below=lower.size,
    )


def _interval(upper: Samples, lower: Samples) -> Interval:
    if upper.min() == upper.max() and lower.min() == lower.max():  # scipy calls this degenerate and answers NaN
        return float(upper[0] / lower[0]), float(upper[0] / lower[0])
    from scipy import stats as scipy_stats

    elements = upper.size + lower.size
    found = scipy_stats.bootstrap(
        (upper, lower),
        _ratio_along,
        n_resamples=min(RESAMPLES, max(LEAST_RESAMPLES, _ELEMENTS // elements)),
        batch=max(1, _BATCH_ELEMENTS // elements),
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    # No resampled ratio lies outside of the extreme ones; the percentile's interpolation may, by its last digit.
    low, high = np.clip((found.low, found.high), upper.min() / lower.max(), upper.max() / lower.min())
    return float(low), float(high)


def _ratio_along(upper: Samples, lower: Samples, axis: int) -> Samples:
    ratio: Samples = np.median(upper, axis=axis) / np.median(lower, axis=axis)
    return ratio

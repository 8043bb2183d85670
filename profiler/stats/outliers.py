"""Samples far from the rest, by the modified z-score.

Iglewicz & Hoaglin, How to Detect and Handle Outliers, ASQC Basic References in Quality Control 16, 1993.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.stats.samples import Samples, checked

FAR = 3.5
LEAST_FOR_OUTLIERS = 5
_MAD_OF_NORMAL = 0.6745
_MEAN_DEVIATION_TO_SIGMA = 1.253314


def outliers(samples: Sequence[float]) -> tuple[int, ...]:
    """Return the places of outliers: 0.6745 · |x − median| / MAD above 3.5.

    None among fewer than five samples, where the MAD is the distance of one or two. Small sets of clean samples are
    flagged more often than large ones: 5 % of samples at n = 5, 0.7 % at n = 20, so one in ten clean series of twenty
    has a flag (`benchmarks/truth.py`). Raises InputError as `summarise` does.
    """
    values = checked(samples)
    if values.size < LEAST_FOR_OUTLIERS:
        return ()
    return tuple(np.flatnonzero(np.abs(modified_z(values)) > FAR).tolist())


def modified_z(values: Samples) -> Samples:
    """Return each sample's distance from the median in robust standard deviations, 0 where these are 0."""
    distances: Samples = values - np.median(values)
    with np.errstate(over="ignore"):  # infinitely far is far
        return distances / (robust_sigma(values) or np.inf)


def robust_sigma(values: Samples) -> float:
    """Return MAD / 0.6745, the standard deviation of what is normal but for outliers.

    Where more than half of the samples are equal the MAD is 0, and the mean absolute deviation stands in for it.
    """
    from scipy.stats import median_abs_deviation

    sigma = float(median_abs_deviation(values)) / _MAD_OF_NORMAL
    return sigma or float(np.abs(values - np.median(values)).mean()) * _MEAN_DEVIATION_TO_SIGMA

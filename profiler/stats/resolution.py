"""The step of a coarse clock, found in the samples themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.stats.samples import checked

LEAST_REPEATED = 2
REPEATED_SHARE = 0.1
_TOLERANCE_STEPS = 0.01


def resolution(samples: Sequence[float]) -> float | None:
    """Return the smallest difference between samples if they look counted in steps of it, null if they do not.

    They do where a tenth of them, and two at least, repeat another one and every difference is a whole number of
    steps, to a hundredth of a step. Raises InputError as `summarise` does.
    """
    values = checked(samples)
    distinct = np.unique(values)
    repeated = values.size - distinct.size
    if distinct.size < 2 or repeated < max(LEAST_REPEATED, REPEATED_SHARE * values.size):
        return None
    gaps = np.diff(distinct)
    steps = gaps / gaps.min()
    return float(gaps.min()) if np.abs(steps - np.round(steps)).max() <= _TOLERANCE_STEPS else None

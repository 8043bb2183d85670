"""What counts as samples: one list of numbers, finite and not negative."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profiler.errors import InputError

Samples = npt.NDArray[np.float64]


def checked(samples: Sequence[float]) -> Samples:
    """Return samples as an array. Raises InputError for none, NaN, infinite or negative ones."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise InputError("there are no samples to summarise")
    if values.ndim != 1:
        raise InputError(f"samples are one list of numbers, not an array of shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        wrong = next(value for value in values.tolist() if not math.isfinite(value) or value < 0)
        raise InputError(f"samples are finite and not negative, got {wrong}", hint="A failed attempt is not a sample.")
    return values


def quantile(values: Samples, share: float) -> float:
    """Return a quantile by type 7 of Hyndman & Fan 1996, which interpolates linearly between order statistics."""
    return float(np.quantile(values, share, method="linear"))


def ratio_to(above: float, below: float) -> float:
    """Divide one median by another. Raises InputError where the lower one is zero."""
    if below == 0:
        raise InputError("a ratio to a median of zero says nothing", hint="The clock is too coarse for these samples.")
    return above / below

"""Latency over the time of a sustained run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.errors import InputError
from profiler.records.summary import CurvePoint
from profiler.stats.samples import Samples, checked, quantile

LEAST_A_SLICE = 3


def curve(start_s: Sequence[float], durations: Sequence[float], slices: int = 12) -> tuple[CurvePoint, ...]:
    """Return median and quartiles over equal slices of the time in which images began; empty slices are left out.

    Fewer slices where a slice would hold fewer than three images on average. `start_s` in seconds from any moment,
    `durations` in ns. Raises InputError as `summarise` does, and for unequal lengths.
    """
    starts, values = checked(start_s), checked(durations)
    if starts.size != values.size:
        raise InputError(f"each duration needs its start, got {values.size} durations and {starts.size} starts")
    starts = starts - starts.min()
    count = max(1, min(slices, values.size // LEAST_A_SLICE))
    edges = np.linspace(0.0, starts.max(), count + 1)
    slice_of = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, count - 1)
    return tuple(_point(edges[k : k + 2], values[slice_of == k]) for k in np.unique(slice_of).tolist())


def _point(edges: Samples, values: Samples) -> CurvePoint:
    quartiles = (quantile(values, 0.25), quantile(values, 0.75)) if values.size > 1 else (None, None)
    return CurvePoint(
        start_s=float(edges[0]),
        end_s=float(edges[1]),
        n=values.size,
        median_ns=quantile(values, 0.5),
        p25_ns=quartiles[0],
        p75_ns=quartiles[1],
    )

"""Simulated series whose truth is known: noise around 1 that is multiplied by how the truth goes, one series a row."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import signal
from scipy import stats as scipy_stats

Rows = npt.NDArray[np.float64]
Noise = Literal["normal", "log-normal", "wide log-normal", "outliers", "AR(1) 0.3"]
Change = Literal["none", "step", "late step", "drift", "throttle"]

CONTINUOUS: tuple[Noise, ...] = ("normal", "wide log-normal", "outliers")
CLEAN: tuple[Noise, ...] = ("normal", "log-normal", "wide log-normal")
NARROW: tuple[Noise, ...] = ("normal", "log-normal", "outliers")

SPREAD, WIDE = 0.03, 0.2
OUTLIER_SHARE, OUTLIER_FACTOR = 0.02, 3.0
SLOWDOWN = 0.1
CORRELATION = 0.3
_RUN_IN = 50


def noise(kind: Noise, trials: int, n: int, random: np.random.Generator) -> Rows:
    """Draw rows of noise around 1; 3 % where it is not wide, and outliers are 2 % of samples at three times."""
    if kind == "normal":
        return 1 + SPREAD * random.standard_normal((trials, n))
    if kind == "AR(1) 0.3":
        return 1 + SPREAD * _correlated(trials, n, random)
    rows = random.lognormal(0.0, WIDE if kind == "wide log-normal" else SPREAD, (trials, n))
    return (
        np.where(random.random((trials, n)) < OUTLIER_SHARE, OUTLIER_FACTOR, 1.0) * rows if kind == "outliers" else rows
    )


def true_median(kind: Noise) -> float:
    """Return the median of what `noise` draws from; outliers move it a little."""
    if kind != "outliers":
        return 1.0
    return float(np.exp(SPREAD * scipy_stats.norm.ppf(0.5 / (1 - OUTLIER_SHARE))))


def change(kind: Change, trials: int, n: int, random: np.random.Generator) -> Rows:
    """Return rows that go from 1 to 1.1: at a random place in the middle or last third, evenly, or as heat builds up.

    A throttling phone nears its slower state exponentially, here with a quarter of the series as time constant.
    """
    place, third = np.arange(n), max(1, n // 3)
    match kind:
        case "none":
            share = np.zeros((trials, n))
        case "step":
            share = _after(random.integers(third, n - third + 1, trials), n)
        case "late step":
            share = _after(random.integers(n - third, n - max(1, n // 10) + 1, trials), n)
        case "drift":
            share = np.broadcast_to(place / (n - 1), (trials, n))
        case "throttle":
            share = np.broadcast_to(1 - np.exp(-4 * place / n), (trials, n))
    return 1 + SLOWDOWN * share


def _after(places: npt.NDArray[np.int64], n: int) -> Rows:
    return (np.arange(n) >= places[:, np.newaxis]).astype(np.float64)


def ticked(trials: int, n: int, random: np.random.Generator, spread: float = SPREAD) -> tuple[Rows, Rows]:
    """Return milliseconds around 50 on a clock that counts whole ones, and each row's true median.

    The median lies anywhere between two ticks, as it does for a program that nobody fitted to the clock.
    """
    medians = 50 + random.random((trials, 1))
    return np.round(medians * random.lognormal(0.0, spread, (trials, n))), medians[:, 0]


def _correlated(trials: int, n: int, random: np.random.Generator) -> Rows:
    """Return standard normal rows in which each sample takes 0.3 of the one before, after a run-in."""
    steps = random.standard_normal((trials, n + _RUN_IN)) * np.sqrt(1 - CORRELATION**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -CORRELATION], steps, axis=1)[:, _RUN_IN:])

"""From gauge readings to the energy of the timed images, or the reason why it cannot be known.

Energy is the integral of voltage times current. Phones disagree on the unit and sign of their current, so both are
found by comparing it with the fall of the charge counter, whose unit Android fixes (µAh); never by its magnitude.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profiler.meter_checks import Series, Unknown, check_fall, check_power, check_rise
from profiler.quantities import NS_PER_S
from profiler.records.event import EnvironmentSample
from profiler.records.run import Energy, IterationSample

Span = tuple[int, int]

LEAST_READINGS = 10
LEAST_WINDOW_S = 60.0
_FINE_STEPS = 50  # with fewer the counter's own steps are an error of per cents
_AGREEMENT = 0.15
_FACTORS = (1.0, -1.0, 1000.0, -1000.0)
_WORDS = {1.0: "µA, positive", -1.0: "µA, negative", 1000.0: "mA, positive", -1000.0: "mA, negative"}
_MICROAMPERE_SECONDS = 3600.0  # in one µAh

PLUGGED = "the device was on external power, so its battery tells nothing; measure with --untethered"
SHORT = (
    f"energy needs {LEAST_WINDOW_S:.0f} s of timed images, or {LEAST_READINGS} readings of a gauge among them: "
    "use --protocol sustained, or more --repeats"
)
NO_GAUGE = "the device tells neither its battery's current and charge nor what its parts draw"
NO_VOLTAGE = "the device does not tell its battery's voltage, without which charge is no energy"
UNCALIBRATED = "the unit and sign of the battery's current are unknown: no charge counter moved to check them by"


class Window(NamedTuple):
    """Timed images that count, and the time from the first one's start to the last one's end."""

    start_ns: int
    end_ns: int
    images: int

    @property
    def seconds(self) -> float:
        """Return its length."""
        return (self.end_ns - self.start_ns) / NS_PER_S


class Found(NamedTuple):
    """Energy by every meter that could be read, the one to quote first, or the reason why there is none."""

    by_meter: tuple[Energy, ...]
    reason: str | None


def energy(
    images: Sequence[IterationSample],
    samples: Sequence[EnvironmentSample],
    rest: Span | None,
    *,
    no_battery: str | None = None,
) -> Found:
    """Return what the timed images drew; `rest` is when the device idled before them, in boot ns.

    `no_battery` is why nothing that the battery says can be believed.
    """
    if not images:
        return Found((), "no image was timed")
    found: list[Energy] = []
    reasons = [] if no_battery is None else [no_battery]
    for meter in (_power_rails, _battery) if no_battery is None else (_power_rails,):
        try:
            found += meter(images, samples, rest)
        except Unknown as unknown:
            reasons.append(str(unknown))
    told = [reason for reason in dict.fromkeys(reasons) if reason != NO_GAUGE] or [NO_GAUGE]
    return Found(tuple(found), None if found else "; ".join(told))


def _power_rails(
    images: Sequence[IterationSample], samples: Sequence[EnvironmentSample], rest: Span | None
) -> list[Energy]:
    told = [(s.device_boot_ns, s.energy_microwattseconds_by_rail) for s in samples if s.energy_microwattseconds_by_rail]
    if not told:
        raise Unknown(NO_GAUGE)
    rails = _usual_rails([rail for _, rail in told])
    told = [(moment, rail) for moment, rail in told if rail.keys() >= rails]  # one may be left out now and then
    times = _seconds([moment for moment, _ in told])
    total = np.array([sum(rail[name] for name in rails) for _, rail in told]) * 1e-6
    window = _window(images, (told[0][0], told[-1][0]))
    readings = _check_enough(window, _changes(times, total, window))
    check_rise([rail for _, rail in told[_around(times, window)]], sorted(rails))
    counted = Energy(
        source="power_rails",
        joules=_grown(times, total, window),
        images=window.images,
        window_s=window.seconds,
        readings=readings,
        rest_watts=_watts(lambda span: _grown(times, total, span), times, total, rest),
        evidence=f"{len(rails)} rails",
    )
    return [counted]


def _usual_rails(readings: Sequence[Mapping[str, int]]) -> frozenset[str]:
    counts = Counter(frozenset(reading) for reading in readings)
    return max(counts, key=lambda rails: (counts[rails], len(rails)))


def _around(times: Series, window: Window) -> slice:
    """Return which readings enclose a window."""
    first = int(np.searchsorted(times, window.start_ns / NS_PER_S, side="right")) - 1
    return slice(max(first, 0), int(np.searchsorted(times, window.end_ns / NS_PER_S)) + 1)


def _battery(
    images: Sequence[IterationSample], samples: Sequence[EnvironmentSample], rest: Span | None
) -> list[Energy]:
    unplugged = _unplugged(samples)
    held = [s for s in unplugged if s.battery_voltage_millivolts]
    current = [s for s in held if s.battery_current_raw]  # a device that works draws something: 0 is no reading
    if not any(s.battery_current_raw is not None or s.battery_charge_counter_microamperehours for s in samples):
        raise Unknown(NO_GAUGE)
    if not held:
        raise Unknown(NO_VOLTAGE if unplugged else PLUGGED)
    window = _window(images, (held[0].device_boot_ns, held[-1].device_boot_ns))
    counter = _Counter(held)
    check_fall(*counter.steps(window)[:2])
    gauge = _Current(current) if current else None
    factor = gauge.factor(counter, window) if gauge is not None else None
    meters = [counter.energy(window, rest, gauge, factor)]
    if gauge is not None:
        meters.append(gauge.energy(window, rest, counter, factor))
    known = [meter for meter in meters if meter is not None]
    if not known:
        raise Unknown(SHORT if counter.moves(window) else UNCALIBRATED)
    for meter in known:
        check_power(meter.joules, meter.window_s)
    return sorted(known, key=lambda meter: meter.source == "charge_counter" and meter.readings < _FINE_STEPS)


def _unplugged(samples: Sequence[EnvironmentSample]) -> list[EnvironmentSample]:
    """Return the longest stretch of readings without external power."""
    longest: list[EnvironmentSample] = []
    stretch: list[EnvironmentSample] = []
    for sample in samples:
        stretch = [*stretch, sample] if sample.external_power is False else []
        longest = max(longest, stretch, key=len)
    return longest


def _window(images: Sequence[IterationSample], within: Span) -> Window:
    """Return the images that lie wholly within. Raises Unknown where there are none."""
    inside = [i for i in images if within[0] <= i.start_boot_ns and i.start_boot_ns + i.duration_ns <= within[1]]
    if not inside:
        raise Unknown(PLUGGED)
    return Window(inside[0].start_boot_ns, inside[-1].start_boot_ns + inside[-1].duration_ns, len(inside))


class _Counter:
    """The battery's charge counter and voltage over time."""

    def __init__(self, samples: Sequence[EnvironmentSample]) -> None:
        told = [s for s in samples if s.battery_charge_counter_microamperehours]
        self.times = _seconds([s.device_boot_ns for s in told])
        self.charge = np.array([s.battery_charge_counter_microamperehours for s in told], dtype=np.float64)
        self.volts = np.array([s.battery_voltage_millivolts for s in told], dtype=np.float64) / 1000

    def moves(self, window: Window) -> bool:
        """Tell whether it fell often enough within a window to check a current by."""
        return len(self.steps(window)[0]) > 2

    def steps(self, window: Window) -> tuple[Series, Series, Series]:
        """Return the moments at which it changed, its new values, and the voltage then."""
        chosen = _changes(self.times, self.charge, window)
        return self.times[chosen], self.charge[chosen], self.volts[chosen]

    def energy(self, window: Window, rest: Span | None, gauge: _Current | None, factor: float | None) -> Energy | None:
        """Return its energy, where it moved often enough and no current contradicts it. Raises Unknown."""
        times, charge, _ = self.steps(window)
        if len(times) < LEAST_READINGS:
            return None
        against = "nothing else to check it by" if gauge is None else f"the current agrees, {_WORDS[factor or 1.0]}"
        return Energy(
            source="charge_counter",
            joules=self.joules(window),
            images=window.images,
            window_s=window.seconds,
            readings=len(times),
            rest_watts=_watts(self.joules, self.times, self.charge, rest),
            evidence=f"it fell by {charge[0] - charge[-1]:.0f} µAh; {against}"
            + (" while charging" if gauge is not None else ""),
        )

    def joules(self, window: Window) -> float:
        """Return the energy of a window as the fall between its steps, led on to its ends."""
        times, charge, volts = self.steps(window)
        middle = (volts[1:] + volts[:-1]) / 2
        between = float(np.sum(-np.diff(charge) * 1e-6 * _MICROAMPERE_SECONDS * middle))
        return between * window.seconds / float(times[-1] - times[0])


class _Current:
    """The battery's current, of unknown unit and sign, and voltage over time."""

    def __init__(self, samples: Sequence[EnvironmentSample]) -> None:
        self.times = _seconds([s.device_boot_ns for s in samples])
        self.raw = np.array([s.battery_current_raw for s in samples], dtype=np.float64)
        self.volts = np.array([s.battery_voltage_millivolts for s in samples], dtype=np.float64) / 1000

    def factor(self, counter: _Counter, window: Window) -> float | None:
        """Return what makes the raw current microamperes, positive while charging; None where nothing tells.

        Raises Unknown where current and charge counter contradict each other.
        """
        if not counter.moves(window):
            return None
        times, charge, _ = counter.steps(window)
        true = float(charge[-1] - charge[0]) * _MICROAMPERE_SECONDS / float(times[-1] - times[0])
        raw = _mean(self.times, self.raw, float(times[0]), float(times[-1]))
        for factor in _FACTORS:
            if raw and abs(true / (raw * factor) - 1) <= _AGREEMENT:
                return factor
        raise Unknown(
            f"the battery's current ({raw:.4g} as told) and its charge counter (a mean of {true:.4g} µA) contradict "
            "each other: neither can be trusted"
        )

    def energy(self, window: Window, rest: Span | None, counter: _Counter, factor: float | None) -> Energy | None:
        """Return its energy, where its unit and sign are known and it was read often enough."""
        if factor is None:
            return None
        readings = len(_changes(self.times, self.raw, window)) + 1
        if window.seconds < LEAST_WINDOW_S and readings < LEAST_READINGS:
            return None
        _, charge, _ = counter.steps(window)

        def joules(span: Window) -> float:
            watts = -self.raw * factor * 1e-6 * self.volts
            return _mean(self.times, watts, span.start_ns / NS_PER_S, span.end_ns / NS_PER_S) * span.seconds

        return Energy(
            source="battery_current",
            joules=joules(window),
            images=window.images,
            window_s=window.seconds,
            readings=readings,
            rest_watts=_watts(joules, self.times, self.raw, rest),
            evidence=f"{_WORDS[factor]} while charging, by the charge counter, which fell by "
            f"{charge[0] - charge[-1]:.0f} µAh",
        )


def _seconds(moments_ns: Sequence[int]) -> Series:
    return np.array(moments_ns, dtype=np.float64) / NS_PER_S


def _changes(times: Series, values: Series, window: Window) -> npt.NDArray[np.intp]:
    """Return where a gauge's value within a window differs from the one before."""
    changed = np.flatnonzero(np.diff(values)) + 1
    inside = (times[changed] >= window.start_ns / NS_PER_S) & (times[changed] <= window.end_ns / NS_PER_S)
    return changed[inside]


def _check_enough(window: Window, changes: npt.NDArray[np.intp]) -> int:
    if window.seconds < LEAST_WINDOW_S and len(changes) < LEAST_READINGS:
        raise Unknown(SHORT)
    return len(changes)


def _grown(times: Series, total: Series, window: Window) -> float:
    ends = np.interp([window.start_ns / NS_PER_S, window.end_ns / NS_PER_S], times, total)
    return float(ends[1] - ends[0])


def _mean(times: Series, values: Series, start_s: float, end_s: float) -> float:
    """Return the mean of a gauge that holds each value until the next reading."""
    edges = np.clip(np.append(times, max(end_s, times[-1])), start_s, end_s)
    held = np.diff(edges)
    if not held.sum():
        return float(values[np.searchsorted(times, start_s, side="right") - 1])
    return float(np.sum(values * held) / held.sum())


def _watts(joules: Callable[[Window], float], times: Series, values: Series, rest: Span | None) -> float | None:
    """Return the power at rest by the same meter; None without a rest, or where the meter hardly moved then."""
    if rest is None:
        return None
    window = Window(*rest, images=0)
    if len(_changes(times, values, window)) < 2 or window.seconds <= 0:
        return None
    watts = joules(window) / window.seconds
    return watts if watts > 0 else None

"""What really happened in the phone: a benchmark compares with it, the product never sees it."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

from tests.phones.heat import Temperatures
from tests.phones.memory import Process
from tests.phones.model_physics import TICK_NS, Energy, Physics, Power

# Half a second: no temperature moves by 0.1 °C in it, the die's aside.
_TEMPERATURE_TICKS = 10
_FEMTO = 1e15


class Done(NamedTuple):
    """One load or call; `duration_ns` is what it really took, `cut` that it was not waited for."""

    kind: Literal["load", "call", "canary"]
    component: str
    function: str
    start_ns: int
    duration_ns: int
    cut: bool = False


class Throttled(NamedTuple):
    """The moment from which cores ran at `clock` of their maximum."""

    moment_ns: int
    clock: float


class Killed(NamedTuple):
    """The moment at which a process was killed, and by what."""

    moment_ns: int
    pid: int
    why: str


class Peak(NamedTuple):
    """The highest resident memory of a process and the highest sum of resident and swapped memory."""

    resident_bytes: int
    resident_and_swapped_bytes: int


class JoulesDrawn(NamedTuple):
    """Energy at the phone's terminals, and the part of it that work added to the idle phone."""

    total: float
    above_idle: float


class Truth:
    """The record of one phone; every moment is model time, which equals its boot clock until it reboots."""

    def __init__(self, physics: Physics) -> None:
        self.done: list[Done] = []
        self.throttled: list[Throttled] = []
        self.kills: list[Killed] = []
        self.peaks: dict[int, Peak] = {}
        self._clock = physics.throttle_clock()
        self._power: Power | None = None
        self._changes = array("q")
        self._energies: list[Energy] = []
        self._powers: list[Power] = []
        self._moments = array("q", [physics.now_ns])
        self._temperatures: list[Temperatures] = [physics.temperatures]
        self.before_spending(physics)

    def before_spending(self, physics: Physics) -> None:
        """Note a new power and a new clock, from now on."""
        if (power := physics.power()) != self._power:
            self._power = power
            self._changes.append(physics.now_ns)
            self._energies.append(physics.energy)
            self._powers.append(power)
        if (clock := physics.throttle_clock()) != self._clock:
            self._clock = clock
            self.throttled.append(Throttled(physics.now_ns, clock))

    def after_tick(self, physics: Physics) -> None:
        """Note the temperatures now and then."""
        if (physics.now_ns // TICK_NS) % _TEMPERATURE_TICKS == 0:
            self._moments.append(physics.now_ns)
            self._temperatures.append(physics.temperatures)

    def note_memory(self, process: Process) -> None:
        """Note what a process held at most until now."""
        self.peaks[process.pid] = Peak(process.high_water_bytes, process.peak_bytes)

    def temperatures_at(self, moment_ns: int) -> Temperatures:
        """Return the temperatures at a moment, from the half second that it lies in."""
        at = max(1, bisect_right(self._moments, moment_ns))
        return self._temperatures[at - 1]

    def temperatures(self) -> Iterator[tuple[int, Temperatures]]:
        """Yield (moment, temperatures) in order, two a second."""
        return zip(self._moments, self._temperatures, strict=True)

    def energy_between(self, start_ns: int, end_ns: int) -> JoulesDrawn:
        """Return what was drawn between two moments; exact, the end must have been reached."""
        start, end = self._energy_at(start_ns), self._energy_at(end_ns)
        return JoulesDrawn((end.total - start.total) / _FEMTO, (end.work - start.work) / _FEMTO)

    def throttle_onsets_ns(self) -> list[int]:
        """Return the moments at which the clock first fell below its maximum, again after each full recovery."""
        before, found = 1.0, []
        for moment_ns, clock in self.throttled:
            if before == 1.0 and clock < 1.0:
                found.append(moment_ns)
            before = clock
        return found

    def iterations_ns(self, first_component: str, *, since_ns: int = 0) -> list[int]:
        """Return the latency of each run through the plan, which begins with a call of `first_component`.

        Each lasts from the start of that call to the end of the last call before the next one; loads that lie
        between belong to it, those after its last call do not. Canaries belong to none.
        """
        ends: list[int] = []
        starts: list[int] = []
        previous = ""
        for done in self.done:
            if done.kind == "call" and done.start_ns >= since_ns:
                # A second branch of guidance calls the first component again: still the same run.
                if done.component == first_component and previous != first_component:
                    starts.append(done.start_ns)
                    ends.append(0)
                if ends:
                    ends[-1] = done.start_ns + done.duration_ns
                previous = done.component
        return [end - start for start, end in zip(starts, ends, strict=True)]

    def _energy_at(self, moment_ns: int) -> Energy:
        at = max(1, bisect_right(self._changes, moment_ns)) - 1
        gone_ns = max(0, moment_ns - self._changes[at])
        energy, power = self._energies[at], self._powers[at]
        return Energy(*(base + rate * gone_ns for base, rate in zip(energy, power, strict=True)))

"""The parts of one phone, and how they act on each other while time passes."""

from __future__ import annotations

from tests.phones.memory import MemoryLedger
from tests.phones.model_physics import TICK_NS, Physics
from tests.phones.model_processes import Processes
from tests.phones.model_reported import Reported
from tests.phones.model_screen import Screen, Settings
from tests.phones.model_work import Workbench
from tests.phones.personas import Persona
from tests.phones.storage import Storage
from tests.phones.truth import Truth

_SCREEN_TICKS = 10


class PhoneState:
    """One phone at one moment; knows nothing of clocks, threads and the world outside.

    Moments are model time: nanoseconds that never jump and equal the boot clock until the first reboot.
    """

    def __init__(self, persona: Persona, *, seed: int, start_ns: int, wall_ns: int) -> None:
        self.persona = persona
        self.physics = Physics(persona, start_ns)
        self.truth = Truth(self.physics)
        self.memory = MemoryLedger(persona.memory)
        self.storage = Storage(persona.storage)
        self.settings = Settings(persona)
        self.screen = Screen(persona, start_ns)
        self.processes = Processes(persona, self.memory, self.truth)
        self.reported = Reported(persona, self.physics, seed)
        self.work = Workbench(persona.work, self.physics, self.memory, self.truth, seed)
        self.boots = 0
        self._wall_minus_model_ns = wall_ns - start_ns
        self._booted_ns = 0
        self.settle_power()

    def boot_ns(self) -> int:
        """Return the phone's boot clock as it stands; `present` moves a free-running one first."""
        return self.physics.now_ns - self._booted_ns

    def wall_ns(self) -> int:
        """Return the phone's time of day as it stands."""
        return self.physics.now_ns + self._wall_minus_model_ns

    def moment_ns(self, boot_ns: int) -> int:
        """Turn a reading of the present boot's clock into model time, which `truth` speaks."""
        return boot_ns + self._booted_ns

    def settle_power(self) -> None:
        """Let screen, settings and foreground decide what is drawn and how fast work goes, from now on."""
        physics, number = self.physics, self.settings.number
        physics.screen_share = number("system", "screen_brightness") / 255 if self.screen.on else 0.0
        physics.radio = not number("global", "airplane_mode_on")
        physics.power_save = bool(number("global", "low_power")) and physics.plug == "none"
        hidden = any(not process.foreground for process in self.memory.processes.values())
        physics.background = hidden or not self.screen.usable
        self.truth.before_spending(physics)

    def settle_memory(self) -> None:
        """Note what is held now, then kill whom the killer must, and forget the work of those that are gone."""
        for process in self.memory.processes.values():
            self.truth.note_memory(process)
        self.processes.kill_for_memory(self.physics.now_ns, self.wall_ns())
        for ended in self.processes.waiting:
            self.work.drop(ended.pid)

    def integrate(self, target_ns: int) -> None:
        """Let everything act up to a moment."""
        physics, work = self.physics, self.work
        while physics.now_ns < target_ns:
            tick_ns = physics.next_tick_ns()
            end_ns = work.job.end_ns if work.job is not None else tick_ns
            self.truth.before_spending(physics)
            physics.spend(min(target_ns, tick_ns, max(end_ns, physics.now_ns)))
            if work.job is not None and physics.now_ns >= end_ns:
                work.grow()
                self.settle_memory()  # it may be killed at its highest, before it gives anything back
                work.finish()
            if physics.now_ns == tick_ns:
                self._tick()
        self.truth.before_spending(physics)
        self._grow()

    def _tick(self) -> None:
        """Do what happens on the grid only."""
        self.physics.tick()
        self.truth.after_tick(self.physics)
        self.reported.after_tick()
        self._grow()
        if (self.physics.now_ns // TICK_NS) % _SCREEN_TICKS == 0:
            self._time_screen_out()

    def _grow(self) -> None:
        """Give a load what it has read by now: a sample between two ticks sees it too."""
        if self.work.job is not None and self.work.job.steady:
            self.work.grow()
            self.settle_memory()

    def _time_screen_out(self) -> None:
        """Let the screen go dark unless an app or the charger setting keeps it on."""
        plugged = self.reported.battery().plugged & self.settings.number("global", "stay_on_while_plugged_in")
        # The runner's activity asks to keep the screen on; that counts only while it is shown.
        self.screen.keep_on = bool(plugged) or (self.screen.usable and bool(self.memory.processes))
        was_on = self.screen.on
        self.screen.time_out(self.physics.now_ns, self.settings.number("system", "screen_off_timeout"))
        if was_on != self.screen.on:
            self.settle_power()

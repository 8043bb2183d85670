"""The hidden truth of one virtual phone, integrated on a model clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from profiler.clock import Clock, RealClock
from profiler.quantities import NS_PER_S
from tests.phones.battery import Plug
from tests.phones.memory import MemoryLedger
from tests.phones.model_clock import Action, ModelClock, Schedule
from tests.phones.model_physics import TICK_NS, Physics
from tests.phones.model_processes import Ended, Processes
from tests.phones.model_reported import Reported
from tests.phones.model_screen import Screen, Settings
from tests.phones.model_work import Workbench
from tests.phones.personas import Persona
from tests.phones.storage import Storage
from tests.phones.truth import Truth

_SCREEN_TICKS = 10


class DeviceModel:
    """One phone: its parts are attributes, to be used within `present()`; time and the outside world are methods.

    Moments are model time: nanoseconds that never jump and equal the boot clock until the first reboot.
    """

    def __init__(self, persona: Persona, *, seed: int = 0, speed: float = 1.0, clock: Clock | None = None) -> None:
        clock = clock or RealClock()
        start_ns = persona.system.uptime_s * NS_PER_S
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
        self._time = ModelClock(clock, speed=speed, start_ns=start_ns)
        self._schedule = Schedule()
        self._wall_minus_model_ns = clock.wall_ns() - start_ns
        self._booted_ns = 0
        self._told: list[Callable[[Ended], None]] = []
        self._lock = threading.RLock()
        self._moving = threading.Lock()
        self.boots = 0
        self.settle_power()

    # -- time ---------------------------------------------------------------------------------------------------

    def boot_ns(self) -> int:
        """Return the phone's boot clock as it stands; `present` moves a free-running one first."""
        return self.physics.now_ns - self._booted_ns

    def wall_ns(self) -> int:
        """Return the phone's time of day as it stands."""
        return self.physics.now_ns + self._wall_minus_model_ns

    def moment_ns(self, boot_ns: int) -> int:
        """Turn a reading of the present boot's clock into model time, which `truth` speaks."""
        return boot_ns + self._booted_ns

    @property
    def driven(self) -> bool:
        """Tell whether time moves only by `advance`."""
        return self._time.driven

    @contextmanager
    def present(self) -> Iterator[int]:
        """Hold the phone still at its present moment (model time) to read or change its parts."""
        self.sync()
        try:
            with self._lock:
                yield self.physics.now_ns
                self._settle_memory()
                self.settle_power()
        finally:
            self._tell()

    def sync(self) -> None:
        """Bring a free-running phone to the present; does nothing while it is driven or already being moved."""
        # Whoever is moving it may run an action that waits for this very thread: never wait for them here.
        if self._moving.acquire(blocking=False):
            try:
                self._move_to(self._time.due_ns(self.physics.now_ns))
            finally:
                self._moving.release()

    def advance(self, boot_ns: int) -> int:
        """Move a driven phone on to a moment of its boot clock and return where it stands; it never goes back."""
        with self._moving:
            self._move_to(max(self.physics.now_ns, self.moment_ns(boot_ns)))
        return self.boot_ns()

    def at(self, seconds: float, action: Action) -> None:
        """Run an action that many seconds of model time from now, at that very moment also when driven."""
        with self._lock:
            self._schedule.add(self.physics.now_ns + round(seconds * NS_PER_S), action)

    def drive(self) -> None:
        """Let time move only by `advance` from now on."""
        with self._moving:  # whoever moves it now has to arrive first, or time would go on after this
            self._move_to(self._time.due_ns(self.physics.now_ns))
            self._time.drive()

    def run_free(self) -> None:
        """Let time run with the clock again."""
        self._time.run_free(self.physics.now_ns)

    def jump(self, seconds: float) -> None:
        """Set the time of day forward or back; the boot clock goes on."""
        with self.present():
            self._wall_minus_model_ns += round(seconds * NS_PER_S)

    # -- the outside world --------------------------------------------------------------------------------------

    def plug(self, kind: Plug = "usb") -> None:
        """Put a charger or a cable in; battery saver ends, as on a real phone."""
        with self.present():
            self.physics.plug = kind
            if kind != "none":
                self.settings.put("global", "low_power", "0")
            self.physics.flow = self.physics.cell.flow(self.physics.watts(), self.physics.charge_c, kind)
            self.reported.cable_moved()

    def unplug(self) -> None:
        """Take the charger away."""
        self.plug("none")

    def throttle_to(self, clock: float, *, after_s: float = 0.0) -> None:
        """Order a clock (1.0: the maximum again) for a moment, from the tick that follows it; look-ahead knows it."""
        with self.present() as now_ns:
            moment_ns = -(-(now_ns + round(after_s * NS_PER_S)) // TICK_NS) * TICK_NS
            self.physics.forced = tuple(sorted((*self.physics.forced, (moment_ns, clock))))

    def reboot(self) -> None:
        """Start anew: processes, logs and whatever was faked are gone; heat, charge, settings and files stay."""
        with self.present() as now_ns:
            self.processes.end_all()
            self.reported.booted()
            self.physics.forced = ()
            self._booted_ns = now_ns
            self.boots += 1
            self.screen.sleep()

    def on_end(self, told: Callable[[Ended], None]) -> None:
        """Have somebody told of each process that the system ended, so that a real one behind it ends too."""
        self._told.append(told)

    # -- app processes ------------------------------------------------------------------------------------------

    def start_process(self, pid: int, package: str, uid: int) -> None:
        """Note an app process that somebody started."""
        with self.present() as now_ns:
            self.processes.start(pid, package, uid, now_ns, self.wall_ns())

    def end_process(self, pid: int, why: str = "exit", *, status: int = 0) -> None:
        """End a process: `exit` by itself, or by `kill`, `force-stop`, `crash`, `anr`. One that is gone is left."""
        with self.present() as now_ns:
            wall_ns, processes = self.wall_ns(), self.processes
            if why == "exit":
                processes.exited(pid, status, now_ns, wall_ns)
            else:
                ways = {"kill": processes.kill, "force-stop": processes.force_stop}
                ways |= {"crash": processes.crash, "anr": processes.stop_answering}
                ways[why](pid, now_ns, wall_ns)

    # -- inside -------------------------------------------------------------------------------------------------

    def settle_power(self) -> None:
        """Let screen, settings and foreground decide what is drawn and how fast work goes, from now on."""
        physics, number = self.physics, self.settings.number
        physics.screen_share = number("system", "screen_brightness") / 255 if self.screen.on else 0.0
        physics.radio = not number("global", "airplane_mode_on")
        physics.power_save = bool(number("global", "low_power")) and physics.plug == "none"
        hidden = any(not process.foreground for process in self.memory.processes.values())
        physics.background = hidden or not self.screen.usable
        self.truth.before_spending(physics)

    def _move_to(self, target_ns: int) -> None:
        """Integrate up to a moment, stopping at each action on the way; actions run without the lock."""
        while True:
            with self._lock:
                due_ns = self._schedule.next_ns()
                stop_ns = target_ns if due_ns is None else min(target_ns, due_ns)
                self._integrate(max(stop_ns, self.physics.now_ns))
                action = self._schedule.take_until(self.physics.now_ns)
            self._tell()
            if action is not None:
                action()
            elif self.physics.now_ns >= target_ns:
                return

    def _integrate(self, target_ns: int) -> None:
        physics, work = self.physics, self.work
        while physics.now_ns < target_ns:
            tick_ns = physics.next_tick_ns()
            end_ns = work.job.end_ns if work.job is not None else tick_ns
            self.truth.before_spending(physics)
            physics.spend(min(target_ns, tick_ns, max(end_ns, physics.now_ns)))
            if work.job is not None and physics.now_ns >= end_ns:
                work.grow()
                self._settle_memory()  # it may be killed at its highest, before it gives anything back
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
            self._settle_memory()

    def _time_screen_out(self) -> None:
        """Let the screen go dark unless an app or the charger setting keeps it on."""
        plugged = self.reported.battery().plugged & self.settings.number("global", "stay_on_while_plugged_in")
        # The runner's activity asks to keep the screen on; that counts only while it is shown.
        self.screen.keep_on = bool(plugged) or (self.screen.usable and bool(self.memory.processes))
        was_on = self.screen.on
        self.screen.time_out(self.physics.now_ns, self.settings.number("system", "screen_off_timeout"))
        if was_on != self.screen.on:
            self.settle_power()

    def _settle_memory(self) -> None:
        """Note what is held now, then kill whom the killer must, and forget the work of those that are gone."""
        for process in self.memory.processes.values():
            self.truth.note_memory(process)
        self.processes.kill_for_memory(self.physics.now_ns, self.wall_ns())
        for ended in self.processes.waiting:
            self.work.drop(ended.pid)

    def _tell(self) -> None:
        """Tell of ended processes, without holding the lock: who hears of it may ask the phone again."""
        with self._lock:
            waiting, self.processes.waiting = self.processes.waiting, []
        for ended in waiting:
            for told in self._told:
                told(ended)

"""The hidden truth of one virtual phone, integrated on a model clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from profiler.clock import Clock, RealClock
from profiler.quantities import NS_PER_S
from tests.phones.battery import Plug
from tests.phones.model_clock import Action, ModelClock, Schedule
from tests.phones.model_physics import TICK_NS
from tests.phones.model_processes import Ended
from tests.phones.model_state import PhoneState
from tests.phones.personas import Persona


class DeviceModel(PhoneState):
    """One phone in its time: the parts are attributes, to be used within `present()`; what befalls it are methods."""

    def __init__(self, persona: Persona, *, seed: int = 0, speed: float = 1.0, clock: Clock | None = None) -> None:
        clock = clock or RealClock()
        start_ns = persona.system.uptime_s * NS_PER_S
        super().__init__(persona, seed=seed, start_ns=start_ns, wall_ns=clock.wall_ns())
        self._time = ModelClock(clock, speed=speed, start_ns=start_ns)
        self._schedule = Schedule()
        self._told: list[Callable[[Ended], None]] = []
        self._lock = threading.RLock()
        self._moving = threading.Lock()

    # -- time ---------------------------------------------------------------------------------------------------

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
                self.settle_memory()
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
        self.sync()
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
            # Of two orders for one moment the later one counts.
            self.physics.forced = tuple(sorted((*self.physics.forced, (moment_ns, clock)), key=lambda order: order[0]))

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

    def _move_to(self, target_ns: int) -> None:
        """Integrate up to a moment, stopping at each action on the way; actions run without the lock."""
        while True:
            with self._lock:
                due_ns = self._schedule.next_ns()
                stop_ns = target_ns if due_ns is None else min(target_ns, due_ns)
                self.integrate(max(stop_ns, self.physics.now_ns))
                action = self._schedule.take_until(self.physics.now_ns)
            self._tell()
            if action is not None:
                action()
            elif self.physics.now_ns >= target_ns:
                return

    def _tell(self) -> None:
        """Tell of ended processes, without holding the lock: who hears of it may ask the phone again."""
        with self._lock:
            waiting, self.processes.waiting = self.processes.waiting, []
        for ended in waiting:
            for told in self._told:
                told(ended)

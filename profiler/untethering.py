"""When a phone's power goes off and comes back, in a session whose timed images run on its battery."""

from __future__ import annotations

from profiler.clock import Clock, Deadline
from profiler.devices.power_switch import PowerSwitch
from profiler.quantities import NS_PER_S
from profiler.records.event import AnyEvent, IterationDone, Waiting
from profiler.records.job import Job
from profiler.runner.patience import UNPLUG

_MARGIN = 1.3  # a phone on its battery may be slower
_LEAST_MARGIN_S = 15.0


class Untethering:
    """Hears what a runner says: takes the power away once it waits for that, and gives it back when it must be done."""

    def __init__(self, job: Job, switch: PowerSwitch | None, clock: Clock) -> None:
        self._job = job
        self._switch = switch if job.untethered else None
        self._clock = clock
        self._image_s = 0.0
        self._back: Deadline | None = None

    def take(self, event: AnyEvent | None) -> None:
        """Hear an event, or a moment without one. Raises DeviceError where the switch fails."""
        if self._switch is None:
            return
        if isinstance(event, IterationDone):
            self._image_s = event.duration_ns / NS_PER_S
        if isinstance(event, Waiting) and event.reason == UNPLUG and not self._switch.is_off:
            self._switch.off()
            self._back = Deadline(self.away_s(), self._clock)
        elif self._back is not None and self._back.passed():
            self.end()

    def end(self) -> None:
        """Give the power back."""
        self._back = None
        if self._switch is not None:
            self._switch.on()

    def away_s(self) -> float:
        """Return for how long the phone has to be without power, by its last image."""
        job = self._job
        images = job.repeats * (self._image_s + (job.measurement.gap_s or 0))
        work_s = (job.measurement.minutes or 0) * 60 if job.measurement.kind == "sustained" else images
        return job.rest_s + max(_MARGIN * work_s, work_s + _LEAST_MARGIN_S)

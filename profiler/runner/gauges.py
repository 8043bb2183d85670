"""Readings a process can take of itself and its machine; what cannot be read is missing with a reason."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from msgspec.structs import replace

from profiler.clock import Clock
from profiler.quantities import KIB
from profiler.records.event import EnvironmentSample, MemoryReading, MemorySample
from profiler.runner.clock_limits import frequency_limit_khz, throttle_count

_STATUS = Path("/proc/self/status")
_LEAST_WINDOW_S = 0.1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class MemoryGauge:
    """Reads this process's memory: the kernel's high-water mark, and resident pages for the trace."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.boot_ns
        self._largest = 0
        # statm is kept open: a sample must cost microseconds, a status page costs ten times more.
        self._statm = os.open("/proc/self/statm", os.O_RDONLY) if os.path.exists("/proc/self/statm") else None

    def sample(self) -> MemorySample | None:
        """Read resident memory for the trace; None where the system has no cheap reading."""
        if self._statm is None:
            return None
        pages = int(os.pread(self._statm, 96, 0).split()[1])
        return MemorySample(device_boot_ns=self._now(), resident_bytes=pages * _PAGE_BYTES)

    def read(self) -> MemoryReading:
        """Read the lifetime peak and the parts of what is resident now.

        A peak is never below one read before: the kernel counts lazily, so its mark may lag behind what was resident.
        """
        reading = self._reading()
        if reading.peak_bytes is None:
            return reading
        self._largest = max(self._largest, reading.peak_bytes)
        return replace(reading, peak_bytes=self._largest)

    def _reading(self) -> MemoryReading:
        try:
            return reading_from_status(_STATUS.read_text())
        except OSError:
            return _reading_from_rusage()


def reading_from_status(text: str) -> MemoryReading:
    """Parse `/proc/<pid>/status`; a field that is not there stays missing.

    The kernel counts resident pages lazily, so the mark may lag behind the present: the peak is the larger.
    """
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    resident, marked = _kib(fields, "VmRSS"), _kib(fields, "VmHWM")
    known = [value for value in (resident, marked) if value]
    return MemoryReading(
        resident_bytes=resident,
        peak_bytes=max(known) if marked else None,
        anonymous_bytes=_kib(fields, "RssAnon"),
        file_backed_bytes=_kib(fields, "RssFile"),
        swapped_bytes=_kib(fields, "VmSwap"),
        definition="Linux VmHWM, the resident high-water mark of the process",
        reason=None if marked else "the kernel gives no VmHWM",
    )


def _kib(fields: dict[str, str], name: str) -> int | None:
    parts = fields.get(name, "").split()
    return int(parts[0]) * KIB if len(parts) == 2 and parts[0].isdigit() and parts[1] == "kB" else None


def _reading_from_rusage() -> MemoryReading:
    unit = 1 if sys.platform == "darwin" else KIB
    return MemoryReading(
        resident_bytes=psutil.Process().memory_info().rss,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        anonymous_bytes=None,
        file_backed_bytes=None,
        swapped_bytes=None,
        definition="getrusage ru_maxrss, the resident high-water mark of the process",
    )


class WorkShares(NamedTuple):
    """Work since the last reading: the load in percent of all usable cores, own and others' in percent of one."""

    load_percent: float | None
    own_percent: float | None
    others_percent: float | None


class WorkGauge:
    """Tells this process's work from everybody else's on the cores that it may use; several threads may read."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._cores = usable_cores()
        self._last = self._look()
        self._lock = threading.Lock()

    def read(self) -> WorkShares:
        """Return the shares since the last reading; None where that was a moment ago, since the system counts ticks."""
        with self._lock:
            now, last = self._look(), self._last
            if now[0] - last[0] < _LEAST_WINDOW_S:
                return WorkShares(None, None, None)
            self._last = now
        wall, busy, own = (after - before for after, before in zip(now, last, strict=True))
        busy = max(busy, own)
        return WorkShares(100 * busy / wall / len(self._cores), 100 * own / wall, 100 * (busy - own) / wall)

    def others_percent(self) -> float | None:
        """Return others' work alone."""
        return self.read().others_percent

    def _look(self) -> tuple[float, float, float]:
        """Return seconds: of the clock, of work on these cores by anyone, and of this process's own work."""
        own = self._process.cpu_times()
        every = psutil.cpu_times(percpu=True)
        busy = sum(_busy_s(every[core]) for core in self._cores if core < len(every))
        return time.monotonic(), busy, own.user + own.system


def usable_cores() -> list[int]:
    """Return the numbers of the cores that this process may use; `taskset` and containers allow fewer than all."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _busy_s(times: Any) -> float:
    """Sum a core's seconds that were not idle; a guest's are counted in its host's already (proc(5))."""
    idle = ("idle", "iowait", "guest", "guest_nice")
    return float(sum(seconds for name, seconds in times._asdict().items() if name not in idle))


class EnvironmentGauge:
    """Reads temperature, battery, processor frequency and load; remembers why a reading is missing."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.boot_ns
        self._work = WorkGauge()
        self.missing: dict[str, str] = {}

    def sample(self) -> EnvironmentSample:
        """Read every slow gauge once."""
        percent, external = self.battery()
        work = self._work.read()
        return EnvironmentSample(
            device_boot_ns=self._now(),
            temperature_millicelsius=self.temperature_millicelsius(),
            battery_percent=percent,
            external_power=external,
            cpu_frequency_khz=self._cpu_frequency_khz(),
            cpu_load_percent=work.load_percent,
            own_cpu_percent=work.own_percent,
            other_cpu_percent=work.others_percent,
            cpu_frequency_limit_khz=frequency_limit_khz(),
            throttle_count=throttle_count(),
        )

    def temperature_millicelsius(self) -> int | None:
        """Return the hottest processor reading, else the hottest of all; None where there is no sensor."""
        sensors = psutil.sensors_temperatures() if hasattr(psutil, "sensors_temperatures") else {}
        processor = [t for name in ("coretemp", "k10temp", "cpu_thermal", "zenpower") for t in sensors.get(name, [])]
        anything = [t for group in sensors.values() for t in group]
        # 0 °C and below is how drivers say that they have not measured yet.
        readings = [t.current for t in processor or anything if t.current and t.current > 0]
        if not readings:
            self.missing["temperature_millicelsius"] = "this machine exposes no temperature sensor"
            return None
        return round(max(readings) * 1000)

    def battery(self) -> tuple[float | None, bool | None]:
        """Return charge in percent and whether power comes from outside; None where there is no battery."""
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        if battery is None:
            self.missing["battery_percent"] = self.missing["external_power"] = "this machine has no battery"
            return None, None
        return float(battery.percent), battery.power_plugged

    def _cpu_frequency_khz(self) -> int | None:
        try:
            frequency = psutil.cpu_freq()
        except (OSError, NotImplementedError):
            frequency = None
        if frequency is None or not frequency.current:
            self.missing["cpu_frequency_khz"] = "this machine does not tell its clock"
            return None
        return round(frequency.current * 1000)

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from profiler.clock import FakeClock, RealClock
from profiler.quantities import KIB
from profiler.runner.gauges import EnvironmentGauge, MemoryGauge, WorkGauge, reading_from_status, usable_cores

STATUS = """Name:\tpython
Umask:\t0022
VmPeak:\t  500000 kB
VmHWM:\t  160000 kB
VmRSS:\t  150000 kB
RssAnon:\t  100000 kB
RssFile:\t   50000 kB
RssShmem:\t       0 kB
VmSwap:\t       8 kB
Threads:\t4
"""


def without(name: str) -> str:
    return "".join(line + "\n" for line in STATUS.splitlines() if not line.startswith(name))


def test_a_whole_status_gives_every_field_in_bytes() -> None:
    reading = reading_from_status(STATUS)
    assert reading.peak_bytes == 160_000 * KIB
    assert reading.resident_bytes == 150_000 * KIB
    assert reading.anonymous_bytes == 100_000 * KIB
    assert reading.file_backed_bytes == 50_000 * KIB
    assert reading.swapped_bytes == 8 * KIB
    assert reading.reason is None
    assert "VmHWM" in reading.definition


def test_without_a_high_water_mark_the_peak_is_missing_with_a_reason() -> None:
    reading = reading_from_status(without("VmHWM"))
    assert reading.peak_bytes is None
    assert reading.reason == "the kernel gives no VmHWM"
    assert reading.resident_bytes == 150_000 * KIB


def test_a_mark_that_lags_behind_what_is_resident_does_not_lower_the_peak() -> None:
    reading = reading_from_status(STATUS.replace("160000", "149000"))
    assert reading.peak_bytes == reading.resident_bytes == 150_000 * KIB


@pytest.mark.parametrize("field", ["RssAnon", "RssFile", "VmSwap", "VmRSS"])
def test_a_field_that_is_not_there_is_missing_and_never_zero(field: str) -> None:
    names = {
        "RssAnon": "anonymous_bytes",
        "RssFile": "file_backed_bytes",
        "VmSwap": "swapped_bytes",
        "VmRSS": "resident_bytes",
    }
    assert getattr(reading_from_status(without(field)), names[field]) is None


@pytest.mark.parametrize(
    "line", ["VmHWM:", "VmHWM:\t-1 kB", "VmHWM:\t12 MB", "VmHWM:\t1 2 kB", "VmHWM:\tmany kB", "VmHWM 160000 kB"]
)
def test_a_mark_in_another_form_counts_as_missing(line: str) -> None:
    assert reading_from_status(without("VmHWM") + line + "\n").peak_bytes is None


@pytest.mark.parametrize("text", ["", "\n\n", "\0\1:\2", ":::", "Name:\ta: b\nVmHWM"])
def test_a_page_of_nonsense_gives_a_reading_of_nothing(text: str) -> None:
    reading = reading_from_status(text)
    assert (reading.peak_bytes, reading.resident_bytes, reading.anonymous_bytes) == (None, None, None)


def test_this_process_has_a_peak_at_least_as_large_as_what_is_resident() -> None:
    reading = MemoryGauge(RealClock()).read()
    assert reading.peak_bytes is not None
    assert reading.resident_bytes is not None
    assert reading.peak_bytes >= reading.resident_bytes > 0


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's statm")
def test_a_memory_sample_carries_the_clock_it_was_taken_at() -> None:
    sample = MemoryGauge(FakeClock(boot_ns=77)).sample()
    assert sample is not None
    assert sample.device_boot_ns == 77
    assert sample.resident_bytes > 1024 * KIB


def test_each_reading_of_the_environment_is_there_or_has_a_reason() -> None:
    gauge = EnvironmentGauge(FakeClock(boot_ns=5))
    sample = gauge.sample()
    assert sample.device_boot_ns == 5
    for field in ("temperature_millicelsius", "battery_percent", "cpu_frequency_khz"):
        assert (getattr(sample, field) is None) == (field in gauge.missing)


def _work(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_own_work_is_told_from_everybody_elses() -> None:
    gauge = WorkGauge()
    _work(0.5)
    shares = gauge.read()
    assert shares.own_percent is not None
    assert shares.own_percent > 10  # however busy the machine is
    assert shares.load_percent is not None
    assert shares.others_percent is not None
    in_cores = shares.load_percent * len(usable_cores())
    assert in_cores == pytest.approx(shares.own_percent + shares.others_percent)


def test_other_peoples_work_is_seen() -> None:
    gauge = WorkGauge()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        time.sleep(1.0)
        others = gauge.others_percent()
        other.kill()
    assert others is not None
    assert others > 20  # it has to share with whatever else runs here


def test_a_reading_right_after_the_last_one_is_missing_and_not_zero() -> None:
    gauge = WorkGauge()
    assert gauge.read() == (None, None, None)
    assert gauge.others_percent() is None

from __future__ import annotations

import pytest

from profiler.devices.android.memory import (
    ProcessGone,
    ProcessMemory,
    ProcessStatus,
    SystemMemory,
    read_meminfo,
    read_process_status,
    read_system_memory,
)
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture

KIB = 1024


def meminfo(name: str) -> ProcessMemory:
    reading = read_meminfo(capture(name))
    assert isinstance(reading, ProcessMemory), reading
    return reading


def test_android_11s_totals_are_the_summarys_and_empty_cells_are_missing() -> None:
    reading = meminfo("meminfo_api30")
    assert (reading.pss_bytes, reading.rss_bytes) == (39_321 * KIB, 124_676 * KIB)
    assert (reading.swap_pss_bytes, reading.graphics_bytes) == (545 * KIB, 7_788 * KIB)
    assert reading.summary_rss_bytes["Private Other"] is None
    assert reading.summary_bytes["Unknown"] is None
    assert reading.summary_rss_bytes["Unknown"] == 5_678 * KIB
    assert (reading.pid, reading.process) == (20_311, "com.example.runner")


def test_android_10s_total_has_no_rss() -> None:
    reading = meminfo("meminfo_api29")
    assert (reading.pss_bytes, reading.rss_bytes, reading.swap_pss_bytes) == (174_545 * KIB, None, 303 * KIB)
    assert reading.graphics_bytes == 32_780 * KIB
    assert reading.table_pss_bytes["EGL mtrack"] == 27_300 * KIB


def test_a_table_alone_gives_its_total_without_a_colon_and_rss_from_its_heading() -> None:
    reading = meminfo("meminfo_table_only")
    assert (reading.pss_bytes, reading.rss_bytes) == (39_866 * KIB, 124_676 * KIB)


def test_graphics_are_summed_from_the_table_where_no_summary_has_them() -> None:
    table = "".join(line for line in capture("meminfo_api30").splitlines(True) if "Graphics" not in line)
    reading = read_meminfo(table)
    assert isinstance(reading, ProcessMemory)
    assert reading.graphics_bytes == (2048 + 5740) * KIB


def test_pss_may_exceed_rss_and_graphics_of_0_are_unknown() -> None:
    reading = meminfo("meminfo_pss_over_rss")
    assert (reading.pss_bytes, reading.rss_bytes) == (2_500_000 * KIB, 2_390_000 * KIB)
    assert reading.graphics_bytes is None
    assert reading.swap_pss_bytes == 0


def test_a_process_that_is_gone_is_no_reading() -> None:
    assert read_meminfo(capture("meminfo_gone")) == ProcessGone("com.example.runner")


@pytest.mark.parametrize("text", ["", "Can't find service: meminfo\n", "TOTAL\n", "IllegalStateException\n"])
def test_an_unknown_shape_is_unavailable(text: str) -> None:
    answer = read_meminfo(text)
    assert isinstance(answer, Unavailable)
    assert answer.raw == text
    assert answer.reason in ("no TOTAL line in what dumpsys meminfo printed", "Can't find service: meminfo")


def test_proc_status_gives_the_kernels_peak_and_its_parts() -> None:
    status = read_process_status(capture("proc_status"))
    assert isinstance(status, ProcessStatus)
    assert status.peak_resident_bytes == 4_301_824 * KIB
    assert status.resident_bytes == 4_223_760 * KIB
    assert status.swapped_bytes == 51_592 * KIB
    assert status.anonymous_bytes == 4_176_660 * KIB
    assert status.file_backed_bytes == 46_000 * KIB
    assert status.shared_bytes == 1_100 * KIB
    assert status.pid == 25_702


def test_nothing_swapped_is_a_reading_of_0() -> None:
    status = read_process_status("VmRSS:\t 100 kB\nVmSwap:\t       0 kB\n")
    assert isinstance(status, ProcessStatus)
    assert (status.swapped_bytes, status.peak_resident_bytes) == (0, None)


def test_a_zombie_has_no_memory_reading() -> None:
    assert isinstance(read_process_status(capture("proc_status_zombie")), Unavailable)


def test_a_status_of_a_process_that_is_gone_says_so() -> None:
    assert isinstance(read_process_status("cat: /proc/1/status: No such file or directory\n"), ProcessGone)


@pytest.mark.parametrize("line", ["VmRSS:\t100 MB\n", "VmRSS:\t-5 kB\n", "VmRSS:\tx kB\n", "VmRSS:\n"])
def test_another_unit_is_no_reading(line: str) -> None:
    status = read_process_status(line)
    assert isinstance(status, ProcessStatus)
    assert status.resident_bytes is None


def test_the_phones_memory_is_read_in_bytes() -> None:
    memory = read_system_memory(capture("proc_meminfo"))
    assert memory == SystemMemory(7_750_652 * KIB, 3_011_232 * KIB, 201_344 * KIB, 3_145_724 * KIB, 1_045_724 * KIB)
    assert isinstance(read_system_memory("MemFree: 1 kB\n"), Unavailable)

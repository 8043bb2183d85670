from __future__ import annotations

import pytest

from profiler.devices.android.kill_lines import Kill, read_kill_lines
from tests.devices.android.captures_for_tests import capture


def kills() -> dict[tuple[str, int], Kill]:
    return {(kill.killer, kill.pid): kill for kill in read_kill_lines(capture("logcat_kills"))}


def test_a_low_memory_kill_tells_sizes_and_reason() -> None:
    (kill,) = read_kill_lines(capture("lmk_new"))
    assert (kill.killer, kill.pid, kill.process) == ("lmkd", 25702, "com.example.runner")
    assert kill.rss_bytes == 4_223_760 * 1024
    assert kill.swapped_bytes == 51_592 * 1024
    assert kill.why == "min watermark is breached even after kill"


def test_each_killers_line_is_read() -> None:
    assert list(kills()) == [
        ("am_kill", 31426),
        ("am_kill", 31427),
        ("am_proc_died", 31426),
        ("am_crash", 31428),
        ("am_anr", 31429),
        ("lmkd", 17757),
        ("lmkd", 8123),
        ("zygote", 17757),
        ("zygote", 17758),
        ("zygote", 17759),
        ("fatal_signal", 17760),
        ("fatal_signal", 17761),
        ("lmkd", 2533),
        ("out_of_memory", 4242),
    ]


def test_reasons_keep_their_commas_and_lose_the_number_behind_them() -> None:
    assert kills()["am_kill", 31426].why == "stop com.example.runner due to clear data, really"
    assert kills()["am_kill", 31427].why == "empty #17"
    assert str(kills()["am_crash", 31428].why).startswith("java.lang.OutOfMemoryError: Failed to allocate")


def test_an_older_low_memory_line_has_fewer_fields() -> None:
    old = kills()["lmkd", 8123]
    assert (old.rss_bytes, old.swapped_bytes, old.why) == (51_200 * 1024, None, None)
    assert kills()["lmkd", 2533].rss_bytes is None


def test_signals_are_read_with_their_numbers() -> None:
    assert kills()["zygote", 17757].signal == 9
    assert kills()["zygote", 17758].signal is None
    assert kills()["fatal_signal", 17760].signal == 6


@pytest.mark.parametrize(
    "line",
    [
        "I lowmemorykiller: Failed to open /proc/16854/oom_score_adj; errno=2: process 16854 might have been killed",
        "I am_low_memory: 20",
        "I am_kill : [0]",
        "I am_kill : []",
        "I Zygote : Process x exited due to signal 9",
        "",
    ],
)
def test_lines_that_tell_of_no_end_are_passed_over(line: str) -> None:
    assert read_kill_lines(line) == ()

from __future__ import annotations

import pytest

from profiler.devices.android.exits import Exit, read_exit_info
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def exits() -> dict[int | None, Exit]:
    read = read_exit_info(capture("exit_info"))
    assert not isinstance(read, Unavailable), read
    return {item.pid: item for item in read}


def test_every_exit_is_read_newest_first() -> None:
    assert list(exits()) == [25702, 3421, 2176, 5410, 5411, 5412, 5413, 5414, 5415, 5416]


def test_codes_names_sizes_and_state_are_read() -> None:
    last = exits()[25702]
    assert (last.reason_code, last.reason, last.status, last.importance) == (3, "low memory", 9, 100)
    assert last.rss_bytes == 4 * 1024**3
    assert last.pss_bytes == round(3.9 * 1024**3)
    assert (last.state_summary, last.description) == ("24 bytes", None)
    assert last.timestamp == "2026-10-01 19:25:57.535"
    assert last.process == "com.example.runner:core"


def test_a_description_keeps_its_spaces_and_equal_signs() -> None:
    assert exits()[2176].description == "bg anr: executing service com.example.runner/.Svc reason=slow"
    assert exits()[5414].description == "excessive cpu 181000 during 300012 dur=900000 limit=2"
    assert exits()[5410].description == "stop com.example.runner due to from pid 5300"


def test_a_size_of_0_is_no_sample_and_a_decimal_comma_is_read() -> None:
    assert exits()[3421].pss_bytes is None
    assert exits()[5410].pss_bytes is None
    assert exits()[5411].rss_bytes == round(1.3 * 1024**3)


@pytest.mark.parametrize(
    ("said", "size"), [("512", 512), ("12K", 12_288), ("3,5MB", 3_670_016), ("2GB", 2 * 1024**3), ("much", None)]
)
def test_a_size_is_read_with_its_suffix(said: str, size: int | None) -> None:
    read = read_exit_info(f"ApplicationExitInfo #0:\n  pid=7 reason=3 (LOW_MEMORY) pss=0 rss={said} state=empty\n")
    assert not isinstance(read, Unavailable)
    assert read[0].rss_bytes == size


def test_a_reason_of_a_later_android_keeps_its_own_name() -> None:
    assert (exits()[5416].reason_code, exits()[5416].reason) == (99, "SOMETHING NEW")
    assert exits()[5413].subreason == "FREEZER BINDER TRANSACTION"


def test_another_layout_of_the_same_fields_is_read() -> None:
    read = read_exit_info(
        "ApplicationExitInfo #0:\n  package=com.example.app pid=77 realUid=10123\n  reason=4 (APP CRASH(NATIVE))\n"
        "  timestamp=2026-03-12 10:31:10.456\n"
    )
    assert not isinstance(read, Unavailable)
    assert (read[0].process, read[0].pid, read[0].reason_code) == ("com.example.app", 77, 4)


def test_an_app_that_never_ended_has_no_exits() -> None:
    assert read_exit_info("ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n") == ()


@pytest.mark.parametrize("text", ["", "Unknown command: exit-info\n", "Bad activity command: exit-info\n"])
def test_an_older_android_has_no_exit_info(text: str) -> None:
    assert isinstance(read_exit_info(text), Unavailable)

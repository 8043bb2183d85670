from __future__ import annotations

import pytest

from profiler.devices.android.unavailable import refused


@pytest.mark.parametrize(
    "line",
    [
        "Can't find service: thermalservice",
        "Permission Denial: can't dump BatteryService from pid=1, uid=2000",
        "cat: /sys/class/thermal: Permission denied",
        "/system/bin/sh: dumpsys: inaccessible or not found",
        "*** SERVICE 'meminfo' DUMP TIMEOUT (10000ms) EXPIRED ***",
    ],
)
def test_a_refusal_is_recognised_by_its_words(line: str) -> None:
    assert refused(f"\n{line}\n") == line


def test_the_same_words_in_somebodys_log_are_no_refusal() -> None:
    assert refused("Battery\n\n level: 5\n log: Permission denied\n") is None
    assert refused("") is None

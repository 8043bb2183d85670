from __future__ import annotations

import pytest

from profiler.devices.android.clocks import Policy, read_clocks
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def test_each_policys_limit_and_clock_are_read_and_a_denied_one_is_missing() -> None:
    policies = read_clocks(capture("clocks"))
    assert not isinstance(policies, Unavailable)
    assert [(p.number, p.cpus, p.current_khz, p.limit_khz, p.top_khz) for p in policies] == [
        (0, (0, 1, 2, 3), 1_098_000, 1_950_000, 1_950_000),
        (4, (4, 5, 6), 2_600_000, 2_600_000, 2_600_000),
        (7, (7,), None, 2_049_000, 3_105_000),
    ]
    assert policies[2].governor == "sched_pixel"


def test_old_kernels_show_the_files_of_each_processor() -> None:
    policies = read_clocks("/sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq:300000\n")
    assert policies == (Policy(3, (3,), 300_000, None, None, None, None),)


def test_processors_that_share_a_clock_are_one_policy() -> None:
    files = [f"/sys/devices/system/cpu/cpu{n}/cpufreq/" for n in range(4)]
    text = "".join(
        f"{f}related_cpus:{'0 1' if n < 2 else '2 3'}\n{f}scaling_cur_freq:{n}00\n" for n, f in enumerate(files)
    )
    policies = read_clocks(text.replace(":000", ":50"))
    assert not isinstance(policies, Unavailable)
    assert [(policy.number, policy.cpus) for policy in policies] == [(0, (0, 1)), (2, (2, 3))]


@pytest.mark.parametrize(
    "text",
    ["", "sh: /sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq: Permission denied\n", "policy0:1\n"],
)
def test_clocks_that_nobody_may_read_are_unavailable(text: str) -> None:
    assert isinstance(read_clocks(text), Unavailable)


def test_a_clock_of_0_is_a_processor_that_is_off() -> None:
    policies = read_clocks("/cpufreq/policy0/scaling_cur_freq:0\n/cpufreq/policy0/scaling_max_freq:2000\n")
    assert not isinstance(policies, Unavailable)
    assert policies[0].current_khz is None

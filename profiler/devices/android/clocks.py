"""The processor's clocks: the kernel's cpufreq policies. A lowered `limit_khz` is evidence of throttling."""

from __future__ import annotations

import re
from typing import NamedTuple

from profiler.devices.android.numerals import integer
from profiler.devices.android.unavailable import Unavailable, refused

COMMAND = (
    "for f in /sys/devices/system/cpu/cpufreq/policy*/related_cpus"
    " /sys/devices/system/cpu/cpufreq/policy*/cpuinfo_m??_freq"
    " /sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq"
    " /sys/devices/system/cpu/cpufreq/policy*/scaling_m??_freq"
    " /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
    '; do echo "$f:$(cat $f)"; done'
)

# Old kernels show the files below each processor only.
_PATH = re.compile(r"/(?:policy(\d+)|cpu(\d+)/cpufreq)/(\w+):(.*)")


class Policy(NamedTuple):
    """Processors that share a clock; `top_khz` is what they are made for, `limit_khz` what they may run at now."""

    number: int
    cpus: tuple[int, ...]
    current_khz: int | None
    limit_khz: int | None
    floor_khz: int | None
    top_khz: int | None
    governor: str | None


def read_clocks(text: str) -> tuple[Policy, ...] | Unavailable:
    """Read `path:value` lines of cpufreq files, in the order of their processors."""
    files: dict[int, dict[str, str]] = {}
    for line in text.splitlines():
        match = _PATH.search(line)
        number = integer(match[1] or match[2]) if match else None
        if match and number is not None and not refused(line):
            files.setdefault(number, {}).setdefault(match[3], match[4].strip())
    # Where each processor has files of its own, those that share a clock tell the same.
    each = [_policy(number, files[number]) for number in sorted(files)]
    policies = tuple({policy.cpus: policy for policy in reversed(each)}.values())[::-1]
    if all(policy.current_khz is None and policy.limit_khz is None for policy in policies):
        return Unavailable(refused(text) or "no clock that can be read", text)
    return policies


def _policy(number: int, files: dict[str, str]) -> Policy:
    listed = files.get("related_cpus") or files.get("affected_cpus") or ""
    cpus = tuple(cpu for word in listed.split() if (cpu := integer(word)) is not None)
    return Policy(
        number=number,
        cpus=cpus or (number,),
        current_khz=_khz(files, "scaling_cur_freq") or _khz(files, "cpuinfo_cur_freq"),
        limit_khz=_khz(files, "scaling_max_freq"),
        floor_khz=_khz(files, "scaling_min_freq"),
        top_khz=_khz(files, "cpuinfo_max_freq"),
        governor=files.get("scaling_governor") or None,
    )


def _khz(files: dict[str, str], name: str) -> int | None:
    """Return kHz; 0 is a processor that is switched off."""
    value = integer(files.get(name))
    return value if value and value > 0 else None

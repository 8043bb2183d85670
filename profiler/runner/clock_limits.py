"""What Linux lets the processor run at, and how often heat has slowed it down."""

from __future__ import annotations

from pathlib import Path

_CPU = Path("/sys/devices/system/cpu")


def frequency_limit_khz(cpu: Path = _CPU) -> int | None:
    """Return the highest clock now allowed on the fastest cores, which thermal drivers lower; None where untold."""
    return _of_fastest(cpu, "scaling_max_freq")


def frequency_max_khz(cpu: Path = _CPU) -> int | None:
    """Return the highest clock that the fastest cores can do."""
    return _of_fastest(cpu, "cpuinfo_max_freq")


def throttle_count(cpu: Path = _CPU) -> int | None:
    """Return how often any core was slowed down by heat since boot (Intel's thermal_throttle). None elsewhere."""
    counts = [_number(path) for path in cpu.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _of_fastest(cpu: Path, name: str) -> int | None:
    """Read a file of the policies with the highest hardware clock: on phones the big cores are capped first."""
    policies = {path.parent: _number(path) for path in cpu.glob("cpufreq/policy[0-9]*/cpuinfo_max_freq")}
    fastest = max((khz for khz in policies.values() if khz), default=None)
    limits = [_number(policy / name) for policy, khz in policies.items() if khz == fastest and khz]
    return max((limit for limit in limits if limit), default=None)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None

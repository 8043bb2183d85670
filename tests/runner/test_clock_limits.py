from __future__ import annotations

from pathlib import Path

import pytest

from profiler.runner.clock_limits import frequency_limit_khz, frequency_max_khz, throttle_count


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


PHONE = {
    "cpufreq/policy0/cpuinfo_max_freq": "1800000\n",
    "cpufreq/policy0/scaling_max_freq": "1800000\n",
    "cpufreq/policy4/cpuinfo_max_freq": "2850000\n",
    "cpufreq/policy4/scaling_max_freq": "2400000\n",
}


def test_the_limit_is_that_of_the_fastest_cores(tmp_path: Path) -> None:
    cpu = write(tmp_path, PHONE)
    assert (frequency_limit_khz(cpu), frequency_max_khz(cpu)) == (2_400_000, 2_850_000)


def test_throttle_counts_of_all_cores_are_added(tmp_path: Path) -> None:
    cpu = write(tmp_path, {f"cpu{n}/thermal_throttle/core_throttle_count": f"{n + 1}\n" for n in range(3)})
    assert throttle_count(cpu) == 6


@pytest.mark.parametrize("text", ["", "many", "<unsupported>\n"])
def test_what_is_not_told_is_missing_and_never_zero(tmp_path: Path, text: str) -> None:
    cpu = write(tmp_path, {**dict.fromkeys(PHONE, text), "cpu0/thermal_throttle/core_throttle_count": text})
    assert (frequency_limit_khz(cpu), frequency_max_khz(cpu), throttle_count(cpu)) == (None, None, None)


def test_a_machine_without_these_files_tells_nothing(tmp_path: Path) -> None:
    assert (frequency_limit_khz(tmp_path), frequency_max_khz(tmp_path), throttle_count(tmp_path)) == (None, None, None)

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.devices.power_saving import power_saving

CPUFREQ = "devices/system/cpu/cpu0/cpufreq"


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({}, (None, None)),
        ({"firmware/acpi/platform_profile": "low-power\n"}, (True, "platform profile low-power")),
        ({"firmware/acpi/platform_profile": "balanced\n"}, (False, "platform profile balanced")),
        ({f"{CPUFREQ}/energy_performance_preference": "power\n"}, (True, "energy preference power")),
        ({f"{CPUFREQ}/scaling_governor": "powersave\n"}, (True, "governor powersave")),
        ({f"{CPUFREQ}/scaling_governor": "schedutil\n"}, (False, "governor schedutil")),
        (
            {f"{CPUFREQ}/scaling_governor": "powersave\n", f"{CPUFREQ}/scaling_driver": "intel_pstate\n"},
            (False, "governor powersave"),
        ),
        (
            {"firmware/acpi/platform_profile": "balanced\n", f"{CPUFREQ}/energy_performance_preference": "power\n"},
            (True, "energy preference power"),
        ),
        ({f"{CPUFREQ}/scaling_governor": ""}, (None, None)),
    ],
)
def test_whatever_tells_of_power_saving_is_believed(
    tmp_path: Path, files: dict[str, str], answer: tuple[bool | None, str | None]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert power_saving(tmp_path) == answer

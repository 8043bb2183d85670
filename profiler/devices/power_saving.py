"""Whether Linux was told to save power rather than be quick."""

from __future__ import annotations

from pathlib import Path

_SYS = Path("/sys")
# Under these drivers the governor "powersave" is the everyday one; the preference beside it tells what is wanted.
_SELF_GOVERNING = ("intel_pstate", "amd-pstate", "amd-pstate-epp")


def power_saving(system: Path = _SYS) -> tuple[bool | None, str | None]:
    """Return whether power is saved and what says so; None where nothing tells."""
    found = [sign for look in (_profile, _preference, _governor) if (sign := look(system)) is not None]
    saving = next((sign for sign in found if sign[0]), None)
    return saving or (found[0] if found else (None, None))


def _profile(system: Path) -> tuple[bool, str] | None:
    """The platform profile is what a desktop's power menu sets (kernel, sysfs-platform_profile)."""
    profile = _word(system / "firmware/acpi/platform_profile")
    return None if profile is None else (profile in ("low-power", "quiet"), f"platform profile {profile}")


def _preference(system: Path) -> tuple[bool, str] | None:
    preference = _word(system / "devices/system/cpu/cpu0/cpufreq/energy_performance_preference")
    return None if preference is None else (preference == "power", f"energy preference {preference}")


def _governor(system: Path) -> tuple[bool, str] | None:
    cpufreq = system / "devices/system/cpu/cpu0/cpufreq"
    governor, driver = _word(cpufreq / "scaling_governor"), _word(cpufreq / "scaling_driver")
    if governor is None:
        return None
    return governor == "powersave" and driver not in _SELF_GOVERNING, f"governor {governor}"


def _word(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None

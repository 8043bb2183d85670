"""The state of a phone, read in one command: battery, heat, clocks, memory, storage and screen."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from profiler.devices.android import battery, clocks, energy_meter, memory, screen, storage, thermal
from profiler.devices.android.numerals import number
from profiler.devices.android.properties import Facts
from profiler.devices.android.shell import Shell
from profiler.devices.android.unavailable import Faked, Unavailable, refusal_of
from profiler.records.device import Conditions, DeviceProfile, Power, Unit

T = TypeVar("T")

_MARK = "@@state@@"
_DEADLINE_S = 30.0
_COMMANDS = {
    "battery": battery.COMMAND,
    "thermal": thermal.COMMAND,
    "zones": thermal.ZONES_COMMAND,
    "clocks": clocks.COMMAND,
    "memory": "cat /proc/meminfo",
    "storage": "df -k /data",
    "power": screen.POWER_COMMAND,
    "window": screen.WINDOW_COMMAND,
    "trust": screen.TRUST_COMMAND,
    "meter": energy_meter.COMMAND,
    "uptime": "cat /proc/uptime",
    "load": "cat /proc/loadavg",
    "cores": "ls -d /sys/devices/system/cpu/cpu[0-9]*",
}


class State(NamedTuple):
    """What a phone said of its state; each part may be unavailable, or faked by somebody's override."""

    battery: battery.Battery | Faked | Unavailable
    thermal: thermal.Thermal | Faked | Unavailable
    zones: tuple[thermal.Zone, ...] | Unavailable
    clocks: tuple[clocks.Policy, ...] | Unavailable
    memory: memory.SystemMemory | Unavailable
    storage: tuple[storage.FileSystem, ...] | Unavailable
    screen: screen.Screen | Unavailable
    meter: energy_meter.EnergyMeter | Unavailable
    uptime_s: float | None
    load_average_1m: float | None
    cores: int | None

    @property
    def faked(self) -> Faked | None:
        """Return the first part that somebody overrode."""
        return next((part for part in (self.battery, self.thermal) if isinstance(part, Faked)), None)

    def processor_millicelsius(self) -> int | None:
        """Return the hottest processor or skin sensor: as the thermal service has it, else the kernel's zones."""
        if isinstance(self.thermal, thermal.Thermal) and self.thermal.sensors:
            return self.thermal.hottest_millicelsius("cpu", "gpu", "npu", "soc", "skin")
        return None if isinstance(self.zones, Unavailable) else thermal.hottest_zone_millicelsius(self.zones)

    def battery_millicelsius(self) -> int | None:
        """Return the battery's temperature: its own, else that of the thermal service's sensor."""
        held = _or_none(self.battery, battery.Battery)
        if held is not None and held.temperature_millicelsius is not None:
            return held.temperature_millicelsius
        return self.thermal.hottest_millicelsius("battery") if isinstance(self.thermal, thermal.Thermal) else None


def read_state(shell: Shell) -> State:
    """Ask for everything in one command. Raises DeviceError where the phone does not answer."""
    command = "; ".join(f"echo {_MARK}{name}; {each} 2>&1" for name, each in _COMMANDS.items())
    said = shell.run(command, _DEADLINE_S).text
    return state_of(_parts(said))


def state_of(said: dict[str, str]) -> State:
    """Make sense of what each command printed."""
    return State(
        battery=battery.read_battery(said.get("battery", "")),
        thermal=thermal.read_thermal_service(said.get("thermal", "")),
        zones=thermal.read_thermal_zones(said.get("zones", "")),
        clocks=clocks.read_clocks(said.get("clocks", "")),
        memory=memory.read_system_memory(said.get("memory", "")),
        storage=storage.read_file_systems(said.get("storage", "")),
        screen=screen.read_screen(said.get("power", ""), said.get("window", ""), said.get("trust", "")),
        meter=energy_meter.read_energy_meter(said.get("meter", "")),
        uptime_s=_first_number(said.get("uptime", "")),
        load_average_1m=_first_number(said.get("load", "")),
        cores=sum("/cpu" in line and "No such" not in line for line in said.get("cores", "").splitlines()) or None,
    )


def refuse_faked(state: State, phone: str) -> None:
    """Raise DeviceError where somebody froze or overrode what the phone says of itself."""
    if state.faked is not None:
        raise refusal_of(state.faked, phone)


def conditions_of(state: State) -> Conditions:
    """Return the record of a state."""
    power = _power(state.battery)
    heat = _or_none(state.thermal, thermal.Thermal)
    seen = _or_none(state.screen, screen.Screen)
    fastest = _fastest(state.clocks)
    temperature = state.processor_millicelsius()
    return Conditions(
        power=power,
        temperature_millicelsius=temperature,
        temperature_reason=None if temperature is not None else _why_no_temperature(state),
        available_memory_bytes=None if isinstance(state.memory, Unavailable) else state.memory.available_bytes,
        free_storage_bytes=None if isinstance(state.storage, Unavailable) else state.storage[0].free_bytes,
        load_average_1m=state.load_average_1m,
        cpu_governor=fastest.governor if fastest else None,
        power_save=seen.low_power if seen else None,
        power_save_source="battery saver" if seen and seen.low_power is not None else None,
        cpu_frequency_limit_khz=fastest.limit_khz if fastest else None,
        cpu_frequency_max_khz=fastest.top_khz if fastest else None,
        battery_temperature_millicelsius=state.battery_millicelsius(),
        thermal_status=heat.status if heat else None,
        screen_on=seen.awake if seen else None,
        locked=seen.keyguard_showing if seen else None,
        uptime_s=state.uptime_s,
        energy_microwattseconds_by_rail=None if isinstance(state.meter, Unavailable) else state.meter.by_rail(),
    )


def unit_of(profile: DeviceProfile, facts: Facts, state: State, unit_id: str) -> Unit:
    """Return the record of a unit."""
    version = f"Android {facts.android_version}" if facts.android_version else "Android"
    return Unit(
        profile=profile.name,
        platform="android",
        is_phone=True,
        virtual=facts.virtual is not None,
        model=facts.model,
        processor=facts.soc,
        logical_cores=state.cores,
        memory_bytes=None if isinstance(state.memory, Unavailable) else state.memory.total_bytes,
        operating_system=f"{version} (API {facts.api_level})" if facts.api_level else version,
        os_build=facts.fingerprint or "unknown",
        unit_id=unit_id,
        maker=facts.manufacturer,
        codename=facts.device,
        api_level=facts.api_level,
        security_patch=facts.security_patch,
    )


def _parts(said: str) -> dict[str, str]:
    """Split at the marks; the first line of each part is its name."""
    parts = [part.partition("\n") for part in said.replace("\r\n", "\n").split(_MARK)[1:]]
    return {name.strip(): text for name, _, text in parts}


def _power(told: battery.Battery | Faked | Unavailable) -> Power:
    if isinstance(told, Faked):
        return Power(battery_percent=None, external_power=None, reason=f"{told.what} is faked")
    if isinstance(told, Unavailable):
        return Power(battery_percent=None, external_power=None, reason=told.reason)
    return Power(
        battery_percent=told.level_percent,
        external_power=told.external_power,
        reason=next(iter(told.missing.values()), None) if told.level_percent is None else None,
    )


def _fastest(told: tuple[clocks.Policy, ...] | Unavailable) -> clocks.Policy | None:
    policies = () if isinstance(told, Unavailable) else told
    return max(policies, key=lambda policy: policy.top_khz or 0, default=None)


def _why_no_temperature(state: State) -> str:
    if isinstance(state.thermal, thermal.Thermal):
        return state.thermal.no_sensors or "no sensor of processor or skin among those that the phone reads"
    return state.thermal.reason if isinstance(state.thermal, Unavailable) else "the thermal status is overridden"


def _or_none(told: object, kind: type[T]) -> T | None:
    return told if isinstance(told, kind) else None


def _first_number(text: str) -> float | None:
    found = number(text.split()[0]) if text.split() else None
    return None if found is None else float(found)

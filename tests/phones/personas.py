"""Phone personas: plausible facts of one phone model as data, in a closed schema."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

FOLDER = Path(__file__).parent / "personas"

Node = Literal["die", "skin", "battery"]


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A closed, immutable table of facts: a key that is not listed is an error."""


class SystemFacts(Facts, kw_only=True):
    """Operating system, identity and what the phone's adbd can do (`adb_features` empty: none at all)."""

    api: int
    serial: str
    adb_features: list[str]
    props: dict[str, str]
    utc_offset: str = "+0000"
    uptime_s: int = 186_245


class ClusterFacts(Facts, kw_only=True):
    """Cores that share a clock."""

    cpus: list[int]
    min_khz: int
    max_khz: int


class HeatFacts(Facts, kw_only=True):
    """A thermal network: die → skin → ambient with the battery between skin and ambient.

    Capacities in J/K, resistances in K/W, temperatures in °C.
    """

    ambient_c: float = 25.0
    die_capacity: float
    skin_capacity: float
    battery_capacity: float
    die_to_skin: float
    skin_to_battery: float
    skin_to_ambient: float
    battery_to_ambient: float


class ThrottleStep(Facts, kw_only=True):
    """Above `onset_c` cores run at `clock` of their maximum, until `clear_c` is fallen below."""

    onset_c: float
    clear_c: float
    clock: float


class ThrottleFacts(Facts, kw_only=True):
    """A governor that looks at one sensor every `poll_s` and moves one step at a time."""

    sensor: Node
    poll_s: float
    steps: list[ThrottleStep]


class PowerFacts(Facts, kw_only=True):
    """What the phone draws, in watts; work grows with clock to the power of `exponent`."""

    idle_w: float
    screen_w: float
    radio_w: float
    load_w: float
    call_w: float
    canary_w: float
    exponent: float = 2.4
    power_save_clock: float = 0.6
    fixed_performance_clock: float | None = None


class BatteryFacts(Facts, kw_only=True):
    """A cell and its charger; currents in mA, resistance in ohm, `start_percent` of charge at the beginning."""

    capacity_mah: float
    design_mah: float
    technology: str
    resistance_ohm: float
    full_mv: int = 4450
    empty_mv: int = 3300
    charge_limit_ma: float
    charger_w: dict[str, float]
    charge_efficiency: float = 0.92
    start_percent: float = 63.0


class GaugeFacts(Facts, kw_only=True):
    """How the vendor's fuel gauge reports: its quirks are what a product must see through.

    `charge_step_uah` 0: no charge counter. `delay_periods`: a reading is that many refreshes old.
    `current` null: the property is not supported; "zero": it is, and always says 0.
    """

    current: Literal["microamperes", "milliamperes", "zero"] | None = None
    discharge_is_negative: bool
    refresh_s: float
    current_step: int
    current_noise_ma: float
    charge_step_uah: int
    voltage: Literal["millivolts", "microvolts", "volts"]
    temperature: Literal["tenths", "whole"]
    delay_periods: int = 0


class MemoryFacts(Facts, kw_only=True):
    """In bytes; of `others_bytes`, held by background apps, `others_floor_bytes` stay when cached ones are closed."""

    total_bytes: int
    fixed_bytes: int
    others_bytes: int
    others_floor_bytes: int
    watermark_bytes: int
    swap_total_bytes: int
    swap_share: float
    compression: float
    app_file_bytes: int
    app_anonymous_bytes: int
    low_memory_is_reported: bool


class WorkFacts(Facts, kw_only=True):
    """What loading and calling cost at full clock."""

    ns_per_parameter: float
    ns_per_output_byte: float
    call_overhead_ns: int
    call_noise: float
    load_bytes_per_s: float
    load_overhead_ns: int
    load_noise: float
    load_anonymous_share: float
    load_transient_share: float
    activation_bytes_per_parameter: float
    activation_bytes_per_output_byte: float
    canary_round_ns: int
    background_share: float = 0.12


class StorageFacts(Facts, kw_only=True):
    """Bytes of the data partition."""

    total_bytes: int
    free_bytes: int


class ScreenFacts(Facts, kw_only=True):
    """The screen and its lock."""

    brightness: int = 128
    timeout_ms: int = 30_000
    lock: Literal["none", "swipe", "pin"] = "swipe"


class ZoneFacts(Facts, kw_only=True):
    """One thermal zone in /sys: see `share` and `offset_c` at `gauges.sensed`."""

    type: str
    node: Node
    share: float = 1.0
    offset_c: float = 0.0
    step_millic: int = 100
    refresh_s: float = 0.25


class HalSensor(Facts, kw_only=True):
    """One temperature of the thermal HAL; `type` is its number there (0 CPU, 2 battery, 3 skin …)."""

    name: str
    type: int
    node: Node
    share: float = 1.0
    offset_c: float = 0.0
    step_c: float = 0.1


class ThermalServiceFacts(Facts, kw_only=True):
    """`thresholds_c` LIGHT … SHUTDOWN on the skin; `reports_status` false: a vendor daemon throttles in silence."""

    connection: str
    thresholds_c: list[float]
    reports_status: bool
    headroom: bool
    ready: bool = True
    sensors: list[HalSensor]
    cooling_devices: list[str] = []
    cached_lag_s: float = 600.0


class RailFacts(Facts, kw_only=True):
    """Shares of each consumer's power that one measured rail carries."""

    subsystem: str
    work: float = 0.0
    screen: float = 0.0
    base: float = 0.0


class DialectFacts(Facts, kw_only=True):
    """Which of the known shapes this phone's texts have."""

    battery: Literal["android10", "android13", "android14", "samsung", "xiaomi"]
    meminfo: Literal["api29", "api30"]
    lmkd: Literal["old", "new"]
    energy_meter: Literal["hal2", "hal2_subsystem"] | None = None
    zones_readable_by_app: bool
    zones_readable_by_shell: bool
    clocks_readable: bool = True
    power_supply_readable: bool = False
    user_restricted_install: bool = False


class Persona(Facts, kw_only=True):
    """Everything that makes one virtual phone unlike another."""

    name: str
    title: str
    system: SystemFacts
    clusters: list[ClusterFacts]
    heat: HeatFacts
    throttling: ThrottleFacts
    power: PowerFacts
    battery: BatteryFacts
    gauge: GaugeFacts
    memory: MemoryFacts
    work: WorkFacts
    storage: StorageFacts
    screen: ScreenFacts
    zones: list[ZoneFacts]
    thermal_service: ThermalServiceFacts
    dialect: DialectFacts
    rails: dict[str, RailFacts] = {}
    settings: dict[str, dict[str, str]] = {}

    def prop(self, name: str) -> str:
        """Return a system property, empty where it is not set."""
        return self.system.props.get(name, "")


def load_persona(name: str) -> Persona:
    """Read the persona called `name`; `FileNotFoundError` names those that there are."""
    path = FOLDER / f"{name}.toml"
    if not path.is_file():
        raise FileNotFoundError(f"no persona {name!r}; there are: {', '.join(persona_names())}")
    return msgspec.toml.decode(path.read_bytes(), type=Persona)


def persona_names() -> tuple[str, ...]:
    """Return the names of all personas."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))

"""Phones and machines: the profile of a model of device, and the one unit at hand."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from profiler.records.record import Name, Record, SchemaVersion

Platform = Literal["host", "android"]
# The profile of every phone that no other one matches.
GENERIC_PHONE = "android"
Month = Annotated[str, msgspec.Meta(pattern="^20[0-9]{2}-(0[1-9]|1[0-2])$")]


class DeviceProfile(Record):
    """What is true of every unit of a device model (`device_profiles/*.toml`).

    A fact that no source supports is left out: null, or empty where there can be several. `models` and `codenames` are
    what `getprop` prints as `ro.product.model` and `ro.product.device`: they tell which profile a phone has, so none
    stands in two profiles. `soc_models` are values of `ro.soc.model` or `ro.board.platform`. `memory_bytes` and
    `storage_bytes` are the variants sold, as far as known: memory in whole GiB, storage in decimal GB. `released` is
    the month of its first sale or announcement. `sources` say in brackets what they support.
    """

    schema_version: SchemaVersion = 1
    name: Name
    title: str
    platform: Platform
    is_phone: bool
    maker: str | None = None
    models: tuple[str, ...] = ()
    codenames: tuple[str, ...] = ()
    soc: str | None = None
    soc_models: tuple[str, ...] = ()
    gpu: str | None = None
    npu: str | None = None
    memory_bytes: tuple[int, ...] = ()
    storage_bytes: tuple[int, ...] = ()
    display_hz: int | None = None
    released: Month | None = None
    sources: tuple[str, ...] = ()
    notes: str = ""


class Unit(Record):
    """The device actually measured, as it described itself; null where it did not say.

    `unit_id` tells one phone from another without naming it: the first 12 hex digits of its serial number's SHA-256.
    """

    profile: str
    platform: Platform
    is_phone: bool
    virtual: bool
    model: str | None
    processor: str | None
    logical_cores: int | None
    memory_bytes: int | None
    operating_system: str
    os_build: str
    unit_id: str | None = None
    maker: str | None = None
    codename: str | None = None
    api_level: int | None = None
    security_patch: str | None = None


class Power(Record):
    """Battery and supply; null where the device has no such thing or does not say."""

    battery_percent: float | None
    external_power: bool | None
    reason: str | None = None


class Conditions(Record):
    """The state a measurement started in.

    `cpu_frequency_limit_khz` is what the system allows the fastest core, `cpu_frequency_max_khz` what it can do.
    `thermal_status` is Android's 0 (none) to 6 (shutdown), kept as a hint: it decides nothing. Energy by
    rail is what the phone metered of its parts since boot.
    """

    power: Power
    temperature_millicelsius: int | None
    temperature_reason: str | None
    available_memory_bytes: int | None
    free_storage_bytes: int | None
    load_average_1m: float | None
    cpu_governor: str | None
    power_save: bool | None = None
    power_save_source: str | None = None
    cpu_frequency_limit_khz: int | None = None
    cpu_frequency_max_khz: int | None = None
    battery_temperature_millicelsius: int | None = None
    thermal_status: int | None = None
    screen_on: bool | None = None
    locked: bool | None = None
    uptime_s: float | None = None
    energy_microwattseconds_by_rail: dict[str, int] | None = None

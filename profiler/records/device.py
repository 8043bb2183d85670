"""Phones and machines: the profile of a model of device, and the one unit at hand."""

from __future__ import annotations

from typing import Literal

from profiler.records.record import Record, SchemaVersion

Platform = Literal["host", "android"]


class DeviceProfile(Record):
    """What is true of every unit of a device model (`device_profiles/*.toml`)."""

    schema_version: SchemaVersion = 1
    name: str
    title: str
    platform: Platform
    is_phone: bool
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
    `thermal_status` is Android's 0 (none) to 6 (shutdown), kept as a hint: it decides nothing.
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

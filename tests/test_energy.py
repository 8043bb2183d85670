from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from profiler.energy import NO_GAUGE, NO_VOLTAGE, PLUGGED, SHORT, UNCALIBRATED, Found, energy
from profiler.meter_checks import STILL
from profiler.quantities import NS_PER_S
from profiler.records.event import EnvironmentSample
from profiler.records.run import IterationSample
from tests.messages_for_tests import make_environment
from tests.runs_for_tests import make_sample

START_S = 1000.0


class Gauges(NamedTuple):
    """A battery's gauges: raw units in a microampere, the sign while charging, and when values change."""

    per_microampere: float = 1.0
    sign: int = 1
    refresh_s: float = 0.25
    step_microamperehours: int = 1


def watts_at(seconds: float) -> float:
    """Draw 0.8 W at rest for a minute, then 4 W that swing a little."""
    return 0.8 if seconds < START_S + 60 else 4.0 + 0.5 * ((seconds // 3) % 2)


def readings(
    gauges: Gauges, *, seconds: int = 240, plugged: Callable[[float], bool] = lambda s: False
) -> list[EnvironmentSample]:
    """Read a discharging battery once a second, as its gauges show it."""
    samples, charge, volts, step_s = [], 3_000_000.0, 3.9, 0.05
    shown = 0.0
    for tick in range(int(seconds / step_s)):
        now = START_S + tick * step_s
        amperes = watts_at(now) / volts
        charge -= amperes * step_s / 3600 * 1e6
        if tick % round(gauges.refresh_s / step_s) == 0:
            shown = amperes
        if tick % round(1 / step_s) == 0:
            counted = int(charge // gauges.step_microamperehours) * gauges.step_microamperehours
            samples.append(
                make_environment(
                    device_boot_ns=round(now * NS_PER_S),
                    external_power=plugged(now),
                    battery_voltage_millivolts=round(volts * 1000),
                    battery_current_raw=round(-gauges.sign * shown * 1e6 * gauges.per_microampere),
                    battery_charge_counter_microamperehours=counted,
                )
            )
    return samples


def images(first_s: float = START_S + 65, count: int = 50, each_s: float = 3.0) -> list[IterationSample]:
    return [
        make_sample(
            phase="timed",
            iteration=number,
            start_boot_ns=round((first_s + number * each_s) * NS_PER_S),
            duration_ns=round(each_s * NS_PER_S),
        )
        for number in range(count)
    ]


REST = (round((START_S + 1) * NS_PER_S), round((START_S + 58) * NS_PER_S))
TRUE_JOULES = 4.25 * 150


def only(found: Found) -> dict[str, float]:
    assert found.reason is None, found.reason
    return {meter.source: meter.joules for meter in found.by_meter}


@pytest.mark.parametrize(
    "gauges",
    [
        Gauges(),
        Gauges(sign=-1),
        Gauges(per_microampere=0.001),
        Gauges(per_microampere=0.001, sign=-1, refresh_s=1.0),
        Gauges(refresh_s=3.0, step_microamperehours=100),
        Gauges(step_microamperehours=1000),
    ],
)
def test_energy_is_found_whatever_the_unit_sign_and_pace_of_the_gauges(gauges: Gauges) -> None:
    found = energy(images(), readings(gauges), REST)
    for source, joules in only(found).items():
        assert joules == pytest.approx(TRUE_JOULES, rel=0.03), source
    assert found.by_meter[0].images == 50


def test_rest_is_told_by_the_same_meter() -> None:
    for meter in energy(images(), readings(Gauges()), REST).by_meter:
        assert meter.rest_watts is None or meter.rest_watts == pytest.approx(0.8, rel=0.05)
    assert energy(images(), readings(Gauges()), None).by_meter[0].rest_watts is None


def test_a_fine_charge_counter_is_quoted_before_the_current_and_a_coarse_one_after_it() -> None:
    fine, coarse = (energy(images(), readings(Gauges(step_microamperehours=step)), REST) for step in (1, 5000))
    assert fine.by_meter[0].source == "charge_counter"
    assert coarse.by_meter[0].source == "battery_current"


def test_a_current_that_contradicts_the_charge_counter_makes_energy_unknown() -> None:
    found = energy(images(), readings(Gauges(per_microampere=0.37)), REST)
    assert found.by_meter == ()
    assert "contradict" in (found.reason or "")


def test_the_current_of_a_phone_without_a_charge_counter_has_no_unit() -> None:
    blind = [replace(sample, battery_charge_counter_microamperehours=None) for sample in readings(Gauges())]
    assert energy(images(), blind, REST) == Found((), UNCALIBRATED)


def test_a_current_that_is_stuck_at_zero_is_no_reading() -> None:
    stuck = [replace(sample, battery_current_raw=0) for sample in readings(Gauges())]
    assert set(only(energy(images(), stuck, REST))) == {"charge_counter"}


def test_a_battery_on_external_power_tells_nothing() -> None:
    assert energy(images(), readings(Gauges(), plugged=lambda s: True), REST) == Found((), PLUGGED)


def test_only_images_made_on_the_battery_count() -> None:
    back_s = START_S + 65 + 100.5
    found = energy(images(), readings(Gauges(), plugged=lambda s: s > back_s), REST)
    assert found.by_meter[0].images == 33
    for meter in found.by_meter:
        assert meter.joules == pytest.approx(4.25 * 99, rel=0.03)


def test_a_moment_is_too_short_for_a_slow_gauge() -> None:
    found = energy(images(count=3), readings(Gauges(refresh_s=30.0, step_microamperehours=5000)), REST)
    assert found == Found((), SHORT) or found == Found((), UNCALIBRATED)


def test_without_gauges_or_images_the_reason_says_so() -> None:
    assert energy(images(), [make_environment()], None) == Found((), NO_GAUGE)
    assert energy([], readings(Gauges()), None).reason == "no image was timed"


def anew(samples: list[EnvironmentSample], by: int) -> list[EnvironmentSample]:
    """Let the charge counter be set to another value in the middle of the timed images."""
    return [
        replace(s, battery_charge_counter_microamperehours=(s.battery_charge_counter_microamperehours or 0) + by)
        if s.device_boot_ns > (START_S + 150) * NS_PER_S
        else s
        for s in samples
    ]


@pytest.mark.parametrize("by", [2_000_000, 40_000, 2_000, -30_000, -1_000_000])
@pytest.mark.parametrize("with_current", [True, False])
def test_a_charge_counter_that_was_set_anew_is_no_meter(by: int, with_current: bool) -> None:
    samples = anew(readings(Gauges()), by)
    if not with_current:
        samples = [replace(sample, battery_current_raw=0) for sample in samples]
    found = energy(images(), samples, REST)
    assert found.by_meter == ()
    assert "it was set anew meanwhile" in (found.reason or "")


@pytest.mark.parametrize("by", [5, -5])
def test_a_charge_counter_may_correct_itself_a_little(by: int) -> None:
    assert only(energy(images(), anew(readings(Gauges()), by), REST))["charge_counter"] == pytest.approx(
        TRUE_JOULES, rel=0.03
    )


def test_a_rising_charge_counter_without_external_power_is_never_negative_energy() -> None:
    rising = [
        replace(
            s, battery_charge_counter_microamperehours=round(s.device_boot_ns / NS_PER_S * 300), battery_current_raw=0
        )
        for s in readings(Gauges())
    ]
    found = energy(images(), rising, REST)
    assert found.by_meter == ()
    assert "rose by" in (found.reason or "")


def test_a_current_of_zero_now_and_then_is_no_reading() -> None:
    samples = readings(Gauges(step_microamperehours=1000))
    gappy = [replace(s, battery_current_raw=0) if number % 8 == 0 else s for number, s in enumerate(samples)]
    assert only(energy(images(), gappy, REST))["battery_current"] == pytest.approx(TRUE_JOULES, rel=0.02)


@pytest.mark.parametrize("factor", [0.001, 1000])
def test_a_voltage_in_another_unit_is_refused(factor: float) -> None:
    samples = [
        replace(sample, battery_voltage_millivolts=round((sample.battery_voltage_millivolts or 0) * factor))
        for sample in readings(Gauges())
    ]
    found = energy(images(), samples, REST)
    assert found.by_meter == ()
    assert "a unit is not what it should be" in (found.reason or "")


def test_a_charge_counter_in_milliamperehours_is_refused_though_the_current_agrees() -> None:
    samples = [
        replace(
            s,
            battery_charge_counter_microamperehours=(s.battery_charge_counter_microamperehours or 0) // 1000,
            battery_current_raw=round((s.battery_current_raw or 0) / 1000),
        )
        for s in readings(Gauges())
    ]
    found = energy(images(), samples, REST)
    assert found.by_meter == ()
    assert found.reason


def with_rails(at: Callable[[int], dict[str, int] | None]) -> list[EnvironmentSample]:
    """Read rails once a second on a cable, as they are so many seconds after the start."""
    return [
        replace(sample, energy_microwattseconds_by_rail=at(second))
        for second, sample in enumerate(readings(Gauges(), plugged=lambda s: True))
    ]


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (lambda s: {"cpu": 3_000_000 * (s % 100), "gpu": 9_000_000 * s}, "the power rail cpu fell"),
        (lambda s: {"cpu": (30_000_000 * s) % 2**32}, "the power rail cpu fell"),
        (lambda s: {"cpu": 7}, STILL),
    ],
)
def test_power_rails_that_fell_or_stood_still_are_no_meter(at: Callable[[int], dict[str, int]], reason: str) -> None:
    found = energy(images(), with_rails(at), None)
    assert found.by_meter == ()
    assert reason in (found.reason or "")


def test_a_power_rail_that_one_reading_leaves_out_still_counts() -> None:
    both = with_rails(lambda s: {"cpu": 3_000_000 * s, "gpu": 1_000_000 * s} if s != 120 else {"gpu": 1_000_000 * s})
    assert only(energy(images(), both, None)) == {"power_rails": pytest.approx(4 * 150, rel=0.01)}


def test_power_rails_count_though_the_device_is_plugged_in() -> None:
    rails = [
        replace(
            sample,
            external_power=True,
            energy_microwattseconds_by_rail={"CPU": 7_000_000 + number * 3_000_000, "GPU": number * 500_000},
        )
        for number, sample in enumerate(readings(Gauges()))
    ]
    (meter,) = energy(images(), rails, REST).by_meter
    assert (meter.source, meter.images) == ("power_rails", 50)
    assert meter.joules == pytest.approx(3.5 * 150, rel=0.01)
    assert meter.rest_watts == pytest.approx(3.5, rel=0.01)


def test_where_no_meter_helps_the_reasons_of_each_are_told() -> None:
    plugged = readings(Gauges(), plugged=lambda s: True)
    metered = [replace(sample, energy_microwattseconds_by_rail={"CPU": 7}) for sample in plugged]
    assert energy(images(count=3), metered, None) == Found((), f"{SHORT}; {PLUGGED}")


@given(
    sign=st.sampled_from([1, -1]),
    per_microampere=st.sampled_from([1.0, 0.001]),
    refresh_s=st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]),
    step=st.sampled_from([1, 10, 100, 500]),
)
@settings(max_examples=12, deadline=None)
def test_no_pace_or_step_of_a_consistent_battery_misleads(
    sign: int, per_microampere: float, refresh_s: float, step: int
) -> None:
    for joules in only(energy(images(), readings(Gauges(per_microampere, sign, refresh_s, step)), None)).values():
        assert joules == pytest.approx(TRUE_JOULES, rel=0.03)


def test_a_battery_without_a_voltage_is_not_called_plugged_in() -> None:
    samples = [replace(sample, battery_voltage_millivolts=None) for sample in readings(Gauges())]
    assert energy(images(), samples, REST) == Found((), NO_VOLTAGE)


def test_a_battery_that_is_not_to_be_believed_gives_no_energy_however_good_its_readings() -> None:
    assert energy(images(), readings(Gauges()), REST, no_battery="somebody faked it") == Found((), "somebody faked it")

from __future__ import annotations

import pytest

from profiler.records.device import Power
from tests.runs_for_tests import make_conditions, make_settings, make_unit
from tests.validity.evidence_for_tests import environment, kinds, only_doubt, sound_run, trace


@pytest.mark.parametrize(
    "power",
    [
        Power(battery_percent=None, external_power=True),
        Power(battery_percent=80.0, external_power=False),
        Power(battery_percent=80.0, external_power=None),
    ],
)
def test_a_device_without_battery_or_off_the_cable_is_not_charging(power: Power) -> None:
    assert kinds(sound_run(conditions=make_conditions(power=power))) == []


def test_an_untethered_run_began_on_the_cable_but_was_not_timed_on_it() -> None:
    mains = make_conditions(power=Power(battery_percent=80.0, external_power=True))
    phone = make_unit(is_phone=True)
    assert kinds(sound_run(unit=phone, conditions=mains)) == ["charging"]
    assert kinds(sound_run(unit=phone, conditions=mains, settings=make_settings(untethered=True))) == []


def test_a_laptop_on_mains_is_as_it_should_be_and_on_battery_is_not() -> None:
    laptop = make_unit(is_phone=False)
    mains = make_conditions(power=Power(battery_percent=80.0, external_power=True))
    battery = make_conditions(power=Power(battery_percent=80.0, external_power=False))
    assert kinds(sound_run(unit=laptop, conditions=mains)) == ["not_a_phone"]
    assert kinds(sound_run(unit=laptop, conditions=battery)) == ["not_a_phone", "on_battery"]


@pytest.mark.parametrize(("percent", "expected"), [(29.9, ["low_battery"]), (30.0, []), (None, [])])
def test_a_battery_below_thirty_per_cent_is_low(percent: float | None, expected: list[str]) -> None:
    power = Power(battery_percent=percent, external_power=None)
    assert kinds(sound_run(conditions=make_conditions(power=power))) == expected


def test_what_saves_power_is_named() -> None:
    conditions = make_conditions(power_save=True, power_save_source="platform profile low-power")
    assert "platform profile low-power" in only_doubt(sound_run(conditions=conditions)).detail


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"screen_on": False}, {}, "off at the start"),
        ({"screen_on": True, "locked": True}, {}, "locked at the start"),
        ({"screen_on": True, "locked": False}, {"screen_on": False}, "off at the end"),
    ],
)
def test_a_screen_that_was_off_or_locked_at_either_end_is_told(
    before: dict[str, bool], after: dict[str, bool], said: str
) -> None:
    run = sound_run(conditions=make_conditions(**before), conditions_after=make_conditions(**after))
    assert said in only_doubt(run).detail


@pytest.mark.parametrize(("load", "cores"), [(4.0, 8), (None, 8), (99.0, None)])
def test_half_the_cores_or_an_unknown_load_is_no_doubt(load: float | None, cores: int | None) -> None:
    unit = make_unit(is_phone=True, logical_cores=cores)
    assert kinds(sound_run(unit=unit, conditions=make_conditions(load_average_1m=load), settings=make_settings())) == []


def test_the_load_before_counts_only_where_nobody_counted_meanwhile() -> None:
    run = sound_run(conditions=make_conditions(load_average_1m=4.01))
    assert "4.01 on 8 cores" in only_doubt(run).detail
    assert kinds(run, trace(environment(other_cpu_percent=3.0))) == []


@pytest.mark.parametrize(("percent", "expected"), [(80.0, []), (81.0, ["background_load"])])
def test_others_may_take_a_tenth_of_the_cores(percent: float, expected: list[str]) -> None:
    assert kinds(sound_run(), trace(environment(other_cpu_percent=percent))) == expected


def test_only_readings_taken_while_timed_images_were_made_count() -> None:
    loading = environment(other_cpu_percent=700.0, device_boot_ns=1)
    assert kinds(sound_run(), trace(loading, environment())) == []


@pytest.mark.parametrize(("threads", "expected"), [(8, []), (9, ["oversubscribed"]), (None, [])])
def test_more_threads_than_cores_wait_for_each_other(threads: int | None, expected: list[str]) -> None:
    assert kinds(sound_run(settings=make_settings(threads=threads))) == expected

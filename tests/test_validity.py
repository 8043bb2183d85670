"""Doubts: each is raised by its cause, and by nothing else."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from profiler.records.device import Power
from profiler.records.run import Doubt, Run
from profiler.validity import doubts
from tests.records_for_tests import make_source
from tests.runs_for_tests import make_bundle_use, make_conditions, make_run, make_samples, make_unit

CAUSES: dict[str, dict[str, Any]] = {
    "not_a_phone": {"unit": make_unit(is_phone=False)},
    "virtual_device": {"unit": make_unit(is_phone=True, virtual=True)},
    "random_weights": {"bundle": make_bundle_use(source=make_source(weights_sha256="random:7"))},
    "too_few": {"iterations": make_samples((400_000_000,) * 4)},
    "charging": {"conditions": make_conditions(power=Power(battery_percent=80.0, external_power=True))},
    "background_load": {"conditions": make_conditions(load_average_1m=4.01)},
}


def _run(**fields: Any) -> Run:
    """Return a run on a phone that gives no cause for doubt, but for `fields`."""
    return make_run(**({"unit": make_unit(is_phone=True)} | fields))


def _kinds(run: Run) -> list[str]:
    return [doubt.kind for doubt in doubts(run)]


def test_a_sound_run_gives_no_doubt() -> None:
    assert doubts(_run(), ()) == ()


@pytest.mark.parametrize("kind", CAUSES)
def test_a_cause_raises_its_doubt_and_no_other(kind: str) -> None:
    assert _kinds(_run(**CAUSES[kind])) == [kind]


def test_every_kind_of_doubt_in_the_closed_list_has_a_cause_here() -> None:
    assert set(CAUSES) == set(get_args(get_type_hints(Doubt)["kind"]))


def test_doubts_come_in_the_order_of_the_closed_list() -> None:
    conditions = make_conditions(power=Power(battery_percent=80.0, external_power=True), load_average_1m=9.0)
    run = _run(
        unit=make_unit(is_phone=False, virtual=True),
        bundle=CAUSES["random_weights"]["bundle"],
        iterations=(),
        conditions=conditions,
    )
    assert _kinds(run) == list(get_args(get_type_hints(Doubt)["kind"]))


@pytest.mark.parametrize("kind", CAUSES)
def test_a_doubt_says_what_was_seen_and_what_to_do(kind: str) -> None:
    (doubt,) = doubts(_run(**CAUSES[kind]), ())
    assert doubt.detail.endswith(".")
    assert doubt.advice.endswith(".")


def test_a_doubt_names_the_number_that_caused_it() -> None:
    details = {kind: doubts(_run(**cause), ())[0].detail for kind, cause in CAUSES.items()}
    assert "Test Machine (Linux)" in details["not_a_phone"]
    assert "seed 7" in details["random_weights"]
    assert "Timed images: 4" in details["too_few"]
    assert "80 %" in details["charging"]
    assert "4.01 on 8 cores" in details["background_load"]


def test_only_timed_images_count() -> None:
    iterations = make_samples((400_000_000,) * 4) + make_samples(phase="warmup") + make_samples(phase="observer")
    assert _kinds(_run(iterations=iterations)) == ["too_few"]
    assert _kinds(_run(iterations=make_samples((400_000_000,) * 5))) == []


@pytest.mark.parametrize(
    "power",
    [
        Power(battery_percent=None, external_power=True),
        Power(battery_percent=80.0, external_power=False),
        Power(battery_percent=80.0, external_power=None),
    ],
)
def test_a_device_without_battery_or_off_the_cable_is_not_charging(power: Power) -> None:
    assert _kinds(_run(conditions=make_conditions(power=power))) == []


@pytest.mark.parametrize(("load", "cores"), [(4.0, 8), (None, 8), (99.0, None)])
def test_half_the_cores_or_an_unknown_load_is_no_doubt(load: float | None, cores: int | None) -> None:
    unit = make_unit(is_phone=True, logical_cores=cores)
    assert _kinds(_run(unit=unit, conditions=make_conditions(load_average_1m=load))) == []

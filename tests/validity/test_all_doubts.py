"""Each doubt of the closed list is raised by its cause, and by nothing else."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from msgspec.structs import replace

from profiler.quantities import NS_PER_MS, NS_PER_S
from profiler.records.device import Power
from profiler.records.job import Measurement
from profiler.records.run import Doubt, ImageFile, Run
from profiler.records.trace import ProcessTrace
from profiler.validity import doubts
from tests.records_for_tests import BOOT_NS, SHA_IMAGE, make_memory, make_source
from tests.runs_for_tests import (
    make_bundle_use,
    make_conditions,
    make_process,
    make_sample,
    make_samples,
    make_settings,
    make_unit,
)
from tests.validity.evidence_for_tests import (
    IMAGE_NS,
    canaries,
    environment,
    images,
    kinds,
    noisy,
    observers,
    only_doubt,
    sound_run,
    trace,
)

KINDS = get_args(get_type_hints(Doubt)["kind"])
END_NS = BOOT_NS + 60 * NS_PER_S


def _on(name: str, role: Any, sha256: str, deviation_levels: float = 60.0) -> ImageFile:
    return ImageFile(path=name, sha256=sha256, role=role, deviation_levels=deviation_levels)


def _rested() -> tuple[Any, ...]:
    """Return images that each followed a pause and took a fifth longer than those back to back."""
    rested = make_samples(tuple(round(1.2 * ns) for ns in noisy(10)), gap_ns=2 * NS_PER_S)
    pressed = observers([(ns, ns) for ns in noisy(10, seed=2)], start_boot_ns=END_NS)
    return images(rested, *pressed)


SLOWER = [1.0] * 15 + [1.15] * 15
CAUSES: dict[str, tuple[dict[str, Any], tuple[ProcessTrace, ...]]] = {
    "not_a_phone": ({"unit": make_unit(is_phone=False)}, ()),
    "virtual_device": ({"unit": make_unit(is_phone=True, virtual=True)}, ()),
    "synthetic": ({"synthetic": True}, ()),
    "unknown_model": ({"unit": make_unit(is_phone=True, profile="android")}, ()),
    "random_weights": ({"bundle": make_bundle_use(source=make_source(weights_sha256="random:7"))}, ()),
    "made_up_inputs": ({"settings": make_settings(made_up_inputs=("sample", "timestep"))}, ()),
    "broken_clock": ({"iterations": images(make_samples((IMAGE_NS, IMAGE_NS, 0, IMAGE_NS, IMAGE_NS)))}, ()),
    "implausible": ({"processes": (make_process(memory=make_memory(peak_bytes=1000)),)}, ()),
    "samples_lost": ({"iterations": images(make_samples(noisy(6)))[1:]}, ()),
    "blank_image": ({"images": (_on("output.png", "output", SHA_IMAGE, 0.0),)}, ()),
    "unchanged_image": ({"images": (_on("a.png", "source", SHA_IMAGE), _on("b.png", "output", SHA_IMAGE))}, ()),
    "not_deterministic": (
        {"iterations": images(make_samples(noisy(5)), make_sample(start_boot_ns=END_NS, image_sha256="0" * 64))},
        (),
    ),
    "too_few": ({"iterations": images(make_samples(noisy(4)))}, ()),
    "wide_interval": ({"iterations": images(make_samples(noisy(12, noise=0.25, seed=3)))}, ()),
    "coarse_clock": (
        {"iterations": images(make_samples(tuple(n * 10 * NS_PER_MS for n in (40, 41, 40, 41, 40, 40, 41, 40) * 3)))},
        (),
    ),
    "outliers": (
        {"iterations": images(make_samples(noisy(20, factor=[1, 1, 1, 1, 3, 1, 1, 1, 1, 3] * 2)))},
        (),
    ),
    "warming": ({"iterations": images(make_samples(noisy(20, factor=[1.6] + [1.0] * 19)))}, ()),
    "throttled": ({"iterations": images(make_samples(noisy(30, factor=SLOWER)))}, ()),
    "after_gap": ({"iterations": _rested(), "measurement": Measurement(kind="spaced", gap_s=2.0)}, ()),
    "observer_effect": (
        {
            "iterations": images(
                make_samples(noisy(6)),
                *observers([(round(1.1 * ns), ns) for ns in noisy(10)], start_boot_ns=END_NS),
            )
        },
        (),
    ),
    "charging": ({"conditions": make_conditions(power=Power(battery_percent=80.0, external_power=True))}, ()),
    "power_changed": ({}, (trace(environment(external_power=True), environment(external_power=False)),)),
    "low_battery": ({"conditions": make_conditions(power=Power(battery_percent=12.0, external_power=False))}, ()),
    "on_battery": ({"conditions": make_conditions(power=Power(battery_percent=80.0, external_power=False))}, ()),
    "power_save": ({"conditions": make_conditions(power_save=True, power_save_source="governor powersave")}, ()),
    "not_foreground": ({"conditions": make_conditions(screen_on=True, locked=True)}, ()),
    "background_load": ({}, (trace(environment(other_cpu_percent=95.0)),)),
    "oversubscribed": ({"settings": make_settings(threads=12)}, ()),
}


def _run(kind: str) -> tuple[Run, tuple[ProcessTrace, ...]]:
    fields, traces = CAUSES[kind]
    run = sound_run(**fields)
    if kind == "samples_lost":
        run = replace(run, settings=replace(run.settings, cold_starts=1, warmups=1))
    return run, traces


def _doubts(kind: str) -> list[Doubt]:
    """Return what a cause raises, but for what a computer always raises where the cause is about one."""
    run, traces = _run(kind)
    found = doubts(run, traces)
    if kind == "on_battery":
        found = doubts(replace(run, unit=make_unit(is_phone=False)), traces)
        return [doubt for doubt in found if doubt.kind != "not_a_phone"]
    return list(found)


def test_a_sound_run_gives_no_doubt() -> None:
    assert kinds(sound_run(), trace(environment())) == []


def test_every_kind_of_doubt_in_the_closed_list_has_a_cause_here() -> None:
    assert set(CAUSES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cause_raises_its_doubt_and_no_other(kind: str) -> None:
    assert [doubt.kind for doubt in _doubts(kind)] == [kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_doubt_says_what_was_seen_and_what_to_do(kind: str) -> None:
    (doubt,) = _doubts(kind)
    assert doubt.detail.endswith(".")
    assert doubt.advice.endswith(".")


def test_doubts_come_in_the_order_of_the_closed_list() -> None:
    run = sound_run(
        unit=make_unit(is_phone=False, virtual=True),
        iterations=images(make_samples(noisy(3))),
        conditions=make_conditions(load_average_1m=9.0, power_save=True),
        settings=make_settings(threads=99),
        canaries=canaries(100, 150),
    )
    found = kinds(run)
    assert found == sorted(found, key=KINDS.index)
    assert found == [
        "not_a_phone",
        "virtual_device",
        "power_save",
        "background_load",
        "oversubscribed",
        "too_few",
        "throttled",
    ]


def test_an_empty_run_raises_no_error() -> None:
    run = replace(sound_run(), iterations=(), processes=(), images=(), outcome="aborted")
    assert kinds(run) == ["too_few"]
    assert "Timed images: 0" in only_doubt(run).detail

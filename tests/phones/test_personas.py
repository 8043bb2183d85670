"""Personas are closed data, complete, and true to what phones show."""

from __future__ import annotations

import msgspec
import pytest

from tests.phones.personas import FOLDER, Persona, load_persona, persona_names


def test_there_are_the_six_that_end_to_end_tests_need() -> None:
    wanted = {"pixel9", "galaxy-s24", "xiaomi-14", "old-api29", "low-ram-4gb", "unknown-soc"}
    assert set(persona_names()) == wanted


def test_an_unknown_persona_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(FileNotFoundError, match="galaxy-s24"):
        load_persona("pixel1")


def test_an_unknown_key_is_an_error() -> None:
    text = (FOLDER / "pixel9.toml").read_text().replace("[gauge]\n", "[gauge]\ncurent = 3\n")
    with pytest.raises(msgspec.ValidationError, match="curent"):
        msgspec.toml.decode(text, type=Persona)


@pytest.mark.parametrize("name", persona_names())
def test_a_persona_makes_sense(name: str) -> None:
    persona = load_persona(name)
    assert persona.name == name
    props = persona.system.props
    fingerprint = props["ro.build.fingerprint"]
    assert f":{props['ro.build.version.release']}/{props['ro.build.id']}/" in fingerprint
    assert fingerprint.startswith(
        f"{props['ro.product.brand']}/{props['ro.product.name']}/{props['ro.product.device']}:"
    )
    cpus = [cpu for cluster in persona.clusters for cpu in cluster.cpus]
    assert cpus == list(range(len(cpus)))
    for step in persona.throttling.steps:
        assert step.clear_c < step.onset_c
    onsets = [(step.onset_c, -step.clock) for step in persona.throttling.steps]
    assert onsets == sorted(onsets)
    assert persona.thermal_service.thresholds_c == sorted(persona.thermal_service.thresholds_c)
    assert len(persona.thermal_service.thresholds_c) == 6
    memory = persona.memory
    assert memory.fixed_bytes + memory.others_bytes < memory.total_bytes
    assert persona.storage.free_bytes < persona.storage.total_bytes
    assert {"ac", "usb", "wireless"} == set(persona.battery.charger_w)


@pytest.mark.parametrize("name", persona_names())
def test_rails_carry_all_that_is_drawn_or_there_are_none(name: str) -> None:
    rails = load_persona(name).rails.values()
    for consumer in ("work", "screen", "base"):
        shares = sum(getattr(rail, consumer) for rail in rails)
        assert shares == pytest.approx(1.0 if rails else 0.0)


def test_the_personas_differ_in_what_a_product_must_see_through() -> None:
    personas = [load_persona(name) for name in persona_names()]
    assert {persona.gauge.current for persona in personas} == {"microamperes", "milliamperes", "zero", None}
    assert {persona.gauge.discharge_is_negative for persona in personas} == {True, False}
    assert {persona.dialect.battery for persona in personas} == {
        "android10", "android13", "android14", "samsung", "xiaomi",
    }  # fmt: skip
    assert {bool(persona.system.adb_features) for persona in personas} == {True, False}

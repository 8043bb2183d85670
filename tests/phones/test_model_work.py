"""Work costs what the persona says, lasts exactly as foreseen, and holds memory for its while."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.phones.model_physics import FULL_SPEED
from tests.phones.models_for_tests import PID, call, driven_model, load, pass_seconds, persona_with

QUIET = {"call_noise": 0.0, "load_noise": 0.0}
# One nanosecond a parameter, and no memory for however many.
WEIGHTLESS = {**QUIET, "ns_per_parameter": 1.0, "activation_bytes_per_parameter": 0.0}


def test_a_call_at_full_clock_costs_what_the_persona_says() -> None:
    model = driven_model(persona_with(work=QUIET))
    facts = model.persona.work
    expected = facts.call_overhead_ns + 10_000_000 * facts.ns_per_parameter + 1000 * facts.ns_per_output_byte
    assert call(model, 10_000_000, 1000) == round(expected)


def test_noise_only_delays_and_is_the_same_for_the_same_seed() -> None:
    model, again = driven_model(), driven_model()
    quiet = call(driven_model(persona_with(work=QUIET)))
    durations = [call(model) for _ in range(5)]
    assert durations == [call(again) for _ in range(5)]
    assert min(durations) >= quiet
    assert len(set(durations)) == 5


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8_000), st.lists(st.integers(20, 900), min_size=1, max_size=4))
def test_what_was_foreseen_is_what_integration_does_to_the_nanosecond(work_ms: int, steps_ms: list[int]) -> None:
    model = driven_model(persona_with("xiaomi-14", work=WEIGHTLESS))
    model.physics.temperatures = model.physics.temperatures._replace(skin=39.99, die=60.0, battery=39.0)
    with model.present():
        foreseen_ns = model.work.call(PID, "d", "f", work_ms * 1_000_000, 0)
    done, start_ns, steps = 0, model.boot_ns(), itertools.cycle(steps_ms)
    while model.physics.load == "call":
        # Count the work done independently of the look-ahead: speed times time, in the pieces that a sampler makes.
        sample_ns = min(model.boot_ns() + next(steps) * 1_000_000, start_ns + foreseen_ns)
        while model.boot_ns() < sample_ns:
            before_ns, speed = model.boot_ns(), model.physics.speed()
            model.advance(min(model.physics.next_tick_ns(), sample_ns))
            done += (model.boot_ns() - before_ns) * speed
    assert model.boot_ns() - start_ns == foreseen_ns
    asked = model.persona.work.call_overhead_ns + work_ms * 1_000_000
    # The last nanosecond may be begun without being needed whole.
    assert asked * FULL_SPEED <= done < (asked + 1) * FULL_SPEED


def test_a_call_that_heats_the_phone_into_throttling_is_foreseen_with_it() -> None:
    cool, warm = driven_model(persona_with(work=WEIGHTLESS)), driven_model(persona_with(work=WEIGHTLESS))
    warm.physics.temperatures = warm.physics.temperatures._replace(skin=38.9, die=60.0, battery=38.0)
    assert call(warm, 10_000_000_000) > call(cool, 10_000_000_000)
    assert [throttled.clock for throttled in warm.truth.throttled] == [0.86]


def test_a_throttled_phone_takes_longer_by_the_clock_it_lost() -> None:
    model = driven_model(persona_with(work=QUIET))
    full_ns = call(model)
    model.throttle_to(0.4)
    pass_seconds(model, 0.05)
    assert call(model) == pytest.approx(full_ns / 0.4, rel=1e-6)


def test_an_ordered_clock_in_the_middle_of_a_call_is_foreseen() -> None:
    model = driven_model(persona_with(work=QUIET))
    full_ns = call(model, 1_000_000_000)
    model.throttle_to(0.5, after_s=full_ns / 2e9)
    assert call(model, 1_000_000_000) == pytest.approx(full_ns * 1.5, rel=0.05)


def test_loading_keeps_weights_and_gives_its_passing_memory_back() -> None:
    model = driven_model()
    process, facts = model.memory.processes[PID], model.persona.work
    file_bytes, anonymous = process.file_bytes, process.anonymous_bytes
    load(model, 1_000_000_000)
    assert process.file_bytes - file_bytes == 1_000_000_000
    assert process.anonymous_bytes - anonymous == round(1e9 * facts.load_anonymous_share)
    assert process.high_water_bytes - process.resident_bytes == round(1e9 * facts.load_transient_share)


def test_memory_grows_while_loading_not_at_its_end() -> None:
    model = driven_model()
    process = model.memory.processes[PID]
    with model.present():
        duration_ns = model.work.load(PID, "d", 2_000_000_000, 0)
    idle = process.resident_bytes
    model.advance(model.boot_ns() + duration_ns // 2)
    half = process.resident_bytes - idle
    assert 0.8e9 < half < 1.6e9


def test_a_process_is_killed_at_a_loads_highest_moment_even_if_it_is_over_in_an_instant() -> None:
    instant = {**QUIET, "load_overhead_ns": 0, "load_bytes_per_s": 1e15, "load_transient_share": 3.0}
    model = driven_model(persona_with("old-api29", work=instant))
    load(model, 1_300_000_000)
    assert [kill.why for kill in model.truth.kills] == ["low memory"]


def test_a_sample_between_two_ticks_sees_what_has_been_read_by_then() -> None:
    model = driven_model()
    process = model.memory.processes[PID]
    with model.present():
        model.work.load(PID, "d", 2_000_000_000, 0)
    seen = set()
    for _ in range(9):
        model.advance(model.boot_ns() + 20_000_000)
        seen.add(process.resident_bytes)
    assert len(seen) == 9


def test_a_call_holds_activations_only_while_it_lasts() -> None:
    model = driven_model()
    process, facts = model.memory.processes[PID], model.persona.work
    before = process.resident_bytes
    call(model, 100_000_000, 1_000_000)
    needed = round(1e8 * facts.activation_bytes_per_parameter + 1e6 * facts.activation_bytes_per_output_byte)
    assert process.resident_bytes == before
    assert process.high_water_bytes == before + needed


def test_unloading_frees_what_loading_kept_and_nothing_twice() -> None:
    model = driven_model()
    process = model.memory.processes[PID]
    before = process.resident_bytes
    load(model, 500_000_000)
    with model.present():
        model.work.unload(PID, "denoiser")
        model.work.unload(PID, "denoiser")
        model.work.unload(PID, "never loaded")
    assert process.resident_bytes == before


def test_a_canary_tells_the_clock_and_lasts_for_all_its_rounds() -> None:
    model = driven_model()
    with model.present():
        cool_ns = model.work.canary(PID, 10)
    assert cool_ns == model.persona.work.canary_round_ns
    model.advance(model.boot_ns() + 10 * cool_ns)
    assert model.physics.load == "idle"
    model.throttle_to(0.5)
    pass_seconds(model, 0.05)
    with model.present():
        assert model.work.canary(PID, 1) == 2 * cool_ns


def test_a_call_that_is_not_waited_for_is_cut_and_its_memory_freed() -> None:
    model = driven_model()
    before = model.memory.processes[PID].resident_bytes
    with model.present():
        model.work.call(PID, "d", "f", 1_000_000_000, 0)
    pass_seconds(model, 0.1)
    with model.present():
        model.work.canary(PID, 1)
    assert model.truth.done[-1].cut
    assert model.truth.done[-1].duration_ns == 100_000_000
    assert model.memory.processes[PID].resident_bytes == before

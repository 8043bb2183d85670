"""What really happened, exactly."""

from __future__ import annotations

import pytest

from tests.phones.models_for_tests import PID, call, driven_model, load, pass_seconds
from tests.phones.truth import Peak


def test_energy_between_two_moments_is_exact_wherever_they_lie() -> None:
    model = driven_model()
    idle_w = model.physics.watts()
    start_ns = model.boot_ns() + 123_456_789
    pass_seconds(model, 10.0)
    first = model.truth.energy_between(start_ns, start_ns + 1_000_000_000)
    assert first.total == pytest.approx(idle_w, rel=1e-9)
    assert first.above_idle == 0.0
    begin_ns = model.boot_ns()
    duration_ns = call(model)
    pass_seconds(model, 5.0)
    around = model.truth.energy_between(begin_ns - 10**9, model.boot_ns())
    assert around.above_idle == pytest.approx(model.persona.power.call_w * duration_ns / 1e9, rel=1e-6)


def test_intervals_add_up() -> None:
    model = driven_model()
    start_ns = model.boot_ns()
    for _ in range(3):
        call(model)
        pass_seconds(model, 1.0)
    end_ns, middle_ns = model.boot_ns(), start_ns + 1_234_567_891
    parts = [model.truth.energy_between(*pair) for pair in ((start_ns, middle_ns), (middle_ns, end_ns))]
    assert sum(part.total for part in parts) == pytest.approx(model.truth.energy_between(start_ns, end_ns).total)


def test_a_peak_is_the_highest_of_a_processs_life() -> None:
    model = driven_model()
    load(model, 1_000_000_000)
    with model.present():
        model.work.unload(PID, "denoiser")
    process = model.memory.processes[PID]
    assert model.truth.peaks[PID] == Peak(process.high_water_bytes, process.high_water_bytes)
    model.end_process(PID)
    assert PID in model.truth.peaks


def test_a_peak_counts_what_was_swapped_at_that_moment() -> None:
    model = driven_model("low-ram-4gb")
    load(model, 900_000_000, "text_encoder")
    load(model, 300_000_000, "denoiser")
    peak, process = model.truth.peaks[PID], model.memory.processes[PID]
    assert process.swapped_bytes > 0
    assert peak.resident_bytes == process.high_water_bytes
    assert peak.resident_bytes < peak.resident_and_swapped_bytes


def test_temperatures_are_kept_twice_a_second() -> None:
    model = driven_model()
    start_ns = model.boot_ns()
    call(model, 5_000_000_000)
    kept = [at for at, _ in model.truth.temperatures()]
    assert kept[1] - kept[0] == 500_000_000
    assert model.truth.temperatures_at(model.boot_ns()).die > model.truth.temperatures_at(start_ns).die + 3
    assert model.truth.temperatures_at(0) == model.truth.temperatures_at(start_ns)


def test_onsets_are_counted_once_until_the_clock_is_whole_again() -> None:
    model = driven_model()
    start_ns = model.boot_ns()
    for seconds, clock in ((1, 0.8), (2, 0.5), (3, 1.0), (4, 0.7)):
        model.throttle_to(clock, after_s=seconds)
    pass_seconds(model, 10.0)
    assert [moment - start_ns for moment in model.truth.throttle_onsets_ns()] == [10**9, 4 * 10**9]


def test_iterations_begin_with_their_first_component_and_end_with_their_last_call() -> None:
    model = driven_model()

    def image() -> int:
        begun_ns = model.boot_ns()
        for component in ("text_encoder", "text_encoder", "denoiser", "denoiser", "decoder"):
            with model.present():
                duration_ns = model.work.call(PID, component, "main", 10_000_000, 0)
            model.advance(model.boot_ns() + duration_ns)
        return model.boot_ns() - begun_ns

    load(model, 100_000_000)
    first = image()
    with model.present():
        round_ns = model.work.canary(PID, 3)
    model.advance(model.boot_ns() + 3 * round_ns)
    pass_seconds(model, 3.0)
    since_ns = model.boot_ns()
    second = image()
    assert model.truth.iterations_ns("text_encoder") == [first, second]
    assert model.truth.iterations_ns("text_encoder", since_ns=since_ns) == [second]

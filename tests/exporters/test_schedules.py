"""Schedulers as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from diffusers import (
    DDIMScheduler,
    DDPMScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    LCMScheduler,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.parts import Floats
from exporters.schedules import DrawnNoise, Schedule, ScheduleTable, Trace, constant, fresh, probe, tabulate
from profiler import codec
from profiler.errors import InputError
from profiler.records.plan import Schedules
from tests.exporters.schedulers import SCHEDULERS
from tests.exporters.small_pipelines import sd_scheduler

FEW = (1, 2, 3, 4, 7, 20)
TERMS = {"pndm": 4, "lms": 4, "unipc": 3, "dpm_2m": 2, "dpm_2m_sde": 2, "dpm_single": 2, "deis": 2, "heun": 2}
STOCHASTIC = {"euler_ancestral", "ddpm", "dpm_2m_sde", "lcm"}


def tabulated(scheduler: Any, *counts: Any) -> ScheduleTable:
    return tabulate(type(scheduler).__name__, fresh(scheduler), *counts)


def replay(table: ScheduleTable, schedule: Schedule, trace: Trace) -> Floats:
    """Run the recurrence in float32 over another trace's start, predictions and noise; return the last sample."""
    samples = [_single(trace.samples[0])]
    coefficients = _single(schedule.coefficients)
    for index in range(schedule.rounds):
        after = np.zeros_like(samples[0])
        for back in range(min(table.terms, index + 1)):
            a, b = coefficients[index, 2 * back : 2 * back + 2]
            after = after + a * samples[index - back] + b * _single(trace.outputs[index - back])
        if table.stochastic:
            after = after + coefficients[index, -1] * _single(trace.noises[index])
        samples.append(after)
    return samples[-1]


def _single(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float32)


def relative_error(found: Any, expected: Any) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_numbers_repeat_the_schedulers_own_loop_on_data_they_were_not_fitted_to(name: str) -> None:
    scheduler = SCHEDULERS[name]()
    table = tabulated(scheduler, [4], FEW)
    for steps, schedule in table.by_steps.items():
        trace = probe(fresh(scheduler), steps, seed=99)
        assert relative_error(replay(table, schedule, trace), trace.samples[-1]) < 2e-5, steps
    assert table.terms == TERMS.get(name, 1)
    assert table.stochastic == (name in STOCHASTIC)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(set(SCHEDULERS) - {"lms"})),
    steps=st.integers(min_value=2, max_value=60),
    seed=st.integers(min_value=2, max_value=2**31),
)
def test_any_step_count_and_seed_gives_the_same_loop(name: str, steps: int, seed: int) -> None:
    scheduler = SCHEDULERS[name]()
    if name == "lcm":
        steps = min(steps, 50)
    table = tabulated(scheduler, [steps], ())
    trace = probe(fresh(scheduler), steps, seed=seed)
    assert relative_error(replay(table, table.by_steps[steps], trace), trace.samples[-1]) < 5e-5


@pytest.mark.parametrize(("name", "rounds"), [("ddim", 6), ("pndm", 7), ("heun", 11)])
def test_there_are_as_many_rounds_as_the_scheduler_has_timesteps(name: str, rounds: int) -> None:
    schedule = tabulated(SCHEDULERS[name](), [6], ()).by_steps[6]
    assert schedule.rounds == rounds
    constants = schedule.constants()
    assert constants["timesteps"].shape == (rounds, 1)
    assert constants["next_input_scales"].shape == (rounds, 1)
    assert constants["coefficients"].shape[0] == rounds


def test_input_scales_are_the_schedulers_own() -> None:
    scheduler = sd_scheduler(EulerDiscreteScheduler)
    schedule = tabulated(scheduler, [5], ()).by_steps[5]
    scheduler.set_timesteps(5)
    sigmas = scheduler.sigmas[:5].double().numpy()
    np.testing.assert_allclose(schedule.input_scales, 1 / np.sqrt(sigmas**2 + 1), rtol=1e-6)
    assert schedule.start_scale == pytest.approx(float(scheduler.init_noise_sigma))


def test_the_last_rounds_next_input_scale_is_one_because_nothing_follows() -> None:
    schedule = tabulated(sd_scheduler(EulerDiscreteScheduler), [5], ()).by_steps[5]
    assert schedule.constants()["next_input_scales"].values[-1] == 1.0


@pytest.mark.parametrize(
    "options",
    [{"clip_sample": True}, {"clip_sample": False, "thresholding": True}],
    ids=["clip_sample", "thresholding"],
)
def test_a_scheduler_that_is_not_linear_is_refused(options: dict[str, bool]) -> None:
    with pytest.raises(InputError, match="not linear") as caught:
        tabulated(sd_scheduler(DDIMScheduler, **options), [5], ())
    assert "clip_sample" in str(caught.value)


def test_step_counts_that_the_scheduler_refuses_are_left_out() -> None:
    table = tabulated(sd_scheduler(LCMScheduler, original_inference_steps=10), [4])
    assert sorted(table.by_steps) == list(range(1, 11))


def test_a_required_step_count_that_the_scheduler_refuses_is_an_input_error() -> None:
    with pytest.raises(InputError, match="LCMScheduler cannot run with 20 steps"):
        tabulated(sd_scheduler(LCMScheduler, original_inference_steps=10), [20])


def test_a_flow_matching_scheduler_without_input_scaling_is_probed_too() -> None:
    table = tabulated(FlowMatchEulerDiscreteScheduler(), [4], ())
    np.testing.assert_allclose(table.by_steps[4].coefficients[:, 0], 1, atol=1e-6)
    assert table.by_steps[4].start_scale == 1.0


def test_probing_leaves_the_given_scheduler_as_it_was() -> None:
    scheduler = sd_scheduler(DDPMScheduler, clip_sample=False)
    scheduler.set_timesteps(7)
    before = scheduler.timesteps.clone()
    tabulated(scheduler, [3], ())
    assert torch.equal(scheduler.timesteps, before)


def test_the_record_of_fifty_step_counts_is_small_and_reads_back() -> None:
    table = tabulated(SCHEDULERS["dpm_2m"](), [20])
    data = codec.encode(table.record())
    assert len(data) < 100_000
    assert codec.decode(data, Schedules, where="here") == table.record()
    assert set(table.by_steps) == set(range(1, 51))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_a_constant_gives_the_same_float32_numbers_again(values: list[float]) -> None:
    found = np.array(constant(np.array(values)).values, dtype=np.float32)
    np.testing.assert_array_equal(found, np.array(values, dtype=np.float32))


def test_drawn_noise_is_found_again_and_zero_where_there_was_none() -> None:
    drawn = DrawnNoise(torch.Generator().manual_seed(5))
    expected = torch.randn((2, 3), generator=drawn.generator)
    assert torch.equal(drawn.since_last((2, 3)), expected)
    assert not drawn.since_last((2, 3)).any()
    after = torch.randn((2, 3), generator=drawn.generator)
    assert torch.equal(drawn.since_last((2, 3)), after)

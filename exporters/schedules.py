"""Any linear diffusers scheduler as numbers, found by probing the scheduler itself, not by re-deriving its formulas."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from exporters.quiet import quiet
from profiler.errors import InputError
from profiler.records.plan import Constant, Schedules

STEP_COUNTS = range(1, 51)
MAX_TERMS = 4
# Some schedulers compute in float32 whatever they are given, so an exact fit still leaves some 1e-7.
_LARGEST_RESIDUAL = 2e-5
# Early rounds repeat columns up to float32 rounding; directions that small carry nothing.
_RANK_CUTOFF = 1e-6
_PROBE_SHAPE = (1, 4, 16, 16)
_REFUSALS = (ValueError, IndexError, TypeError, ZeroDivisionError, RuntimeError, AssertionError, NotImplementedError)

Array = npt.NDArray[np.float64]
# Step count → a fresh scheduler that is set up for it.
Schedulers = Callable[[int], Any]


class Trace(NamedTuple):
    """One loop of the real scheduler over random model outputs; `noises` are zero where it drew none.

    `samples` has one row more than `outputs`: x₀ … xₙ, each flattened.
    """

    samples: Array
    outputs: Array
    noises: Array
    timesteps: Array
    input_scales: Array
    start_scale: float


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One step count as numbers: x₀ = start_scale · noise, then per round i

    xᵢ₊₁ = Σⱼ (coefficients[i, 2j] · xᵢ₋ⱼ + coefficients[i, 2j+1] · eᵢ₋ⱼ) [+ coefficients[i, -1] · zᵢ].

    The denoiser sees input_scales[i] · xᵢ at timesteps[i].
    """

    timesteps: Array
    input_scales: Array
    start_scale: float
    coefficients: Array

    @property
    def rounds(self) -> int:
        """Count the denoiser rounds; PNDM and Heun make more than there are steps."""
        return len(self.timesteps)

    def constants(self) -> dict[str, Constant]:
        """Return the plan constants that change with the step count."""
        after = np.append(self.input_scales[1:], 1.0)
        return {
            "start_scale": constant(np.array([self.start_scale])),
            "first_input_scale": constant(self.input_scales[:1]),
            "timesteps": constant(self.timesteps[:, None]),
            "next_input_scales": constant(after[:, None]),
            "coefficients": constant(self.coefficients),
        }


@dataclass(frozen=True, kw_only=True)
class ScheduleTable:
    """A scheduler's step counts; all share `terms`, the samples and predictions that an update looks at."""

    scheduler: str
    terms: int
    stochastic: bool
    by_steps: Mapping[int, Schedule]

    def record(self) -> Schedules:
        """Return the table as the bundle stores it."""
        by_steps = {steps: schedule.constants() for steps, schedule in self.by_steps.items()}
        return Schedules(scheduler=self.scheduler, constants_by_steps=by_steps)


def constant(values: npt.NDArray[Any]) -> Constant:
    """Turn an array into a plan constant whose decimals are the shortest that give the same float32 again."""
    singles = np.asarray(values, dtype=np.float32)
    return Constant(dtype="float32", shape=singles.shape, values=tuple(float(str(value)) for value in singles.ravel()))


def fresh(scheduler: Any) -> Schedulers:
    """Make copies of a scheduler, each set up for a step count."""

    def make(steps: int) -> Any:
        copy = type(scheduler).from_config(scheduler.config)
        copy.set_timesteps(steps)
        return copy

    return make


def tabulate(
    name: str, schedulers: Schedulers, required: Iterable[int], counts: Iterable[int] = STEP_COUNTS
) -> ScheduleTable:
    """Probe a scheduler, which `name` is told as, at every step count that it accepts.

    Raises InputError where it refuses a required count or is not linear (thresholding, clip_sample).
    """
    needed = set(required)
    traces = {
        steps: trace for steps in sorted(needed | set(counts)) if (trace := _try(name, schedulers, steps, needed))
    }
    stochastic = any(trace.noises.any() for trace in traces.values())
    terms, fits = _smallest_fit(name, traces, stochastic)
    by_steps = {steps: _schedule(traces[steps], coefficients) for steps, coefficients in fits.items()}
    return ScheduleTable(scheduler=name, terms=terms, stochastic=stochastic, by_steps=by_steps)


def probe(schedulers: Schedulers, steps: int, seed: int = 0) -> Trace:
    """Run a fresh scheduler once over seeded random tensors."""
    with quiet(), np.errstate(all="ignore"):
        return _run(schedulers(steps), seed)


def _run(scheduler: Any, seed: int) -> Trace:
    random = torch.Generator().manual_seed(seed)
    start_scale = float(getattr(scheduler, "init_noise_sigma", 1.0))  # flow-matching schedulers have none
    samples = [torch.randn(_PROBE_SHAPE, generator=random) * start_scale]
    outputs, noises, scales = [], [], []
    draw = DrawnNoise(torch.Generator().manual_seed(seed + 1))
    for timestep in scheduler.timesteps:
        scales.append(_input_scale(scheduler, samples[-1], timestep))
        outputs.append(torch.randn(_PROBE_SHAPE, generator=random))
        samples.append(_step(scheduler, outputs[-1], timestep, samples[-1], draw.generator))
        noises.append(draw.since_last(_PROBE_SHAPE))
    return Trace(_rows(samples), _rows(outputs), _rows(noises), _timesteps(scheduler), np.array(scales), start_scale)


class DrawnNoise:
    """Finds out what a scheduler drew from a generator by drawing it again from a copy."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self._state = generator.get_state()

    def since_last(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return the normal tensor drawn since the last call, or zeros where nothing was."""
        before, self._state = self._state, self.generator.get_state()
        if torch.equal(before, self._state):
            return torch.zeros(shape)
        return torch.randn(shape, generator=torch.Generator().set_state(before))


def _step(
    scheduler: Any, output: torch.Tensor, timestep: Any, sample: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    extra = {"generator": generator} if "generator" in inspect.signature(scheduler.step).parameters else {}
    # Clones, because PNDM keeps and adds to what it is given.
    after: torch.Tensor = scheduler.step(output.clone(), timestep, sample.clone(), return_dict=False, **extra)[0]
    return after


def _input_scale(scheduler: Any, sample: torch.Tensor, timestep: Any) -> float:
    if not hasattr(scheduler, "scale_model_input"):
        return 1.0
    scaled = scheduler.scale_model_input(sample.clone(), timestep).double()
    exact = sample.double()
    scale = float((scaled * exact).sum() / exact.square().sum())
    if not torch.allclose(scaled, scale * exact, rtol=1e-5, atol=1e-6):
        raise InputError(f"{type(scheduler).__name__} does more to the denoiser's input than scale it")
    return scale


def _rows(tensors: list[torch.Tensor]) -> Array:
    return torch.stack(tensors).flatten(1).double().numpy()


def _timesteps(scheduler: Any) -> Array:
    return np.asarray(scheduler.timesteps.double().numpy())


def _try(name: str, schedulers: Schedulers, steps: int, needed: set[int]) -> Trace | None:
    try:
        trace = probe(schedulers, steps)
    except _REFUSALS as error:
        if steps in needed:
            raise InputError(f"{name} cannot run with {steps} steps: {error}") from error
        return None
    if not all(np.isfinite(array).all() for array in trace):
        if steps in needed:
            raise InputError(f"{name} gives infinite or undefined samples with {steps} steps")
        return None
    return trace


def _smallest_fit(name: str, traces: dict[int, Trace], stochastic: bool) -> tuple[int, dict[int, Array]]:
    for terms in range(1, MAX_TERMS + 1):
        fits = {steps: fit for steps, trace in traces.items() if (fit := _fit(trace, terms, stochastic)) is not None}
        if len(fits) == len(traces):
            return terms, fits
    raise InputError(
        f"{name} is not linear in its last {MAX_TERMS} samples and predictions, so no plan can express it",
        hint="Schedulers with thresholding or clip_sample are of this kind; switch that off in the scheduler's config.",
    )


def _fit(trace: Trace, terms: int, stochastic: bool) -> Array | None:
    rows = []
    for columns, target in _equations(trace, terms, stochastic):
        row = _solve(columns, target)
        if np.linalg.norm(columns @ row - target) > _LARGEST_RESIDUAL * np.linalg.norm(target):
            return None
        rows.append(row)
    return np.array(rows)


def _equations(trace: Trace, terms: int, stochastic: bool) -> Iterator[tuple[Array, Array]]:
    nothing = np.zeros_like(trace.outputs[0])
    for index in range(len(trace.outputs)):
        columns = []
        for back in range(terms):
            there = index - back >= 0
            columns += [trace.samples[index - back], trace.outputs[index - back]] if there else [nothing, nothing]
        columns += [trace.noises[index]] if stochastic else []
        yield np.stack(columns, axis=1), trace.samples[index + 1]


def _solve(columns: Array, target: Array) -> Array:
    """Solve least squares with the smallest norm over columns of unit length; an empty column gets 0."""
    lengths = np.linalg.norm(columns, axis=0)
    safe = np.where(lengths > 0, lengths, 1.0)
    solution, *_ = np.linalg.lstsq(columns / safe, target, rcond=_RANK_CUTOFF)
    return np.asarray(solution / safe)


def _schedule(trace: Trace, coefficients: Array) -> Schedule:
    return Schedule(
        timesteps=trace.timesteps,
        input_scales=trace.input_scales,
        start_scale=trace.start_scale,
        coefficients=coefficients,
    )

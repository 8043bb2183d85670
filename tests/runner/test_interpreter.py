from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from profiler.clock import FakeClock
from profiler.records.plan import Free, Load, Loop, Plan, Unload
from profiler.runner.interpreter import Cancelled, Interpreter, Iteration, Watcher, to_pixels
from tests.records_for_tests import NETWORK, STEPS, make_bundle, make_plan, port
from tests.runner.fake_engine import FakeEngine

COSTS_NS = {"text_encoder": 100, "denoiser": 1000, "guide_step": 10, "decoder": 300}
INPUTS = {"tokens": np.zeros((1, 16), np.int32), "noise": np.full((1, 4, 8, 8), 2, np.float32)}


class Notes(Watcher):
    """Remembers what it hears, and cancels at the check of that number."""

    def __init__(self, cancel_at: int | None = None) -> None:
        self.begun: list[tuple[str, str | None]] = []
        self.loads: dict[str, int] = {}
        self._cancel_at = cancel_at
        self._checks = 0

    def begin(self, stage: str, component: str | None) -> None:
        self.begun.append((stage, component))

    def loaded(self, component: str, duration_ns: int) -> None:
        self.loads[component] = duration_ns

    def check(self) -> None:
        self._checks += 1
        if self._checks == self._cancel_at:
            raise Cancelled


class Bench:
    """An interpreter over fakes."""

    def __init__(
        self, plan: Plan | None = None, *, watcher: Watcher | None = None, costs_ns: Any = COSTS_NS, **answers: Any
    ) -> None:
        self.clock = FakeClock(boot_ns=1_000_000)
        self.engine = FakeEngine(self.clock, costs_ns, answers)
        self.interpreter = Interpreter(
            plan or make_plan(),
            make_bundle().components,
            Path("nowhere"),
            self.engine,
            watcher=watcher,
            clock=self.clock,
        )

    def image(self) -> Iteration:
        self.interpreter.prepare()
        self.engine.asked.clear()
        return self.interpreter.iterate(INPUTS)


def loop_of(plan: Plan) -> Loop:
    return next(step for step in plan.body if isinstance(step, Loop))


def with_loop(**fields: Any) -> Plan:
    plan = make_plan()
    return replace(plan, body=tuple(replace(step, **fields) if isinstance(step, Loop) else step for step in plan.body))


def test_prepare_loads_each_component_once_and_tells_how_long_it_took() -> None:
    notes = Notes()
    bench = Bench(watcher=notes, costs_ns={"load decoder": 70})
    bench.interpreter.prepare()
    assert bench.engine.asked == [f"load {name}" for name in NETWORK]
    assert notes.begun == [("load", name) for name in NETWORK]
    assert notes.loads == {"text_encoder": 0, "denoiser": 0, "guide_step": 0, "decoder": 70}


def test_an_image_is_made_by_the_calls_in_the_plans_order() -> None:
    bench = Bench()
    bench.image()
    assert bench.engine.asked == ["text_encoder", *["denoiser", "guide_step"] * STEPS, "decoder"]


def test_stage_times_add_up_to_the_iteration() -> None:
    iteration = Bench().image()
    times = {stage.stage: stage.duration_ns for stage in iteration.stages}
    assert times == {"encode_text": 100, "denoise": STEPS * 1010, "decode": 300, "finish": 0}
    assert sum(times.values()) == iteration.end_ns - iteration.start_ns


def test_rounds_of_a_loop_are_timed_one_by_one() -> None:
    iteration = Bench().image()
    assert [stage.rounds_ns for stage in iteration.stages] == [None, (1010,) * STEPS, None, None]


def test_a_stage_is_named_by_its_largest_component() -> None:
    notes = Notes()
    Bench(watcher=notes).image()
    assert notes.begun[-4:] == [
        ("encode_text", "text_encoder"),
        ("denoise", "denoiser"),
        ("decode", "decoder"),
        ("finish", None),
    ]


def test_a_loop_carries_what_its_body_emits_and_starts_from_the_initial_value() -> None:
    seen: list[float] = []

    def add_one(feeds: Mapping[str, Any]) -> list[Any]:
        seen.append(float(feeds["latents"][0, 0, 0, 0]))
        return [feeds["latents"] + 1]

    decoded: list[float] = []

    def decode(feeds: Mapping[str, Any]) -> list[Any]:
        decoded.append(float(feeds["latents"].max()))
        return [np.zeros((1, 3, 64, 64), np.float32)]

    bench = Bench(guide_step=add_one, decoder=decode)
    bench.image()
    bench.interpreter.iterate(INPUTS)
    assert seen == [2, 3, 2, 3]
    assert decoded == [4, 4]


def test_a_loop_hands_out_its_tensors_row_by_row() -> None:
    rows: list[list[float]] = []

    def note(feeds: Mapping[str, Any]) -> list[Any]:
        rows.append(feeds["timestep"].tolist())
        return [feeds["latents"]]

    Bench(denoiser=note).image()
    assert rows == [[1000.0], [500.0]]


def test_a_loop_may_count_and_give_its_round_as_int32() -> None:
    rounds: list[Any] = []

    def note(feeds: Mapping[str, Any]) -> list[Any]:
        rounds.append((feeds["timestep"].dtype, feeds["timestep"].tolist()))
        return [feeds["latents"]]

    plan = with_loop(over=3, index="timestep")
    plan = replace(plan, inputs=(*plan.inputs, port("step_size", 1)))
    bench = Bench(plan, denoiser=note)
    bench.interpreter.prepare()
    bench.interpreter.iterate({**INPUTS, "step_size": np.ones(1, np.float32)})
    assert rounds == [(np.int32, [0]), (np.int32, [1]), (np.int32, [2])]


def test_freed_values_are_forgotten() -> None:
    plan = make_plan()
    freed = replace(plan, body=(plan.body[0], Free(values=("embedding",)), *plan.body[1:]))
    bench = Bench(freed)
    with pytest.raises(KeyError, match="embedding"):
        bench.image()


def test_values_of_one_image_do_not_reach_the_next() -> None:
    bench = Bench()
    bench.image()
    with pytest.raises(KeyError, match="noise"):
        bench.interpreter.iterate({"tokens": INPUTS["tokens"]})


def test_a_sequential_plan_loads_and_unloads_as_stages_of_their_own() -> None:
    plan = make_plan()
    encode, *rest = plan.body
    others = [Load(component=name) for name in NETWORK if name != "text_encoder"]
    body = (Load(component="text_encoder"), encode, Unload(component="text_encoder"), *others, *rest)
    bench = Bench(replace(plan, prepare=(), body=body), costs_ns={**COSTS_NS, "load text_encoder": 50})
    first, second = bench.image(), bench.interpreter.iterate(INPUTS)
    for iteration in (first, second):
        assert [(stage.stage, stage.duration_ns) for stage in iteration.stages][:4] == [
            ("load", 50),
            ("encode_text", 100),
            ("unload", 0),
            ("load", 0),
        ]
    assert bench.engine.asked.count("load text_encoder") == 2


def test_an_unloaded_component_cannot_be_called() -> None:
    plan = make_plan()
    bench = Bench(replace(plan, body=(Unload(component="decoder"), *plan.body)))
    with pytest.raises(KeyError, match="decoder"):
        bench.image()


@pytest.mark.parametrize("calls", [1, 2, 4])
def test_a_cancel_stops_before_the_next_call(calls: int) -> None:
    notes = Notes(cancel_at=len(NETWORK) + calls)
    bench = Bench(watcher=notes)
    with pytest.raises(Cancelled):
        bench.image()
    assert len(bench.engine.asked) == calls - 1


def test_a_cancel_stops_before_the_next_load() -> None:
    bench = Bench(watcher=Notes(cancel_at=2))
    with pytest.raises(Cancelled):
        bench.interpreter.prepare()
    assert bench.engine.asked == ["load text_encoder"]


def test_pixels_are_rounded_to_the_nearest_and_laid_out_by_rows() -> None:
    image = np.zeros((1, 3, 1, 2), np.float32)
    image[0, :, 0, 0] = (0.4, 0.6, 254.6)
    image[0, :, 0, 1] = (255, 128, 1.5)
    pixels = to_pixels(image)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert pixels.tolist() == [[[0, 1, 255], [255, 128, 2]]]

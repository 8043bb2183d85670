from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image
from safetensors.numpy import load_file, save_file

from profiler.bundle_files import sha256_of
from profiler.clock import FakeClock
from profiler.inputs import Wishes
from profiler.journal import JOURNAL_FILE, Journal, read_journal
from profiler.quantities import NS_PER_S
from profiler.records.event import AnyEvent, Artifact, Begin, Idle, IterationDone, LoadDone, Rest, Stop
from profiler.records.job import InputFile, Job, Measurement
from profiler.records.plan import Output
from profiler.runner.engines.engine import Engine, EngineFailure
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from profiler.runner.office import Office
from profiler.runner.work import Work
from tests.runner.fake_engine import FakeEngine
from tests.small_bundle import SIDE, Fault, build_small_bundle, make_order, make_small_job

T = TypeVar("T")
NewEngine = Callable[[FakeClock], Engine]


def real_engine(clock: FakeClock) -> Engine:
    return OnnxRuntimeEngine(threads=1)


def fake_engine(clock: FakeClock) -> Engine:
    costs = {"load decoder": 5_000, "text_encoder": 100_000, "denoiser": 1_000_000, "decoder": 300_000}
    return FakeEngine(clock, costs)


def do(job: Job, storage: Path, new_engine: NewEngine = real_engine, *, cancel: bool = False) -> list[AnyEvent]:
    """Run a job to its end and return its journal."""
    clock, cancelled = FakeClock(), threading.Event()
    if cancel:
        cancelled.set()
    journal = Journal(storage / JOURNAL_FILE, job.job_id, clock)
    # The machine that runs the tests may be busy; the gate has tests of its own.
    Work(job, storage, journal, new_engine(clock), clock, cancelled, other_cpu_percent=lambda: 0.0).run()
    return list(read_journal(storage / JOURNAL_FILE))


def of(events: list[AnyEvent], kind: type[T]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def stop_of(events: list[AnyEvent]) -> Stop:
    assert isinstance(events[-1], Stop)
    return events[-1]


def faulty(fault: Fault, tmp_path: Path) -> Job:
    return make_small_job(build_small_bundle(tmp_path / "bundle", fault=fault), tmp_path)


def test_a_job_makes_its_images_in_the_order_of_its_phases(small_bundle: Path, tmp_path: Path) -> None:
    job = make_small_job(small_bundle, tmp_path, warmups=1, repeats=2, observer_pairs=2)
    events = do(job, tmp_path)
    images = of(events, IterationDone)
    assert [(image.phase, image.iteration) for image in images] == [
        ("cold", 0),
        ("warmup", 0),
        ("timed", 0),
        ("timed", 1),
        *(("observer", number) for number in range(4)),
    ]
    assert [image.traced for image in images] == [True] * 5 + [False, False, True]
    assert stop_of(events).outcome == "completed"
    assert (stop_of(events).reason, stop_of(events).stage, stop_of(events).component) == (None, None, None)


def test_a_journal_begins_with_the_idle_memory_and_names_each_load_before_it(
    small_bundle: Path, tmp_path: Path
) -> None:
    events = do(make_small_job(small_bundle, tmp_path), tmp_path)
    assert isinstance(events[0], Idle)
    loads = [event.component for event in of(events, LoadDone)]
    begun = [event.component for event in of(events, Begin) if event.phase == "load"]
    assert loads == begun == ["text_encoder", "guide_step", "denoiser", "decoder"]


def test_the_lifetime_peak_is_at_least_the_idle_memory(small_bundle: Path, tmp_path: Path) -> None:
    events = do(make_small_job(small_bundle, tmp_path), tmp_path)
    idle, peak = of(events, Idle)[0].memory.resident_bytes, stop_of(events).memory.peak_bytes
    assert idle is not None
    assert peak is not None
    assert peak >= idle


def test_times_of_an_image_are_those_of_the_clock_and_add_up(small_bundle: Path, tmp_path: Path) -> None:
    events = do(make_small_job(small_bundle, tmp_path, repeats=1), tmp_path, fake_engine)
    cold, timed = of(events, IterationDone)
    assert cold.duration_ns == timed.duration_ns == 100_000 + 4 * 1_000_000 + 300_000
    assert sum(stage.duration_ns for stage in timed.stages) == timed.duration_ns
    assert (cold.gap_ns, timed.gap_ns) == (None, timed.start_boot_ns - cold.start_boot_ns - cold.duration_ns)
    assert {load.component: load.duration_ns for load in of(events, LoadDone)}["decoder"] == 5_000


def test_a_deterministic_model_keeps_its_image_once(small_bundle: Path, tmp_path: Path) -> None:
    events = do(make_small_job(small_bundle, tmp_path, repeats=3), tmp_path)
    (kept,) = of(events, Artifact)
    assert hashlib.sha256((tmp_path / kept.path).read_bytes()).hexdigest() == kept.sha256
    with Image.open(tmp_path / kept.path) as image:
        assert (image.size, image.mode) == ((SIDE, SIDE), "RGB")
        pixels = np.asarray(image)
    assert {image.image_sha256 for image in of(events, IterationDone)} == {hashlib.sha256(pixels.tobytes()).hexdigest()}


def test_a_model_that_is_not_deterministic_keeps_each_image_up_to_a_limit(small_bundle: Path, tmp_path: Path) -> None:
    values = iter(range(100))

    def another(feeds: Mapping[str, Any]) -> list[Any]:
        return [np.full((1, 3, SIDE, SIDE), next(values), np.float32)]

    job = make_small_job(small_bundle, tmp_path, repeats=11)
    events = do(job, tmp_path, lambda clock: FakeEngine(clock, answers={"decoder": another}))
    assert len(of(events, Artifact)) == 8
    assert len({image.image_sha256 for image in of(events, IterationDone)}) == 12


def test_an_edit_changes_with_its_source_image(small_bundle: Path, tmp_path: Path) -> None:
    events = do(make_small_job(small_bundle, tmp_path, task="edit"), tmp_path)
    assert stop_of(events).outcome == "completed"
    assert "image_encoder" in {event.component for event in of(events, LoadDone)}


def test_a_sequential_plan_loads_anew_for_each_image(tmp_path: Path) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", sequential=True)
    events = do(make_small_job(bundle, tmp_path, repeats=1), tmp_path)
    assert stop_of(events).outcome == "completed"
    assert [load.component for load in of(events, LoadDone)].count("denoiser") == 2


def test_an_image_that_is_not_finite_is_the_models_failure(tmp_path: Path) -> None:
    events = do(faulty("nan_image", tmp_path), tmp_path)
    stop = stop_of(events)
    assert stop.outcome == "failed"
    assert stop.reason == "broken_image: the image has values that are not finite"
    assert (stop.stage, stop.component) == ("decoder", "decoder")
    assert len(of(events, IterationDone)) == 1
    assert of(events, Artifact) == []


def test_a_graph_that_fails_names_stage_and_component(tmp_path: Path) -> None:
    stop = stop_of(do(faulty("failing_call", tmp_path), tmp_path))
    assert stop.outcome == "failed"
    assert (stop.reason or "").startswith("inference_failed: text_encoder: ")
    assert (stop.stage, stop.component) == ("text_encoder", "text_encoder")


def test_a_file_that_is_no_graph_fails_in_its_load(tmp_path: Path) -> None:
    stop = stop_of(do(faulty("broken_graph", tmp_path), tmp_path))
    assert stop.outcome == "failed"
    assert (stop.reason or "").startswith("load_failed: decoder: ")
    assert (stop.stage, stop.component) == ("load", "decoder")


def test_a_load_that_fails_names_its_component_and_the_runtimes_reason(small_bundle: Path, tmp_path: Path) -> None:
    job = make_small_job(small_bundle, tmp_path)
    events = do(job, tmp_path, lambda clock: FakeEngine(clock, broken={"guide_step": "out_of_memory"}))
    stop = stop_of(events)
    assert stop.reason == "out_of_memory: guide_step: as the test wants it"
    assert (stop.outcome, stop.stage, stop.component) == ("failed", "load", "guide_step")


def test_of_several_components_in_a_stage_the_one_that_fails_is_named(small_bundle: Path, tmp_path: Path) -> None:
    def fail(feeds: Mapping[str, Any]) -> list[Any]:
        raise EngineFailure("inference_failed", "guide_step", "no")

    job = make_small_job(small_bundle, tmp_path)
    stop = stop_of(do(job, tmp_path, lambda clock: FakeEngine(clock, answers={"guide_step": fail})))
    assert (stop.outcome, stop.reason) == ("failed", "inference_failed: guide_step: no")
    assert (stop.stage, stop.component) == ("denoiser", "guide_step")


def test_memory_that_runs_out_outside_of_the_runtime_is_the_models_failure(small_bundle: Path, tmp_path: Path) -> None:
    def no_memory(feeds: Mapping[str, Any]) -> list[Any]:
        raise MemoryError

    job = make_small_job(small_bundle, tmp_path)
    stop = stop_of(do(job, tmp_path, lambda clock: FakeEngine(clock, answers={"denoiser": no_memory})))
    assert (stop.outcome, stop.stage, stop.component) == ("failed", "denoiser", "denoiser")
    assert (stop.reason or "").startswith("out_of_memory: ")


def test_a_bug_in_the_runner_is_written_down_as_one(small_bundle: Path, tmp_path: Path) -> None:
    def bug(feeds: Mapping[str, Any]) -> list[Any]:
        return [1 / 0]

    job = make_small_job(small_bundle, tmp_path)
    stop = stop_of(do(job, tmp_path, lambda clock: FakeEngine(clock, answers={"denoiser": bug})))
    assert stop.reason == "runner_error: ZeroDivisionError: division by zero"


def test_a_plan_with_an_unknown_component_is_refused(small_bundle: Path, tmp_path: Path) -> None:
    job = make_small_job(small_bundle, tmp_path)
    plan = replace(job.plan, prepare=(replace(job.plan.prepare[0], component="upscaler"),))
    stop = stop_of(do(replace(job, plan=plan), tmp_path))
    assert stop.outcome == "refused"
    assert "the bundle has no component 'upscaler'" in (stop.reason or "")


def test_a_job_of_a_phone_finds_its_bundle_where_the_phones_files_begin(small_bundle: Path, tmp_path: Path) -> None:
    on_phone = tmp_path / "root/data/local/tmp/bundle"
    shutil.copytree(small_bundle, on_phone)
    job = replace(make_small_job(small_bundle, tmp_path), bundle="/data/local/tmp/bundle")
    clock = FakeClock()
    journal = Journal(tmp_path / JOURNAL_FILE, job.job_id, clock)
    office = Office(tmp_path, {}, clock, root=tmp_path / "root")
    inputs = replace(job.inputs, path=Path(job.inputs.path).name)
    Work(
        replace(job, inputs=inputs),
        tmp_path,
        journal,
        real_engine(clock),
        clock,
        threading.Event(),
        locate=office.locate,
        other_cpu_percent=lambda: 0.0,
    ).run()
    assert stop_of(list(read_journal(journal.path))).outcome == "completed"


def test_a_rest_before_the_timed_images_is_kept_with_its_moments(small_bundle: Path, tmp_path: Path) -> None:
    job = replace(make_small_job(small_bundle, tmp_path, repeats=1), rest_s=30.0)
    events = do(job, tmp_path, fake_engine)
    (rest,) = of(events, Rest)
    assert rest.end_boot_ns - rest.start_boot_ns == pytest.approx(30 * NS_PER_S, rel=0.01)
    timed = next(event for event in of(events, IterationDone) if event.phase == "timed")
    assert rest.end_boot_ns <= timed.start_boot_ns


def test_an_untethered_job_on_a_machine_without_a_battery_is_aborted_with_the_reason(
    small_bundle: Path, tmp_path: Path
) -> None:
    stop = stop_of(do(replace(make_small_job(small_bundle, tmp_path, repeats=1), untethered=True), tmp_path))
    assert stop.outcome == "aborted"
    assert "external power" in (stop.reason or "")


def test_inputs_other_than_the_jobs_are_refused(small_bundle: Path, tmp_path: Path) -> None:
    job = make_small_job(small_bundle, tmp_path)
    wrong = replace(job, inputs=InputFile(path=job.inputs.path, sha256="0" * 64))
    stop = stop_of(do(wrong, tmp_path))
    assert stop.outcome == "refused"
    assert "is not the input file that the job names" in (stop.reason or "")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensors: {"prompt_ids": tensors["prompt_ids"]}, "has no input 'noise'"),
        (lambda tensors: {**tensors, "noise": tensors["noise"].astype(np.float64)}, "'noise' is float64 [1, 4, 4, 4]"),
        (lambda tensors: {**tensors, "noise": tensors["noise"][..., :3].copy()}, "'noise' is float32 [1, 4, 4, 3]"),
    ],
)
def test_inputs_that_the_plan_cannot_take_are_refused_by_name(
    small_bundle: Path, tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], says: str
) -> None:
    job = make_small_job(small_bundle, tmp_path)
    path = tmp_path / "other.safetensors"
    save_file(change(load_file(tmp_path / job.inputs.path)), path)
    stop = stop_of(do(replace(job, inputs=InputFile(path=path.name, sha256=sha256_of(path))), tmp_path))
    assert stop.outcome == "refused"
    assert says in (stop.reason or "")


def test_a_bundle_other_than_the_jobs_is_refused(small_bundle: Path, tmp_path: Path) -> None:
    job = make_small_job(small_bundle, tmp_path, bundle_sha256="0" * 64)
    stop = stop_of(do(job, tmp_path))
    assert stop.outcome == "refused"
    assert "is not the bundle that the job names" in (stop.reason or "")


def test_a_folder_without_a_bundle_is_refused(small_bundle: Path, tmp_path: Path) -> None:
    stop = stop_of(do(make_small_job(small_bundle, tmp_path, bundle=str(tmp_path)), tmp_path))
    assert stop.outcome == "refused"
    assert "holds no bundle" in (stop.reason or "")


def test_a_cancelled_job_is_interrupted_before_its_first_load(small_bundle: Path, tmp_path: Path) -> None:
    events = do(make_small_job(small_bundle, tmp_path), tmp_path, cancel=True)
    assert (stop_of(events).outcome, stop_of(events).reason) == ("interrupted", "cancelled")
    assert of(events, LoadDone) == []


def test_spaced_images_wait_for_their_gap(small_bundle: Path, tmp_path: Path) -> None:
    measurement = Measurement(kind="spaced", gap_s=30.0)
    job = make_small_job(small_bundle, tmp_path, repeats=2, measurement=measurement)
    timed = [image for image in of(do(job, tmp_path, fake_engine), IterationDone) if image.phase == "timed"]
    assert all(image.gap_ns is not None and 30 * NS_PER_S <= image.gap_ns < 31 * NS_PER_S for image in timed)


def test_sustained_images_go_on_for_their_minutes_whatever_repeats_says(small_bundle: Path, tmp_path: Path) -> None:
    def second(feeds: Mapping[str, Any]) -> list[Any]:
        clocks[0].advance(NS_PER_S)
        return [np.zeros((1, 3, SIDE, SIDE), np.float32)]

    clocks: list[FakeClock] = []

    def engine(clock: FakeClock) -> Engine:
        clocks.append(clock)
        return FakeEngine(clock, answers={"decoder": second})

    measurement = Measurement(kind="sustained", minutes=0.5)
    job = make_small_job(small_bundle, tmp_path, repeats=1, measurement=measurement)
    timed = [image for image in of(do(job, tmp_path, engine), IterationDone) if image.phase == "timed"]
    assert len(timed) == 30


@pytest.mark.parametrize("steps", [1, 8])
def test_a_job_runs_at_each_step_count_of_its_schedules(small_bundle: Path, tmp_path: Path, steps: int) -> None:
    order = make_order(small_bundle, wishes=Wishes(steps=steps))
    events = do(replace(make_small_job(small_bundle, tmp_path), plan=order.plan), tmp_path)
    (image,) = of(events, IterationDone)
    rounds = next(stage.rounds_ns for stage in image.stages if stage.stage == "denoiser")
    assert rounds is not None
    assert len(rounds) == steps


def ending_in_a_tensor(job: Job) -> Job:
    """Return a job that ends before its decoder, in the latents."""
    *body, _, _ = job.plan.body
    output = Output(value="latents", stage="denoiser", media="tensor")
    return replace(job, plan=replace(job.plan, body=(*body, output)))


def test_a_tensor_is_timed_and_hashed_and_no_picture_is_kept(small_bundle: Path, tmp_path: Path) -> None:
    events = do(ending_in_a_tensor(make_small_job(small_bundle, tmp_path, repeats=2)), tmp_path)
    assert stop_of(events).outcome == "completed"
    images = of(events, IterationDone)
    assert len(images) == 3
    assert len({image.image_sha256 for image in images}) == 1
    assert of(events, Artifact) == []
    assert list(tmp_path.glob("*.ppm")) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_tensor_that_is_not_finite_is_the_models_failure(small_bundle: Path, tmp_path: Path, value: float) -> None:
    def spoilt(feeds: Mapping[str, Any]) -> list[Any]:
        return [np.full((1, 4, 4, 4), value, np.float32)]

    def engine(clock: FakeClock) -> Engine:
        return FakeEngine(clock, answers={"guide_step": spoilt})

    stop = stop_of(do(ending_in_a_tensor(make_small_job(small_bundle, tmp_path)), tmp_path, engine))
    assert (stop.outcome, stop.reason) == ("failed", "broken_image: the output has values that are not finite")

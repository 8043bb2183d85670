from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image

from profiler import codec
from profiler.catalog import device_profile
from profiler.clock import FakeClock, RealClock
from profiler.collecting import LAUNCH_FILE
from profiler.devices.device import Away, Device, Ended, Place
from profiler.devices.local import LocalDevice
from profiler.errors import DeviceError, InputError, RunnerLost
from profiler.inputs import Wishes
from profiler.journal import read_journal
from profiler.leftovers import collect_abandoned
from profiler.quantities import NS_PER_S
from profiler.records.device import Conditions, Unit
from profiler.records.event import AnyEvent, Begin, IterationDone, Stop
from profiler.records.run import Launch, Run
from profiler.session import Order, Progress, bundle_use, measure
from profiler.store import OpenSession, Store
from tests.messages_for_tests import make_failed_journal, make_journal
from tests.sessions_for_tests import (
    FakeDevice,
    FakeRunner,
    open_sessions,
    until,
    without_images,
)
from tests.small_bundle import SIDE, build_small_bundle, make_order

GOOD = without_images(make_journal())


def silent(state: Progress) -> None:
    """Report to nobody."""


def local() -> LocalDevice:
    return LocalDevice(device_profile("local"), RealClock())


def do(order: Order, device: Device, store: Store, report: Callable[[Progress], None] = silent) -> Run:
    return measure(order, device, store, RealClock(), report)


def at(phase: str, action: Callable[[], None], *, iteration: int = 0) -> Callable[[Progress], None]:
    """Return a report that acts once an image of that phase is done."""

    def report(state: Progress) -> None:
        event = state.event
        if isinstance(event, IterationDone) and (event.phase, event.iteration) == (phase, iteration):
            action()

    return report


@pytest.fixture(scope="module")
def whole_session(
    small_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Order, Store, Run, list[Progress]]:
    """A session of three fresh processes on this machine, measured once."""
    store, states = Store(tmp_path_factory.mktemp("whole") / "store"), []
    order = make_order(
        small_bundle,
        task="edit",
        wishes=Wishes(seed=5, steps=3),
        cold_starts=3,
        warmups=2,
        repeats=4,
        observer_pairs=2,
    )
    return order, store, do(order, local(), store, states.append), states


def test_a_whole_session_is_a_completed_run_of_every_image_asked_for(
    whole_session: tuple[Order, Store, Run, list[Progress]],
) -> None:
    _, store, run, _ = whole_session
    assert (run.outcome, run.reason) == ("completed", None)
    assert store.load(run.run_id) == run
    phases = [(sample.process, sample.phase) for sample in run.iterations]
    assert phases == [
        (0, "cold"),
        (1, "cold"),
        (2, "cold"),
        *[(2, "warmup")] * 2,
        *[(2, "timed")] * 4,
        *[(2, "observer")] * 4,
    ]


def test_each_process_is_fresh_and_tells_its_load_and_its_peak(
    whole_session: tuple[Order, Store, Run, list[Progress]],
) -> None:
    _, _, run, _ = whole_session
    components = {"text_encoder", "image_encoder", "guide_step", "denoiser", "decoder"}
    for process in run.processes:
        assert process.outcome == "completed"
        assert set(process.load_ns_by_component) == components
        assert process.first_image_ns is not None
        assert process.launch_ns is not None
        assert process.memory is not None
        assert process.memory.peak_bytes is not None
        assert process.idle_memory is not None
        assert process.idle_memory.resident_bytes is not None
        assert process.memory.peak_bytes >= process.idle_memory.resident_bytes


def test_a_run_tells_everything_it_was_made_with(whole_session: tuple[Order, Store, Run, list[Progress]]) -> None:
    order, _, run, _ = whole_session
    settings = run.settings
    assert (settings.prompt, settings.seed, settings.steps, settings.scheduler) == ("make it blue", 5, 3, "euler")
    assert settings.source_image == "the bundle's own"
    assert settings.inputs_sha256 == order.inputs.sha256
    assert (settings.cold_starts, settings.warmups, settings.repeats, settings.threads) == (3, 2, 4, 1)
    assert run.bundle.sha256 == order.bundle_sha256
    assert (run.model, run.task, run.unit.profile) == ("small", "edit", "local")
    assert run.engine is not None
    assert run.engine.startswith("onnxruntime ")
    assert run.started_wall_ns < run.ended_wall_ns
    assert "not_a_phone" in {doubt.kind for doubt in run.doubts}


def test_the_output_and_the_source_image_lie_beside_the_run(
    whole_session: tuple[Order, Store, Run, list[Progress]],
) -> None:
    _, store, run, _ = whole_session
    assert sorted(image.role for image in run.images) == ["output", "source"]
    for image in run.images:
        with Image.open(store.folder(run.run_id) / image.path) as picture:
            assert (picture.format, picture.size) == ("PNG", (SIDE, SIDE))


def test_journals_of_all_processes_are_whole(whole_session: tuple[Order, Store, Run, list[Progress]]) -> None:
    _, store, run, _ = whole_session
    for process in run.processes:
        events = list(read_journal(store.folder(run.run_id) / process.journal))
        assert isinstance(events[-1], Stop)
        assert process.last_seq == len(events) - 1


def test_stages_of_each_image_add_up_to_it(whole_session: tuple[Order, Store, Run, list[Progress]]) -> None:
    _, _, run, _ = whole_session
    for sample in run.iterations:
        assert sum(stage.duration_ns for stage in sample.stages) == sample.duration_ns
        assert [stage.stage for stage in sample.stages] == ["text_encoder", "image_encoder", "denoiser", "decoder"]


def test_progress_tells_every_image_and_every_phase(whole_session: tuple[Order, Store, Run, list[Progress]]) -> None:
    _, _, run, states = whole_session
    assert [state.phase for state in states if state.event is None] == ["launch", "launch", "launch", "collect"]
    assert sum(isinstance(state.event, IterationDone) for state in states) == len(run.iterations)


def test_a_session_that_ended_leaves_only_its_run(whole_session: tuple[Order, Store, Run, list[Progress]]) -> None:
    _, store, run, _ = whole_session
    assert open_sessions(store) == []
    assert sorted(path.name for path in store.root.iterdir()) == ["runs", "sessions"]
    assert store.run_ids() == [run.run_id]


def test_a_device_that_fails_before_a_launch_leaves_nothing(small_bundle: Path, store: Store) -> None:
    class Unplugged(FakeDevice):
        def unit(self) -> Unit:
            raise DeviceError("no cable")

    with pytest.raises(DeviceError, match="no cable"):
        do(make_order(small_bundle), Unplugged(), store)
    assert open_sessions(store) == []
    assert store.run_ids() == []


def test_a_launch_that_fails_is_a_run_too(small_bundle: Path, store: Store) -> None:
    run = do(make_order(small_bundle), FakeDevice(fails_at=0, error=DeviceError("no cable")), store)
    assert (run.outcome, run.stage, run.reason) == ("aborted", "launch", "no cable")
    assert (run.iterations, len(run.processes)) == ((), 1)
    assert store.run_ids() == [run.run_id]
    assert open_sessions(store) == []


def test_a_device_that_fails_at_a_later_launch_keeps_the_images_before(small_bundle: Path, store: Store) -> None:
    device = FakeDevice(fails_at=1, error=DeviceError("the cable went"))
    run = do(make_order(small_bundle, cold_starts=3), device, store)
    assert (run.outcome, run.reason) == ("aborted", "the cable went")
    assert [(sample.process, sample.phase) for sample in run.iterations] == [(0, "cold"), (0, "timed")]
    assert [process.outcome for process in run.processes] == ["completed", "aborted"]
    assert open_sessions(store) == []


def test_a_connection_that_breaks_in_a_run_aborts_it_where_it_was(small_bundle: Path, store: Store) -> None:
    device = FakeDevice(events=until(Begin, 6)(GOOD), breaks=RunnerLost("it went silent"), exit_code=None)
    run = do(make_order(small_bundle), device, store)
    assert (run.outcome, run.reason) == ("aborted", "it went silent")
    assert (run.processes[0].stage, run.processes[0].component) == ("denoise", "denoiser")


def test_a_process_that_went_through_out_of_reach_has_completed_and_the_next_follows(
    small_bundle: Path, store: Store
) -> None:
    device = FakeDevice(breaks=RunnerLost("the runner closed the connection"))
    run = do(make_order(small_bundle, cold_starts=2), device, store)
    assert (run.outcome, run.reason, len(run.processes)) == ("completed", None, 2)


@pytest.mark.parametrize("stopped_by", [RunnerLost("it went silent"), DeviceError("its cable broke")])
def test_what_cannot_be_fetched_now_waits_for_a_later_command(
    small_bundle: Path, store: Store, stopped_by: DeviceError
) -> None:
    class Gone(FakeDevice):
        def fetch(self, place: Place) -> None:
            raise Away("it is gone")

    order = make_order(small_bundle, away_timeout_s=1.0)
    with pytest.raises(Away, match="it is gone"):
        do(order, Gone(events=until(Begin, 6)(GOOD), breaks=stopped_by), store)
    assert len(open_sessions(store)) == 1


def test_a_phone_that_goes_as_its_run_ends_is_waited_for(small_bundle: Path, store: Store) -> None:
    class Flickering(FakeDevice):
        def fetch(self, place: Place) -> None:
            super().fetch(place)
            if len(self.fetched) < 3:
                raise Away("it is gone")

    device = Flickering()
    run = do(make_order(small_bundle), device, store)
    assert (run.outcome, run.reason, len(device.fetched)) == ("completed", None, 3)


def test_a_runner_that_the_system_killed_is_the_models_failure(small_bundle: Path, store: Store) -> None:
    device = FakeDevice(events=until(Begin, 6)(GOOD), breaks=RunnerLost("it hung up"), exit_code=-9)
    run = do(make_order(small_bundle), device, store)
    assert run.outcome == "failed"
    assert (run.reason or "").startswith("runner_died: killed by signal 9")
    assert (run.stage, run.component) == ("denoise", "denoiser")


def test_a_model_that_fails_ends_the_session_before_the_next_process(small_bundle: Path, store: Store) -> None:
    device = FakeDevice(events=without_images(make_failed_journal()))
    run = do(make_order(small_bundle, cold_starts=3), device, store)
    assert (run.outcome, run.component) == ("failed", "denoiser")
    assert len(device.runners) == 1


def test_only_the_last_process_makes_timed_images(small_bundle: Path, store: Store) -> None:
    device = FakeDevice()
    do(make_order(small_bundle, cold_starts=3, warmups=2, repeats=7, observer_pairs=1), device, store)
    jobs = [runner.link.jobs[0] for runner in device.runners]
    assert [(job.warmups, job.repeats, job.observer_pairs) for job in jobs] == [(0, 0, 0), (0, 0, 0), (2, 7, 1)]
    assert len({job.job_id for job in jobs}) == 3


def test_a_runner_that_sees_other_files_than_were_pushed_is_not_started(small_bundle: Path, store: Store) -> None:
    device = FakeDevice(sees_sha256="0" * 64)
    run = do(make_order(small_bundle), device, store)
    assert (run.outcome, run.stage) == ("aborted", "launch")
    assert "sees another inputs.safetensors" in (run.reason or "")
    assert device.runners[0].link.jobs == []


def test_a_runner_killed_in_a_run_fails_it_with_stage_and_component_and_keeps_its_images(
    tmp_path: Path, store: Store
) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", slow=4)

    def kill() -> None:
        (session,) = (store.root / "sessions").iterdir()
        pid = codec.read(session / LAUNCH_FILE.format(0), Launch).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    run = do(make_order(bundle, repeats=500), local(), store, at("timed", kill, iteration=1))
    assert run.outcome == "failed"
    assert (run.reason or "").startswith("runner_died: killed by signal 9")
    assert run.stage in ("text_encoder", "denoiser", "decoder")
    assert run.component == run.stage
    assert [sample.phase for sample in run.iterations][:3] == ["cold", "timed", "timed"]
    assert len(run.iterations) < 500
    assert run.processes[0].memory is None
    assert open_sessions(store) == []


def test_ctrl_c_ends_the_runner_and_keeps_the_run_as_interrupted(tmp_path: Path, store: Store) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", slow=1)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(make_order(bundle, repeats=5000), local(), store, at("timed", stop))
    (run_id,) = store.run_ids()
    run = store.load(run_id)
    assert run.outcome == "interrupted"
    assert len(run.iterations) >= 2
    assert open_sessions(store) == []


def test_ctrl_c_in_a_launch_keeps_the_attempt_as_interrupted(small_bundle: Path, store: Store) -> None:
    device = FakeDevice(fails_at=0, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        do(make_order(small_bundle), device, store)
    (run_id,) = store.run_ids()
    run = store.load(run_id)
    assert (run.outcome, run.stage, run.reason) == ("interrupted", "launch", "stopped by the user")
    assert open_sessions(store) == []


def test_ctrl_c_before_a_launch_leaves_nothing(small_bundle: Path, store: Store) -> None:
    def stop(state: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(make_order(small_bundle), FakeDevice(), store, stop)
    assert store.run_ids() == []
    assert open_sessions(store) == []


def test_a_second_ctrl_c_leaves_the_session_for_the_next_command(small_bundle: Path, store: Store) -> None:
    class Quit(BaseException):
        pass

    class Impatient(FakeDevice):
        def recover(self, place: Place) -> Ended:
            raise Quit

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(Quit):
        do(make_order(small_bundle), Impatient(), store, at("timed", stop))
    assert store.run_ids() == []
    (run,) = collect_abandoned(store, lambda session: FakeDevice(), RealClock())
    assert isinstance(run, Run)
    assert [sample.phase for sample in run.iterations] == ["cold", "timed"]


def test_ctrl_c_while_a_run_is_built_builds_it_anew(small_bundle: Path, store: Store) -> None:
    class Interrupted(Store):
        asked = 0

        def building_run(self, session: OpenSession) -> AbstractContextManager[Path]:
            self.asked += 1
            if self.asked == 1:
                raise KeyboardInterrupt
            return super().building_run(session)

    with pytest.raises(KeyboardInterrupt):
        do(make_order(small_bundle), FakeDevice(), Interrupted(store.root))
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "completed"
    assert open_sessions(store) == []


def test_ctrl_c_while_a_whole_session_is_closed_leaves_its_run(small_bundle: Path, store: Store) -> None:
    class Interrupted(Store):
        def close(self, session: OpenSession) -> None:
            if session.folder.is_dir():
                session.folder.rename(session.folder.with_name(f".{session.run_id}.closed"))
                raise KeyboardInterrupt
            super().close(session)

    with pytest.raises(KeyboardInterrupt):
        do(make_order(small_bundle), FakeDevice(), Interrupted(store.root))
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "completed"
    assert open_sessions(store) == []


QUIET = 2  # moments: a second


@pytest.mark.parametrize(
    ("events", "outcome", "stage", "component"),
    [
        ((*until(Begin, 6)(GOOD), *[None] * QUIET), "failed", "denoise", "denoiser"),
        ((*until(Begin, 1)(GOOD), *[None] * QUIET), "failed", "load", "text_encoder"),
        ((*GOOD[:1], *[None] * QUIET), "aborted", None, None),
        ((None,) * QUIET, "aborted", "launch", None),
    ],
    ids=["image", "load", "before a load", "before anything"],
)
def test_a_runner_that_makes_no_progress_is_given_up(
    small_bundle: Path,
    store: Store,
    events: tuple[AnyEvent | None, ...],
    outcome: str,
    stage: str | None,
    component: str | None,
) -> None:
    device = FakeDevice(events=events, breaks=AssertionError("it was waited for"), exit_code=None)
    run = do(make_order(small_bundle, stall_timeout_s=1.0), device, store)
    assert (run.outcome, run.stage, run.component) == (outcome, stage, component)
    assert run.reason == "timed_out: no progress for 1 s, the limit that --timeout sets"
    assert run.processes[0].outcome == outcome


def test_a_runner_that_stops_when_it_is_given_up_on_has_timed_out_all_the_same(
    small_bundle: Path, store: Store
) -> None:
    class Obedient(FakeDevice):
        def launch(self, place: Place, token: str) -> FakeRunner:
            runner = super().launch(place, token)
            runner.last_words = replace(make_failed_journal()[-1], outcome="interrupted", reason="cancelled", seq=7)
            return runner

    device = Obedient(events=(*GOOD[:7], *[None] * QUIET), breaks=AssertionError("it was waited for"))
    run = do(make_order(small_bundle, stall_timeout_s=1.0), device, store)
    assert (run.outcome, run.reason) == ("failed", "timed_out: no progress for 1 s, the limit that --timeout sets")
    assert run.component == "denoiser"


def test_slow_but_steady_progress_is_no_stall(small_bundle: Path, store: Store) -> None:
    slowly = tuple(each for event in GOOD for each in (None, event))
    assert do(make_order(small_bundle, stall_timeout_s=1.0), FakeDevice(events=slowly), store).outcome == "completed"


def test_a_clock_that_is_set_changes_not_how_long_a_run_took(small_bundle: Path, store: Store) -> None:
    clock = FakeClock()

    def set_back(state: Progress) -> None:
        clock.advance(NS_PER_S)
        clock.set_wall(clock.wall_ns() - 86_400 * NS_PER_S)

    run = measure(make_order(small_bundle), FakeDevice(), store, clock, set_back)
    assert run.ended_wall_ns - run.started_wall_ns == clock.boot_ns() >= 10 * NS_PER_S


def test_a_bug_in_a_run_loses_nothing_that_was_measured(small_bundle: Path, store: Store) -> None:
    def bug() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        do(make_order(small_bundle), FakeDevice(), store, at("timed", bug))
    assert store.run_ids() == []
    (run,) = collect_abandoned(store, lambda session: FakeDevice(), RealClock())
    assert isinstance(run, Run)
    assert [sample.phase for sample in run.iterations] == ["cold", "timed"]


def test_a_store_that_cannot_be_written_stops_a_session_before_the_device_is_touched(
    small_bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    device = FakeDevice()
    with pytest.raises(InputError, match="cannot write to the store"):
        do(make_order(small_bundle), device, Store(tmp_path / "file"))
    assert device.runners == []


def test_a_failing_model_is_a_run_too(tmp_path: Path, store: Store) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", fault="nan_image")
    run = do(make_order(bundle, cold_starts=3), local(), store)
    assert (run.outcome, run.stage, run.component) == ("failed", "decoder", "decoder")
    assert len(run.processes) == 1


def test_a_full_store_is_told_of_and_keeps_what_was_launched(small_bundle: Path, store: Store) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(InputError, match=r"cannot write to the store .*: No space left on device") as caught:
        do(make_order(small_bundle), FakeDevice(fails_at=0, error=full), store)
    assert "the next profile command collects it" in str(caught.value)
    (run,) = collect_abandoned(store, lambda session: FakeDevice(), RealClock())
    assert isinstance(run, Run)
    assert run.stage == "launch"


def test_size_counts_the_files_that_a_task_reaches_each_once(small_bundle: Path) -> None:
    generate, edit = make_order(small_bundle), make_order(small_bundle, task="edit")
    uses = [bundle_use(order.bundle, order.bundle_sha256, order.plan) for order in (generate, edit)]
    extra = sum(entry.size_bytes for entry in edit.bundle.files if entry.path.startswith("components/image_encoder."))
    assert uses[1].size_bytes == uses[0].size_bytes + extra
    assert set(uses[0].size_by_component) == {"text_encoder", "guide_step", "denoiser", "decoder"}
    assert uses[0].total_size_bytes == sum(entry.size_bytes for entry in generate.bundle.files)


def test_a_runner_without_the_bundles_engine_refuses_and_says_how_to_get_it(store: Store, small_bundle: Path) -> None:
    order = make_order(small_bundle)
    recipe = replace(order.bundle.recipe, runtime="executorch")
    device = FakeDevice()
    run = measure(order._replace(bundle=replace(order.bundle, recipe=recipe)), device, store, RealClock(), silent)
    assert run.outcome == "refused"
    assert run.reason is not None
    assert "this runner has no executorch" in run.reason
    assert "pip install 'ondevice-profiler[executorch]'" in run.reason
    assert device.runners[0].link.jobs == []


class Leaving(FakeDevice):
    """A phone whose cable goes, and whose runner goes on without it."""

    def launch(self, place: Place, token: str) -> FakeRunner:
        runner = super().launch(place, token)
        runner.link.cut = True
        return runner


def test_a_phone_that_stays_away_keeps_its_run_for_a_later_command(small_bundle: Path, store: Store) -> None:
    device = Leaving(events=(*GOOD[:7], *[None] * QUIET), breaks=AssertionError("it was waited for"))
    order = make_order(small_bundle, stall_timeout_s=0.1, away_timeout_s=1.0)
    with pytest.raises(Away, match="has been away"):
        do(order, device, store)
    assert device.runners[0].link.hung_up
    assert device.fetched == device.recovered == []
    assert store.run_ids() == []
    (run,) = collect_abandoned(store, lambda session: FakeDevice(), RealClock())
    assert isinstance(run, Run)
    assert run.outcome == "interrupted"


def test_ctrl_c_while_a_phone_is_away_leaves_its_run_to_it(small_bundle: Path, store: Store) -> None:
    class Gone(Leaving):
        def recover(self, place: Place) -> Ended:
            raise Away("it is away")

        def fetch(self, place: Place) -> None:
            raise Away("it is away")

    def stop(state: Progress) -> None:
        if state.phase == "away":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(make_order(small_bundle), Gone(events=(*GOOD[:7], *[None] * QUIET)), store, stop)
    assert len(open_sessions(store)) == 1


def test_each_process_is_fetched_and_the_device_left_clean(small_bundle: Path, store: Store) -> None:
    device = FakeDevice()
    run = do(make_order(small_bundle, cold_starts=2), device, store)
    assert [place.name for place in device.fetched] == [f"{run.run_id}/0", f"{run.run_id}/1"]
    assert device.cleaned == [run.run_id]


def test_the_conditions_kept_are_those_after_settling(small_bundle: Path, store: Store) -> None:
    class Settling(FakeDevice):
        screen_on = False

        @contextmanager
        def settled(self, tell: Callable[[str], None]) -> Iterator[None]:
            tell("switching the screen on")
            self.screen_on = True
            yield
            self.screen_on = False

        def conditions(self, storage: Path) -> Conditions:
            return replace(super().conditions(storage), screen_on=self.screen_on)

    said: list[str] = []
    device = Settling()
    run = do(make_order(small_bundle), device, store, lambda state: said.append(state.phase))
    assert run.conditions.screen_on is True
    assert not device.screen_on
    assert "switching the screen on" in said

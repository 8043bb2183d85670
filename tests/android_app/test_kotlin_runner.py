"""The Kotlin runner as a process: the host's own link, the shipped bundle, and a stand-in for the phone's model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace
from PIL import Image

from profiler import __version__
from profiler.bundle_files import load_manifest, load_plan, manifest_sha256, sha256_of
from profiler.devices.link import Link
from profiler.errors import ProtocolError, RunnerLost
from profiler.journal import JOURNAL_FILE, read_journal
from profiler.quantities import MIB, NS_PER_MS, NS_PER_S
from profiler.records.event import AnyEvent, Artifact, IterationDone, LoadDone, Stop, Trace
from profiler.records.job import InputFile, Job, Measurement, OnDisconnect, Sampling
from profiler.records.message import EXIT_NO_SPACE
from profiler.records.record import Task
from tests.android_app.conftest import TOKEN, KotlinRunner, Runners
from tests.android_app.jar import PROJECT, runner_command
from tests.android_app.stand_in_model import BOOT_NS, CALL_NS, LOAD_NS, StandInModel
from tests.phones.control import ControlServer
from tests.phones.model import DeviceModel
from tests.phones.personas import load_persona

ON_DEVICE = "/data/local/tmp/bundles/nano"


def nano_job(runner: KotlinRunner, task: Task = "generate", **fields: Any) -> Job:
    """Put the shipped bundle on the device, its inputs into the storage, and return a job for them."""
    bundle_folder = runner.storage.parent / "root" / ON_DEVICE[1:]
    if not bundle_folder.exists():
        bundle_folder.parent.mkdir(parents=True)
        bundle_folder.symlink_to(PROJECT / "exporters/bundles/nano")  # there are to be no links in it only
    bundle = load_manifest(bundle_folder)
    inputs = shutil.copy(bundle_folder / bundle.tasks[task].defaults.path, runner.storage / "inputs.safetensors")
    job = Job(
        job_id="20250615-150640-000-5eed-0",
        bundle=ON_DEVICE,
        bundle_sha256=manifest_sha256(bundle_folder),
        plan=load_plan(bundle_folder, bundle, task),
        inputs=InputFile(path="inputs.safetensors", sha256=sha256_of(inputs)),
        engine="onnxruntime",
        threads=None,
        warmups=1,
        repeats=3,
        observer_pairs=1,
        measurement=Measurement(kind="burst"),
        sampling=Sampling(),
        on_disconnect=OnDisconnect(kind="stop_after_s", seconds=5),
    )
    return replace(job, **fields)


def events_of(link: Link, job: Job) -> list[AnyEvent]:
    link.start(job)
    return [event for event in link.events() if event is not None]


def stop_of(runner: KotlinRunner, job: Job) -> Stop:
    stop = events_of(runner.link(), job)[-1]
    assert isinstance(stop, Stop)
    return stop


def asked(model: StandInModel, what: str) -> list[dict[str, Any]]:
    return [request for request in model.asked if request["do"] == what]


def test_a_runner_says_that_it_is_android_virtual_and_synthetic(runners: Runners) -> None:
    runner = runners.start()
    hello = runner.stranger().hello(TOKEN)
    assert (hello.platform, hello.virtual, hello.synthetic) == ("android", True, True)
    assert hello.engines == {"onnxruntime": "synthetic", "executorch": "synthetic"}
    assert hello.runner_version == __version__
    assert hello.pid == runner.process.pid


def test_a_wrong_token_is_refused(runners: Runners) -> None:
    runner = runners.start()
    with pytest.raises(ProtocolError, match="not the token"):
        runner.stranger().hello("another")


@pytest.mark.parametrize("task", ["generate", "edit"])
def test_a_whole_job_on_the_shipped_bundle_is_told_as_it_stands_in_the_journal(runners: Runners, task: Task) -> None:
    runner = runners.start()
    link = runner.link()
    events = events_of(link, nano_job(runner, task))
    link.close()
    assert runner.exit_code() == 0
    assert events == list(read_journal(runner.storage / JOURNAL_FILE))
    stop = events[-1]
    assert isinstance(stop, Stop)
    assert (stop.outcome, stop.reason) == ("completed", None)
    images = [event for event in events if isinstance(event, IterationDone)]
    assert [image.phase for image in images] == ["cold", "warmup", *["timed"] * 3, *["observer"] * 2]
    assert not runner.model.attached


def test_every_line_of_a_journal_follows_the_protocols_schema(runners: Runners) -> None:
    runner = runners.start()
    stop_of(runner, nano_job(runner))
    schema = json.loads((PROJECT / "protocol/event.schema.json").read_bytes())
    validator = jsonschema.Draft202012Validator(schema)
    for line in (runner.storage / JOURNAL_FILE).read_bytes().splitlines():
        validator.validate(json.loads(line))


def test_times_are_those_of_the_model_to_the_nanosecond(runners: Runners) -> None:
    runner = runners.start()
    events = events_of(runner.link(), nano_job(runner))
    calls = len(asked(runner.model, "call"))
    images = [event for event in events if isinstance(event, IterationDone)]
    assert {image.duration_ns for image in images} == {CALL_NS * calls // len(images)}
    assert {event.duration_ns for event in events if isinstance(event, LoadDone)} == {LOAD_NS}
    assert events[0].device_boot_ns == BOOT_NS
    # Nothing but canaries and calls takes time: what the runner does itself costs none.
    assert all(image.gap_ns in (None, 0, 1 * NS_PER_MS, 2 * NS_PER_MS) for image in images)


def test_loads_ask_for_the_true_size_of_their_files(runners: Runners) -> None:
    runner = runners.start()
    stop = stop_of(runner, nano_job(runner))
    loads = {request["component"]: request["file_bytes"] for request in asked(runner.model, "load")}
    file = PROJECT / "exporters/bundles/nano/components/denoiser/predict.onnx"
    assert loads["denoiser"] == file.stat().st_size
    assert stop.memory.peak_bytes is not None
    assert stop.memory.peak_bytes >= runner.model.peak_bytes > 50 * MIB


def test_samples_fall_on_the_models_clock_at_their_intervals(runners: Runners) -> None:
    runner = runners.start()
    job = nano_job(runner, observer_pairs=0, measurement=Measurement(kind="spaced", gap_s=3))
    traces = [event for event in events_of(runner.link(), job) if isinstance(event, Trace)]
    memory = [sample.device_boot_ns for trace in traces for sample in trace.memory]
    assert {after - before for before, after in pairwise(memory)} == {20 * NS_PER_MS}
    environment = [sample for trace in traces for sample in trace.environment]
    assert len(environment) > 9
    assert {sample.temperature_millicelsius for sample in environment} == {41_500}
    assert {sample.battery_current_raw for sample in environment} == {-412_000}
    assert {sample.cpu_frequency_limit_khz for sample in environment} == {2_900_000}
    assert "other_cpu_percent" in traces[0].missing


def test_a_sustained_minute_is_exact_on_the_models_clock(runners: Runners) -> None:
    runner = runners.start()
    slow = Sampling(memory_interval_ms=1000, environment_interval_ms=10_000, canary_interval_ms=10_000)
    job = nano_job(runner, observer_pairs=0, measurement=Measurement(kind="sustained", minutes=1), sampling=slow)
    images = [event for event in events_of(runner.link(), job) if isinstance(event, IterationDone)]
    timed = [image for image in images if image.phase == "timed"]
    last = timed[-1].start_boot_ns - timed[0].start_boot_ns
    assert 60 * NS_PER_S - timed[0].duration_ns <= last < 60 * NS_PER_S


def test_a_job_runs_on_a_modelled_phone_as_on_the_stand_in(runners: Runners) -> None:
    model = DeviceModel(load_persona("pixel9"))
    with ControlServer(model) as control:
        runner = runners.start(address=control.address)
        model.start_process(runner.process.pid, "org.ondeviceprofiler.runner", 10123)
        events = events_of(runner.link(), nano_job(runner))
    stop = events[-1]
    assert isinstance(stop, Stop)
    assert (stop.outcome, stop.reason) == ("completed", None)
    samples = [sample for event in events if isinstance(event, Trace) for sample in event.environment]
    assert all(sample.temperature_millicelsius and sample.battery_current_raw for sample in samples)
    assert samples[-1].energy_microwattseconds_by_rail
    durations = {event.duration_ns for event in events if isinstance(event, IterationDone)}
    assert len(durations) > 1  # what a phone takes is not what it takes again


def test_a_picture_is_kept_and_is_not_blank(runners: Runners) -> None:
    runner = runners.start()
    kept = [event for event in events_of(runner.link(), nano_job(runner)) if isinstance(event, Artifact)]
    assert [event.path for event in kept] == ["cold-0.ppm"]
    assert sha256_of(runner.storage / kept[0].path) == kept[0].sha256
    with Image.open(runner.storage / kept[0].path) as image:
        assert image.size == (64, 64)
        assert all(low < 100 and high > 150 for low, high in image.getextrema())


def test_a_replay_after_a_cut_gives_what_was_missed(runners: Runners) -> None:
    runner = runners.start()
    job = nano_job(runner)
    first = runner.link()
    whole = events_of(first, job)
    second = runner.link()  # takes the place of the first
    second.replay(job.job_id, 7)
    assert [event for event in second.events() if event is not None] == whole[7:]
    second.close()
    assert runner.exit_code() == 0


def test_a_runner_that_is_killed_leaves_a_journal_that_tells_where(runners: Runners) -> None:
    def kill(request: dict[str, Any]) -> None:
        if request["do"] == "call" and request["component"] == "decoder":
            os.kill(runner.process.pid, signal.SIGKILL)

    runner = runners.start(before=kill)
    with pytest.raises(RunnerLost):
        events_of(runner.link(), nano_job(runner))
    last = list(read_journal(runner.storage / JOURNAL_FILE))[-1]
    assert (type(last).__name__, getattr(last, "component", None)) == ("Begin", "decoder")
    assert runner.exit_code() == -signal.SIGKILL


def test_a_model_that_refuses_a_load_is_the_jobs_failure(runners: Runners) -> None:
    def refuse(request: dict[str, Any]) -> dict[str, Any] | None:
        return {"error": "out of memory: no room"} if request.get("component") == "denoiser" else None

    runner = runners.start(before=refuse)
    stop = stop_of(runner, nano_job(runner))
    assert (stop.outcome, stop.stage, stop.component) == ("failed", "load", "denoiser")
    assert stop.reason == "out_of_memory: denoiser: out of memory: no room"


def test_a_runner_whose_model_is_lost_ends_and_says_so(runners: Runners) -> None:
    def hang_up(request: dict[str, Any]) -> None:
        if request["do"] == "call":
            raise OSError

    runner = runners.start(before=hang_up)
    runner.link().start(nano_job(runner))
    assert runner.exit_code() == 1
    assert runner.process.stderr is not None
    assert "the phone's model is lost" in runner.process.stderr.read()


def test_a_bundle_that_is_not_there_is_refused_by_its_path(runners: Runners) -> None:
    runner = runners.start()
    stop = stop_of(runner, nano_job(runner, bundle="/data/local/tmp/nothing"))
    assert stop.outcome == "refused"
    assert "/data/local/tmp/nothing holds no bundle" in (stop.reason or "")


def test_a_full_disk_aborts_the_job_and_leaves_no_torn_line(runners: Runners) -> None:
    runner = runners.start(prefix=no_file_beyond(blocks=16))  # too few for the picture
    stop = stop_of(runner, nano_job(runner))
    assert (stop.outcome, stop.reason) == ("aborted", "storage: File too large, on the device")
    assert list(read_journal(runner.storage / JOURNAL_FILE))[-1] == stop


def test_a_disk_without_room_for_the_end_is_told_by_the_exit_code(runners: Runners) -> None:
    runner = runners.start(prefix=no_file_beyond(blocks=1))
    runner.link().start(nano_job(runner))
    assert runner.exit_code() == EXIT_NO_SPACE
    assert (runner.storage / JOURNAL_FILE).read_bytes().endswith(b"\n")


def no_file_beyond(blocks: int) -> tuple[str, ...]:
    """Start a program whose writes beyond so many blocks of 512 bytes are cut short, as on a full disk."""
    return ("sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh")


def test_a_runner_without_a_model_says_where_it_looked(tmp_path: Path) -> None:
    ended = subprocess.run(runner_command(tmp_path, "127.0.0.1:1"), capture_output=True, text=True)
    assert ended.returncode == 1
    assert "no model answers at 127.0.0.1:1" in ended.stderr

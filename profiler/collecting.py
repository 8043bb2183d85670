"""From what a session left on disk to the run: the same way after a good end and after a kill."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from PIL import Image as PillowImage
from PIL import ImageStat

from profiler import codec, energy, validity
from profiler.bundle_files import sha256_of
from profiler.errors import InvalidRecord
from profiler.journal import JOURNAL_FILE, read_journal
from profiler.records.device import Conditions
from profiler.records.event import (
    AnyEvent,
    Artifact,
    Begin,
    Canary,
    Idle,
    IterationDone,
    LoadDone,
    MemoryReading,
    Outcome,
    Rest,
    Stop,
    Trace,
)
from profiler.records.message import EXIT_HOST_GONE, EXIT_NO_SPACE
from profiler.records.run import (
    CanarySample,
    ImageFile,
    IterationSample,
    Launch,
    ProcessExit,
    ProcessRecord,
    Run,
    Session,
    SessionHeader,
)
from profiler.records.trace import ProcessTrace
from profiler.store import RUN_FILE, OpenSession, Store, is_plain_name, journal_name
from profiler.traces import trace_of

S = TypeVar("S", IterationSample, CanarySample)

SOURCE_IMAGE = "source.png"
LAUNCH_FILE = "launch-{}.json"
AFTER_FILE = "after.json"
_KILLED = {
    -9: "killed by signal 9 (SIGKILL), as the system does when memory runs out",
    -6: "aborted (SIGABRT)",
    -11: "crashed (SIGSEGV)",
}
# SIGHUP, SIGINT, SIGTERM: people and service managers send them; no model does.
_STOPPED = (-1, -2, -15)
# So a person, the system's housekeeping or a restart ends a process; no model does.
_BY_OTHERS = ("stopped", "frozen", "restarted")
_LEFT = {
    EXIT_HOST_GONE: "host_gone: the runner left, as no host had come back to it",
    EXIT_NO_SPACE: "storage: the runner could not write its journal, as where the disk is full",
}


class Journalled(NamedTuple):
    """One runner process as its journal tells it."""

    launch: Launch
    folder: Path
    events: Sequence[AnyEvent]


class Ending(NamedTuple):
    """How a process, or the whole session, ended."""

    outcome: Outcome
    reason: str | None
    stage: str | None
    component: str | None


def process_folder(session_folder: Path, process: int) -> Path:
    """Return where one process's journal and images are collected to."""
    return session_folder / "device" / str(process)


def has_launch(session_folder: Path) -> bool:
    """Tell whether this session set about to start a runner: from then on it is a run, however it ends."""
    return any(session_folder.glob(LAUNCH_FILE.format("*")))


def collect(store: Store, session: OpenSession, *, ended_wall_ns: int, ending: Ending | None = None) -> Run:
    """Build the run's folder from journals and images, move it into the store, and close the session.

    `ending` is what the host knows to have gone wrong; null lets the journals say it.
    """
    header = store.read_session(session)
    if store.has_run(session.run_id):  # killed between the last two steps
        run = store.load(session.run_id)
    else:
        with store.building_run(session) as building:
            run = _build(header, session.folder, building, ended_wall_ns, ending)
            (building / RUN_FILE).write_bytes(codec.encode_pretty(run))
    store.close(session)
    return run


def _build(header: Session, folder: Path, building: Path, ended_wall_ns: int, ending: Ending | None) -> Run:
    processes = [_read_process(folder, launch) for launch in _launches(folder)]
    images = [image for process in processes for image in _keep_files(process, building)]
    records = tuple(_process_record(process, ending) for process in processes)
    end = _session_ending(records, header.settings.cold_starts, ending)
    run = Run(
        **{name: getattr(header, name) for name in SessionHeader.__struct_fields__},
        ended_wall_ns=max(ended_wall_ns, header.started_wall_ns),  # somebody may have set the clock back
        runner_version=next((p.launch.runner_version for p in processes if p.launch.runner_version), None),
        engine=next((p.launch.engine for p in processes if p.launch.engine), None),
        outcome=end.outcome,
        reason=end.reason,
        stage=end.stage,
        component=end.component,
        processes=records,
        iterations=tuple(sample for process in processes for sample in _samples(process)),
        images=(*_source_image(folder, building), *_distinct(images)),
        **_temperature(processes),
        doubts=(),
        canaries=tuple(sample for process in processes for sample in _canaries(process)),
        virtual=any(process.launch.virtual for process in processes),
        synthetic=any(process.launch.synthetic for process in processes),
        runner_platform=next((p.launch.runner_platform for p in processes if p.launch.runner_platform), None),
        conditions_after=codec.read(after, Conditions) if (after := folder / AFTER_FILE).is_file() else None,
    )
    traces = tuple(trace_of(process.launch.process, process.events) for process in processes)
    drawn = _energy(run, traces, processes)
    run = msgspec.structs.replace(run, energy=drawn.by_meter, energy_reason=drawn.reason)
    return msgspec.structs.replace(run, doubts=validity.doubts(run, traces))


def _energy(run: Run, traces: Sequence[ProcessTrace], processes: Sequence[Journalled]) -> energy.Found:
    """Find what the timed images drew: they are the last process's."""
    images = [sample for sample in run.iterations if sample.phase == "timed"]
    rests = [(event.start_boot_ns, event.end_boot_ns) for event in _of(processes[-1], Rest)] if processes else []
    samples = traces[-1].environment if traces else ()
    return energy.energy(images, samples, rests[-1] if rests else None, no_battery=_lost_power(run))


def _lost_power(run: Run) -> str | None:
    """Return why a power state that was known at the start is not at the end, as where somebody overrode it."""
    if run.conditions_after is None or run.conditions.power.external_power is None:
        return None
    after = run.conditions_after.power
    return None if after.external_power is not None else f"at the end of the run, {after.reason or 'it is unknown'}"


def _temperature(processes: Sequence[Journalled]) -> dict[str, Any]:
    traces = [event for process in processes for event in _of(process, Trace)]
    found = [sample.temperature_millicelsius for event in traces for sample in event.environment]
    readings = [reading for reading in found if reading is not None]
    reasons = [event.missing.get("temperature_millicelsius") for event in traces]
    return {
        "max_temperature_millicelsius": max(readings, default=None),
        "temperature_reason": None if readings else next(filter(None, reasons), "no reading during the run"),
    }


def _launches(folder: Path) -> list[Launch]:
    names = [path.stem.removeprefix("launch-") for path in folder.glob(LAUNCH_FILE.format("*"))]
    numbers = sorted(int(name) for name in names if name.isdecimal())
    return [codec.read(folder / LAUNCH_FILE.format(number), Launch) for number in numbers]


def _read_process(folder: Path, launch: Launch) -> Journalled:
    storage = process_folder(folder, launch.process)
    journal = storage / JOURNAL_FILE
    return Journalled(launch, storage, list(read_journal(journal)) if journal.is_file() else [])


def _keep_files(process: Journalled, building: Path) -> list[ImageFile]:
    number = process.launch.process
    for name, kept in ((JOURNAL_FILE, journal_name(number)), ("runner.log", f"runner-{number}.log")):
        source = process.folder / name
        if source.is_file() and source.stat().st_size:
            shutil.copyfile(source, building / kept)
    return [_keep_image(event, process.folder, building) for event in _of(process, Artifact)]


def _keep_image(event: Artifact, folder: Path, building: Path) -> ImageFile:
    if not is_plain_name(event.path):
        raise InvalidRecord(f"{folder / JOURNAL_FILE}: {event.path[:80]!r} is no name of an image in its folder")
    source = folder / event.path
    if not source.is_file() or sha256_of(source) != event.sha256:
        raise InvalidRecord(f"{source} is not the image that the runner announced")
    name = f"output-{event.sha256[:8]}.png"
    _read_image(source).save(building / name)
    return _image_file(building, name, "output")


def _read_image(path: Path) -> PillowImage.Image:
    """Read what a runner made. Raises InvalidRecord: that it cannot be read is no fault of the disk here."""
    try:
        with PillowImage.open(path, formats=["PPM"]) as image:
            image.load()
            return image
    except (OSError, ValueError, PillowImage.DecompressionBombError) as error:
        raise InvalidRecord(f"{path} is no image that can be read: {error}") from error


def _image_file(building: Path, name: str, role: Literal["output", "source"]) -> ImageFile:
    """Describe an image that is kept; its deviation is that of all values, each channel about its own mean."""
    with PillowImage.open(building / name) as image:
        variances = ImageStat.Stat(image).var
    deviation_levels = math.sqrt(sum(variances) / len(variances))
    return ImageFile(path=name, sha256=sha256_of(building / name), role=role, deviation_levels=deviation_levels)


def _source_image(folder: Path, building: Path) -> list[ImageFile]:
    source = folder / SOURCE_IMAGE
    if not source.is_file():
        return []
    shutil.copyfile(source, building / SOURCE_IMAGE)
    return [_image_file(building, SOURCE_IMAGE, "source")]


def _distinct(images: list[ImageFile]) -> list[ImageFile]:
    return list({image.path: image for image in images}.values())


def _samples(process: Journalled) -> list[IterationSample]:
    return [_recorded(IterationSample, event, process) for event in _of(process, IterationDone)]


def _canaries(process: Journalled) -> list[CanarySample]:
    return [_recorded(CanarySample, event, process) for event in _of(process, Canary)]


def _recorded(kind: type[S], event: IterationDone | Canary, process: Journalled) -> S:
    """Keep of an event what the run's record has a field for, and which process told it."""
    shared = [name for name in kind.__struct_fields__ if name != "process"]
    return kind(process=process.launch.process, **{name: getattr(event, name) for name in shared})


def _process_record(process: Journalled, ending: Ending | None) -> ProcessRecord:
    launch = process.launch
    end = _process_ending(process, ending)
    cold = next((event.duration_ns for event in _of(process, IterationDone) if event.phase == "cold"), None)
    return ProcessRecord(
        process=launch.process,
        journal=journal_name(launch.process),
        outcome=end.outcome,
        reason=end.reason,
        stage=end.stage,
        component=end.component,
        launch_ns=launch.launch_ns,
        page_cache=launch.page_cache,
        compile=launch.compile,
        # A sequential plan loads for each image: only the first time is cold.
        load_ns_by_component={event.component: event.duration_ns for event in reversed(_of(process, LoadDone))},
        first_image_ns=cold,
        idle_memory=next((event.memory for event in _of(process, Idle)), None),
        memory=_last_memory(process),
        last_seq=len(process.events) - 1,
        exit=launch.exit,
        system_memory=launch.system_memory,
    )


def _last_memory(process: Journalled) -> MemoryReading | None:
    """Return the reading at the job's end; a killed process has no lifetime peak, only lower bounds."""
    return next((event.memory for event in _of(process, Stop)), None)


def _process_ending(process: Journalled, ending: Ending | None) -> Ending:
    if ending is not None and ending.outcome == "failed" and not _of(process, Begin):
        ending = ending._replace(outcome="aborted")  # a model that was never begun did not fail
    for stop in _of(process, Stop):
        if stop.outcome == "interrupted" and ending is not None:  # the runner was asked to stop; the host knows why
            return Ending(ending.outcome, ending.reason, stop.stage, stop.component)
        return Ending(stop.outcome, stop.reason, stop.stage, stop.component)
    where, code = _where(process), process.launch.exit_code
    if process.launch.exit is not None:
        return _told_by_the_system(process.launch.exit, where)
    if code is not None and code in _STOPPED:
        return Ending("aborted", f"runner_stopped: somebody sent it signal {-code}", *where)
    if code is not None and code < 0:
        return Ending("failed", f"runner_died: {_KILLED.get(code, f'killed by signal {-code}')}", *where)
    if code and (ending is None or ending.outcome == "aborted"):
        return Ending("aborted", _LEFT.get(code, f"runner_ended: exit code {code}, see its log"), *where)
    if ending is not None:
        return Ending(ending.outcome, ending.reason, *where)
    if code is not None:
        return Ending("aborted", f"runner_ended: exit code {code}, see its log", *where)
    return Ending("interrupted", "the host went away before the job ended", *where)


def _told_by_the_system(told: ProcessExit, where: tuple[str | None, str | None]) -> Ending:
    """Tell a model's own death from one that somebody brought about, by what the device's system says."""
    if told.kind in _BY_OTHERS:
        return Ending("aborted", f"runner_stopped: {told.detail}", *where)
    word = "out_of_memory" if told.kind == "low_memory" else "runner_died"
    return Ending("failed", f"{word}: {told.detail}", *where)


def _where(process: Journalled) -> tuple[str | None, str | None]:
    """Return the stage and component that a process without an end was in."""
    begun = _of(process, Begin)
    if begun:
        return begun[-1].stage, begun[-1].component
    return None if process.events else "launch", None


def _session_ending(records: Sequence[ProcessRecord], expected: int, ending: Ending | None) -> Ending:
    """Let what the journals and exit codes show count before what the host saw of it."""
    if len(records) == expected and all(record.outcome == "completed" for record in records):
        return Ending("completed", None, None, None)
    ends = [Ending(r.outcome, r.reason, r.stage, r.component) for r in records if r.outcome != "completed"]
    failed = [end for end in ends if end.outcome == "failed"]
    cut_short = Ending("interrupted", f"the host went away after {len(records)} of {expected} processes", None, None)
    return [*failed, *ends, *([ending] if ending else []), cut_short][0]


def _of(process: Journalled, kind: type) -> list:  # type: ignore[type-arg]
    return [event for event in process.events if isinstance(event, kind)]

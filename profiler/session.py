"""One job on one unit: check, load (cold, in fresh processes), warm-up, timed, collect, clean up."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from profiler import __version__, codec
from profiler.bundle_files import MANIFEST, inside
from profiler.clock import Clock
from profiler.collecting import AFTER_FILE, LAUNCH_FILE, SOURCE_IMAGE, Ending, collect, has_launch
from profiler.devices.device import Away, Device, Ended, Place, Runner, Transfer
from profiler.devices.link import MOMENT_S
from profiler.devices.power_switch import PowerSwitch
from profiler.errors import DeviceError, InputError, ProtocolError, RunnerLost
from profiler.inputs import JobInputs, write_inputs
from profiler.journal import JOURNAL_FILE, read_journal
from profiler.leftovers import clean, finish, place_of
from profiler.records.bundle import Bundle
from profiler.records.event import AnyEvent
from profiler.records.job import InputFile, Job, Measurement, Sampling
from profiler.records.plan import Plan
from profiler.records.run import BundleUse, Launch, Run, Session, Settings
from profiler.runner.engines.installed import lack_of
from profiler.store import SESSION_FILE, OpenSession, Store
from profiler.untethering import Untethering

INPUTS_FILE = "inputs.safetensors"
# A phone may compile a model for ten minutes before its first image.
STALL_TIMEOUT_S = 900.0
# A phone that was unplugged is waited for this long before its run is left to a later command.
AWAY_TIMEOUT_S = 3600.0


class Order(NamedTuple):
    """What to measure: a bundle on disk, a plan, its inputs, and how often."""

    bundle_folder: Path
    bundle: Bundle
    bundle_sha256: str
    plan: Plan
    inputs: JobInputs
    measurement: Measurement
    cold_starts: int
    warmups: int
    repeats: int
    observer_pairs: int
    threads: int | None
    sampling: Sampling = Sampling()
    stall_timeout_s: float = STALL_TIMEOUT_S
    away_timeout_s: float = AWAY_TIMEOUT_S
    untethered: bool = False
    rest_s: float = 0.0
    power_switch: PowerSwitch | None = None


class Progress(NamedTuple):
    """Where a session is, what a runner has just told, or how far a bundle's way to the device is."""

    phase: str
    process: int
    event: AnyEvent | None
    transfer: Transfer | None = None


class Stalled(Exception):
    """The runner's process lived on, but nothing came from it for too long."""


class Unable(Exception):
    """The runner has not the engine that the bundle needs."""


Report = Callable[[Progress], None]


def measure(order: Order, device: Device, store: Store, clock: Clock, report: Report) -> Run:
    """Run a session to its end and return the run, whatever its outcome.

    Raises DeviceError where nothing was launched yet, and Away where the device took its run with it: the session then
    waits for a later command, as it does where a second KeyboardInterrupt comes while the first's is collected.
    """
    session = store.new_session(clock)
    start_wall_ns, start_boot_ns = clock.wall_ns(), clock.boot_ns()
    try:
        ending = _go_through(order, device, session, clock, report)
        report(Progress("collect", order.cold_starts - 1, None))
        # By the clock that nobody sets: a run is as long as it took.
        ended_wall_ns = start_wall_ns + clock.boot_ns() - start_boot_ns
        run = collect(store, session, ended_wall_ns=ended_wall_ns, ending=ending)
        clean(device, run)
        return run
    except KeyboardInterrupt:
        with contextlib.suppress(DeviceError):  # then it waits for a later command
            finish(store, session, device, clock, Ending("interrupted", "stopped by the user", None, None))
        raise
    except OSError as error:
        kept = "Its session is kept; the next profile command collects it."
        raise InputError(
            f"cannot write to the store {store.root}: {error.strerror or error}",
            hint=kept if has_launch(session.folder) else "Name another: --store DIR",
        ) from error
    finally:
        # What was measured stays: without its owner a session is collected by the next command.
        session.release() if has_launch(session.folder) else store.close(session)


def _go_through(order: Order, device: Device, session: OpenSession, clock: Clock, report: Report) -> Ending | None:
    """Check, then run one process after another; return what the host saw go wrong."""
    try:
        header = _check(order, device, session, clock)
        with device.settled(lambda what: report(Progress(what, 0, None))):
            header = _settled(header, device, session)
            bundle = device.bring(order.bundle_folder, order.bundle, _tell_transfer(report))
            course = _Course(order, header, session, device, bundle, clock, report)
            for number in range(order.cold_starts):
                report(Progress("launch", number, None))
                if not _run_process(course, number):
                    break
            _note_conditions_after(device, session)
    except Stalled as error:
        return Ending("failed", f"timed_out: {error}", None, None)
    except Unable as error:
        return Ending("refused", str(error), None, None)
    except Away:
        raise
    except DeviceError as error:
        if not has_launch(session.folder):
            raise
        return Ending("aborted", str(error), None, None)
    return None


def _note_conditions_after(device: Device, session: OpenSession) -> None:
    """Write down the state that the device was in at the end; a run is worth keeping without it."""
    with contextlib.suppress(DeviceError):
        session.write(AFTER_FILE, codec.encode_pretty(device.conditions(session.folder)))


def _tell_transfer(report: Report) -> Callable[[Transfer], None]:
    return lambda transfer: report(Progress("push", 0, None, transfer))


def _settled(header: Session, device: Device, session: OpenSession) -> Session:
    """Write down the state that the device was brought into."""
    settled = msgspec.structs.replace(header, conditions=device.conditions(session.folder))
    session.write(SESSION_FILE, codec.encode_pretty(settled))
    return settled


def _check(order: Order, device: Device, session: OpenSession, clock: Clock) -> Session:
    """Write down what is to be done before the device is touched."""
    header = Session(
        run_id=session.run_id,
        started_wall_ns=clock.wall_ns(),
        host_version=__version__,
        model=order.bundle.model,
        task=order.plan.task,
        unit=device.unit(),
        conditions=device.conditions(session.folder),
        measurement=order.measurement,
        sampling=order.sampling,
        settings=_settings(order),
        recipe=order.bundle.recipe,
        bundle=bundle_use(order.bundle, order.bundle_sha256, order.plan),
        licence=order.bundle.licence,
        token=secrets.token_hex(16),
        storage=str(session.folder / "device"),
    )
    if order.inputs.source_png is not None:
        session.write(SOURCE_IMAGE, order.inputs.source_png)
    session.write(SESSION_FILE, codec.encode_pretty(header))
    return header


def _settings(order: Order) -> Settings:
    inputs, plan, recipe = order.inputs, order.plan, order.bundle.recipe
    return Settings(
        prompt=inputs.prompt,
        negative_prompt=inputs.negative_prompt,
        seed=inputs.seed,
        steps=plan.steps,
        guidance=plan.guidance,
        scheduler=plan.scheduler,
        height=recipe.height or None,
        width=recipe.width or None,
        source_image=inputs.source_image,
        inputs_sha256=inputs.sha256,
        threads=order.threads,
        warmups=order.warmups,
        repeats=order.repeats,
        cold_starts=order.cold_starts,
        made_up_inputs=inputs.made_up,
        untethered=order.untethered,
        rest_s=order.rest_s,
    )


def bundle_use(bundle: Bundle, sha256: str, plan: Plan) -> BundleUse:
    """Count the bytes a plan needs: each file once, though several components or tasks may share it."""
    used = _components_of(plan)
    sizes = {entry.path: entry.size_bytes for entry in bundle.files}
    reached = {path for name in used for path in bundle.components[name].files}
    reached |= {plan.constants_file} if plan.constants_file else set()
    return BundleUse(
        sha256=sha256,
        size_bytes=sum(sizes[path] for path in reached),
        total_size_bytes=sum(sizes.values()),
        size_by_component={name: sum(sizes[path] for path in set(bundle.components[name].files)) for name in used},
        parameters_by_component={name: bundle.components[name].parameters for name in used},
        source=bundle.source,
    )


def _components_of(plan: Plan) -> list[str]:
    steps = [*plan.prepare, *plan.body]
    inner = [step for loop in plan.body for step in getattr(loop, "body", ())]
    return list(dict.fromkeys(step.component for step in [*steps, *inner] if hasattr(step, "component")))


class _Course(NamedTuple):
    """What all processes of a session have in common; `bundle` is its folder on the device."""

    order: Order
    header: Session
    session: OpenSession
    device: Device
    bundle: str
    clock: Clock
    report: Report


def _run_process(course: _Course, number: int) -> bool:
    """Run one fresh process to its end; tell whether it completed."""
    order, device, session = course.order, course.device, course.session
    place = place_of(session, number)
    place.folder.mkdir(parents=True)
    job = _job(course, number, write_inputs(order.inputs, place.folder / INPUTS_FILE))
    launch = Launch(
        process=number,
        page_cache=device.forget_files(_files_of(order)),
        compile="first",
        launch_ns=None,
        pid=None,
        runner_version=None,
        engine=None,
    )
    _note(session, launch)
    runner = device.launch(place, course.header.token)
    launch = _with_hello(launch, runner, job)
    _note(session, launch)
    try:
        with _brought_home(course, place, runner, launch):
            return _follow(runner, job, course, number)
    except RunnerLost:
        if not _completed(place.folder / JOURNAL_FILE):
            raise
        return True  # out of reach, it went through and left


def _completed(journal: Path) -> bool:
    events = list(read_journal(journal)) if journal.is_file() else []
    return bool(events) and getattr(events[-1], "outcome", None) == "completed"


@contextlib.contextmanager
def _brought_home(course: _Course, place: Place, runner: Runner, launch: Launch) -> Iterator[None]:
    """However the work goes, end the runner and fetch what it wrote; one that went away with its device goes on.

    Where fetching raises Away, that counts for more than what stopped the work: it is still to be collected.
    """
    try:
        yield
    except Away:
        runner.link.hang_up()
        raise
    except DeviceError:
        _bring_home(course, place, runner, launch, course.order.away_timeout_s)
        raise
    except Exception:
        _bring_home(course, place, runner, launch, 0.0)
        raise
    except BaseException:
        with contextlib.suppress(Away):  # what stopped the work is what matters
            _bring_home(course, place, runner, launch, 0.0)
        raise
    _bring_home(course, place, runner, launch, course.order.away_timeout_s)


def _bring_home(course: _Course, place: Place, runner: Runner, launch: Launch, away_s: float) -> None:
    """End a runner and fetch what it wrote, waiting `away_s` for a device that has just gone. Raises Away."""
    waited_s = 0.0
    while True:
        try:
            _note(course.session, _left(launch, runner.end()))
            course.device.fetch(place)
            return
        except Away:
            if waited_s >= away_s:
                raise
        course.report(Progress("away", launch.process, None))
        course.clock.sleep(MOMENT_S)
        waited_s += MOMENT_S


def _left(launch: Launch, ended: Ended) -> Launch:
    return msgspec.structs.replace(launch, exit_code=ended.code, exit=ended.exit, system_memory=ended.memory)


def _follow(runner: Runner, job: Job, course: _Course, number: int) -> bool:
    if job.engine not in runner.hello.engines:
        raise Unable(_lack(runner, job))
    if course.order.untethered and runner.hello.platform == "python":
        raise Unable(_NOT_ITS_GAUGES)
    _check_pushed(runner, job)
    runner.link.start(job)
    stall, untethering = _Stall(course.order), Untethering(job, course.order.power_switch, course.clock)
    outcome = None
    try:
        for event in runner.link.events():
            if runner.link.cut:
                course.report(Progress("away", number, None))
            untethering.take(event)
            stall.take(event, away=runner.link.cut)
            if event is not None:
                course.report(Progress("run", number, event))
                outcome = getattr(event, "outcome", None)
    finally:
        untethering.end()
    return outcome == "completed"


def _lack(runner: Runner, job: Job) -> str:
    if runner.hello.platform == "python":
        return " ".join(str(lack_of(job.engine)).split())
    has = ", ".join(sorted(runner.hello.engines)) or "none"
    lack = f"the runner on the device has no engine {job.engine!r}, which this bundle needs; it has: {has}"
    return f"{lack}. Install one that has it: profile install APK"


_NOT_ITS_GAUGES = (
    "the Python runner reads this computer's gauges, which say nothing of a phone's battery: --untethered needs the "
    "runner app's own (a virtual phone's is --runner kotlin)"
)


class _Stall:
    """Counts for how long nothing has come; a runner that waits on purpose says so every few seconds."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._quiet_s = self._away_s = 0.0

    def take(self, event: AnyEvent | None, *, away: bool) -> None:
        """Take in an event, or a moment without one, with the runner's device there or away. Raises Stalled or Away."""
        if event is not None:
            self._quiet_s = self._away_s = 0.0
        elif away:
            self._count_away()
        else:
            self._count_quiet()

    def _count_quiet(self) -> None:
        # Counted in moments and not by the clock: a host that was asleep did not listen meanwhile.
        self._quiet_s += MOMENT_S
        if self._quiet_s >= self._order.stall_timeout_s:
            raise Stalled(f"no progress for {self._quiet_s:g} s, the limit that --timeout sets")

    def _count_away(self) -> None:
        self._away_s += MOMENT_S
        if self._away_s >= self._order.away_timeout_s:
            raise Away(
                f"the device has been away for {self._away_s / 60:.0f} min",
                hint="Its run goes on there and is kept: connect it again, and the next profile command collects it.",
            )


def _check_pushed(runner: Runner, job: Job) -> None:
    """Ask the runner for what it sees of the job's files before the job starts."""
    wanted = {job.inputs.path: job.inputs.sha256, f"{job.bundle}/{MANIFEST}": job.bundle_sha256}
    for receipt in runner.link.inspect(tuple(wanted)):
        if receipt.sha256 != wanted[receipt.path]:
            raise ProtocolError(f"the runner sees another {receipt.path} than the one pushed to it")


def _job(course: _Course, number: int, inputs: InputFile) -> Job:
    order, device = course.order, course.device
    last = number == order.cold_starts - 1
    return Job(
        job_id=f"{course.header.run_id}.{number}",
        bundle=course.bundle,
        bundle_sha256=order.bundle_sha256,
        plan=order.plan,
        inputs=inputs,
        engine=device.engine_for(order.bundle.recipe),
        threads=order.threads,
        warmups=order.warmups if last else 0,
        repeats=order.repeats if last else 0,
        observer_pairs=order.observer_pairs if last else 0,
        measurement=order.measurement if last else Measurement(kind="burst"),
        sampling=order.sampling,
        on_disconnect=device.on_disconnect,
        untethered=order.untethered and last,
        rest_s=order.rest_s if last else 0.0,
    )


def _with_hello(launch: Launch, runner: Runner, job: Job) -> Launch:
    hello = runner.hello
    version = hello.engines.get(job.engine)
    return msgspec.structs.replace(
        launch,
        launch_ns=runner.launch_ns,
        pid=hello.pid,
        runner_version=hello.runner_version,
        engine=None if version is None else f"{job.engine} {version}",
        virtual=hello.virtual,
        synthetic=hello.synthetic,
        runner_platform=hello.platform,
    )


def _note(session: OpenSession, launch: Launch) -> None:
    session.write(LAUNCH_FILE.format(launch.process), codec.encode_pretty(launch))


def _files_of(order: Order) -> Iterable[Path]:
    return [inside(order.bundle_folder, entry.path) for entry in order.bundle.files]

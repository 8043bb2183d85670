"""Sessions whose host died or whose device went away: brought home, collected, or left until they can be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from profiler import codec
from profiler.clock import Clock
from profiler.collecting import LAUNCH_FILE, Ending, collect, has_launch, process_folder
from profiler.devices.device import Device, Ended, Place
from profiler.errors import DeviceError, InvalidRecord, MissingSource, UnknownName
from profiler.records.run import Launch, Run, Session
from profiler.store import OpenSession, Store


class SetAside(NamedTuple):
    """A session that could not be collected: where it lies now, and why."""

    folder: Path
    reason: str


class Waiting(NamedTuple):
    """A session that can be collected later: its device is away, or still `at_work` on it."""

    session: Session
    reason: str
    at_work: bool = False


DeviceFor = Callable[[Session], Device]


def collect_abandoned(
    store: Store, device_for: DeviceFor, clock: Clock, *, at_work: Literal["wait", "stop"] = "wait"
) -> Iterator[Run | SetAside | Waiting]:
    """Collect or close every session whose host died, and end the runners they left behind.

    One whose device is away waits, and so does one that is still at work, unless it is to be stopped. A session that
    cannot be read is set aside whole, so that it neither is lost nor stands in the way. Raises InputError where the
    store cannot be written; the session then waits.
    """
    for session in store.abandoned_sessions():
        try:
            found = _collect(store, session, device_for, clock, at_work)
        except (InvalidRecord, MissingSource, UnknownName) as error:
            yield SetAside(store.set_aside(session), str(error))
            continue
        if found is not None:
            yield found


def _collect(
    store: Store, session: OpenSession, device_for: DeviceFor, clock: Clock, at_work: Literal["wait", "stop"]
) -> Run | Waiting | None:
    header = store.read_session(session)
    try:
        with contextlib.closing(device_for(header)) as device:
            if at_work == "wait" and any(device.is_at_work(place) for place in _places(session).values()):
                session.release()
                return Waiting(header, f"{device.profile.title} is still at work on it", at_work=True)
            return finish(store, session, device, clock, None)
    except DeviceError as error:
        session.release()
        return Waiting(header, str(error))


def finish(store: Store, session: OpenSession, device: Device, clock: Clock, ending: Ending | None) -> Run | None:
    """End what a session left on its device, fetch its files and collect it; None where nothing was launched.

    Raises Away where the device is gone.
    """
    for number, place in _places(session).items():
        _note(session, number, device.recover(place))
    if not has_launch(session.folder):  # nothing was started, or all is stored and the folder half removed
        store.close(session)
        return None
    run = collect(store, session, ended_wall_ns=clock.wall_ns(), ending=ending)
    clean(device, run)
    return run


def clean(device: Device, run: Run) -> None:
    """Remove from the device what is now safe in the store; where that fails it only takes a little room there."""
    with contextlib.suppress(DeviceError):
        device.clean(run.run_id)


def place_of(session: OpenSession, process: int) -> Place:
    """Return where one process of a session keeps its files."""
    return Place(process_folder(session.folder, process), f"{session.run_id}/{process}")


def _places(session: OpenSession) -> dict[int, Place]:
    folders = (session.folder / "device").glob("*")
    numbers = sorted(int(folder.name) for folder in folders if folder.name.isdecimal())
    return {number: place_of(session, number) for number in numbers}


def _note(session: OpenSession, process: int, ended: Ended) -> None:
    """Add to what is known of a process how it ended, where nobody was there to see it."""
    name = LAUNCH_FILE.format(process)
    if ended == Ended(None) or not (session.folder / name).is_file():
        return
    launch = codec.read(session.folder / name, Launch)
    if launch.exit_code is None and launch.exit is None:
        session.write(name, codec.encode_pretty(msgspec.structs.replace(launch, exit_code=ended.code, exit=ended.exit)))

"""Start a runner: `python -m profiler.runner --storage DIR`."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from profiler import codec
from profiler.clock import Clock, RealClock
from profiler.errors import InputError
from profiler.journal import Journal
from profiler.records.job import Job
from profiler.records.message import ADDRESS_FILE, EXIT_NO_SPACE, RunnerAddress
from profiler.runner.engines.engine import Engine
from profiler.runner.engines.installed import installed, open_engine
from profiler.runner.office import Office
from profiler.runner.server import serve
from profiler.runner.work import Work, refuse

NewEngine = Callable[..., Engine]
Announce = Callable[[Path, int], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one job on the engine it names, then leave."""
    return run(arguments, installed(), open_engine, RealClock(), announce)


def run(
    arguments: Sequence[str] | None, engines: dict[str, str], new_engine: NewEngine, clock: Clock, announce: Announce
) -> int:
    """Serve one job with the engine that `new_engine` makes of its name, and `announce` where; return the exit code.

    An engine is imported only once a job asks for it, so that the memory reported holds no other's.
    """
    options = _parser().parse_args(arguments)
    office = Office(options.storage, engines, clock, root=options.root)
    listener = _listen(options.port)
    threading.Thread(
        target=serve, args=(listener, office), kwargs={"idle_timeout_s": options.idle_timeout}, daemon=True
    ).start()
    announce(options.storage, listener.getsockname()[1])
    return _work(office, new_engine)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        sys.exit(f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}")


def _work(office: Office, new_engine: NewEngine) -> int:
    while not office.taken.wait(0.1):
        if office.released.is_set():
            return 0
    job, journal = office.work()
    try:
        try:
            engine = new_engine(job.engine, threads=job.threads)
        except InputError as error:  # a plug-in's that cannot be imported, as a rule
            refuse(journal, office.clock, str(error))
        else:
            _work_on(job, journal, engine, office)
    except OSError as error:
        with contextlib.suppress(OSError):  # the log is as a rule on the same disk
            print(f"the journal's end could not be written: {error.strerror}", file=sys.stderr, flush=True)
        return EXIT_NO_SPACE
    # The host collects the stop event and says bye; a host that is gone is not waited for long.
    office.released.wait(timeout=job.on_disconnect.seconds or 30)
    return 0


def _work_on(job: Job, journal: Journal, engine: Engine, office: Office) -> None:
    Work(job, office.storage, journal, engine, office.clock, office.cancelled, locate=office.locate).run()


def announce(storage: Path, port: int) -> None:
    """Write where to find this runner; the rename makes the file whole before it is seen."""
    temporary = storage / f".{ADDRESS_FILE}"
    temporary.write_bytes(codec.encode(RunnerAddress(port=port, pid=os.getpid())))
    temporary.rename(storage / ADDRESS_FILE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m profiler.runner", description=__doc__)
    parser.add_argument("--storage", type=Path, required=True, help="the runner's own folder: token, inputs, journal")
    parser.add_argument(
        "--root", type=Path, default=Path("/"), help="where the device's / is, in a container or a virtual phone"
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--idle-timeout", type=float, default=30.0, help="seconds to wait for a host before leaving")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

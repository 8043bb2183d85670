"""Start a runner: `python -m profiler.runner --storage DIR`."""

from __future__ import annotations

import argparse
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from profiler import codec
from profiler.clock import RealClock
from profiler.records.message import ADDRESS_FILE, RunnerAddress
from profiler.runner.engines.engine import Engine
from profiler.runner.server import Office, serve
from profiler.runner.work import Work

NewEngine = Callable[..., Engine]


def main() -> int:
    """Serve one job, then leave."""
    arguments = _parser().parse_args()
    from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine

    clock = RealClock()
    office = Office(arguments.storage, {OnnxRuntimeEngine.name: OnnxRuntimeEngine.version}, clock)
    listener = socket.create_server(("127.0.0.1", arguments.port))
    threading.Thread(
        target=serve, args=(listener, office), kwargs={"idle_timeout_s": arguments.idle_timeout}, daemon=True
    ).start()
    _announce(arguments.storage, listener.getsockname()[1])
    _work(office, OnnxRuntimeEngine)
    return 0


def _work(office: Office, new_engine: NewEngine) -> None:
    while not office.taken.wait(0.1):
        if office.released.is_set():
            return
    job, journal = office.work()
    Work(job, office.storage, journal, new_engine(threads=job.threads), office.clock, office.cancelled).run()
    # The host collects the stop event and says bye; a host that is gone is not waited for long.
    office.released.wait(timeout=job.on_disconnect.seconds or 30)


def _announce(storage: Path, port: int) -> None:
    """Write where to find this runner; the rename makes the file whole before it is seen."""
    temporary = storage / f".{ADDRESS_FILE}"
    temporary.write_bytes(codec.encode(RunnerAddress(port=port, pid=os.getpid())))
    temporary.rename(storage / ADDRESS_FILE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m profiler.runner", description=__doc__)
    parser.add_argument("--storage", type=Path, required=True, help="the runner's own folder: token, inputs, journal")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--idle-timeout", type=float, default=30.0, help="seconds to wait for a host before leaving")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

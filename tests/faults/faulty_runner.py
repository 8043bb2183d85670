"""The real runner with the real engine, as a process of its own, that misbehaves at one named place.

Stands alone: it is started by its path, `faulty_runner.py FAULT profiler.runner --storage DIR`.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from profiler import codec
from profiler.clock import RealClock
from profiler.journal import JOURNAL_FILE
from profiler.records.bundle import Component
from profiler.records.message import ADDRESS_FILE, TOKEN_FILE, Refused
from profiler.runner.__main__ import announce, run
from profiler.runner.engines.engine import GraphCall
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine


class Fault(NamedTuple):
    """What goes wrong, and where: at the load of a component, or at one of its calls, counted from 0.

    Null for `component` means before anything is served. `process` is the session's process that it happens in.
    """

    what: str
    component: str | None = None
    call: int | None = None
    process: int = 0
    amount: float = 0.0
    path: str = ""


def program(fault: Fault) -> tuple[str, ...]:
    """Return what starts a runner with this fault; the last word is how leftover runners are found."""
    return (sys.executable, "-P", __file__, json.dumps(fault), "profiler.runner")


# At a load or a call.


def _sleep(storage: Path, fault: Fault) -> None:
    (storage / "reached").touch()
    time.sleep(1e6)


def _hold(storage: Path, fault: Fault) -> None:
    """Hang as native code does that never lets go of the interpreter: not even its own server can answer."""
    (storage / "reached").touch()
    ctypes.PyDLL(None).sleep(1_000_000)


def _tear(storage: Path, fault: Fault) -> None:
    with (storage / JOURNAL_FILE).open("ab") as journal:
        journal.write(b'{"event":"iteration","seq":')
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(storage: Path, fault: Fault) -> None:
    raise ZeroDivisionError("a bug in an engine")


def _limit(storage: Path, fault: Fault) -> None:
    """Leave the process `amount` bytes to grow, and go on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(fault.amount)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _note(storage: Path, fault: Fault) -> None:
    """Do no harm: tell a test that the place was reached, and give it time."""
    (storage / "reached").touch()
    time.sleep(fault.amount)


ACTIONS: dict[str, Callable[[Path, Fault], None]] = {
    "kill": lambda storage, fault: os.kill(os.getpid(), signal.SIGKILL),
    "terminate": lambda storage, fault: os.kill(os.getpid(), signal.SIGTERM),
    "crash": lambda storage, fault: ctypes.string_at(0) and None,
    "abort": lambda storage, fault: os.abort(),
    "exit": lambda storage, fault: os._exit(7),
    "sleep": _sleep,
    "hold": _hold,
    "tear": _tear,
    "raise": _raise,
    "limit": _limit,
    "note": _note,
}
ANSWERS: dict[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    "nan": lambda results: [np.full_like(each, np.nan) for each in results],
    "infinity": lambda results: [np.full_like(each, np.inf) for each in results],
    "cropped": lambda results: [each[..., :-1] for each in results],
    "one dimension": lambda results: [each.reshape(-1) for each in results],
    "integers": lambda results: [each.astype(np.int32) for each in results],
    "nothing": lambda results: [],
}


class FaultyEngine(OnnxRuntimeEngine):
    """ONNX Runtime with a fault at one place."""

    fault: Fault
    storage: Path

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Load as the engine does, or misbehave."""
        fault = self.fault
        if name == fault.component and fault.call is None and fault.what in ACTIONS:
            ACTIONS[fault.what](self.storage, fault)
        functions = super().load(name, component, folder)
        if name == fault.component and fault.call is not None:
            return {key: self._faulty(call) for key, call in functions.items()}
        return functions

    def _faulty(self, call: GraphCall) -> GraphCall:
        made = 0

        def faulty(feeds: Mapping[str, Any]) -> Sequence[Any]:
            nonlocal made
            now, made = made == self.fault.call, made + 1
            if now and self.fault.what in ACTIONS:
                ACTIONS[self.fault.what](self.storage, self.fault)
            results = call(feeds)
            return ANSWERS[self.fault.what](results) if now and self.fault.what in ANSWERS else results

        return faulty


# Before, and on the way.


class JumpingClock(RealClock):
    """A clock whose time of day somebody sets again and again, a day to and fro."""

    def __init__(self) -> None:
        self._chance = random.Random(7)

    def wall_ns(self) -> int:
        """Return any time within two days."""
        return super().wall_ns() + self._chance.randint(-86_400, 86_400) * 10**9


class Proxy:
    """Stands between host and runner, and cuts or spoils what comes from the runner after so many bytes."""

    def __init__(self, port: int, after: Sequence[int], spoil: bytes = b"") -> None:
        self._port, self._after, self._spoil = port, list(after), spoil
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            host, _ = self._listener.accept()
            runner = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._upwards, args=(host, runner), daemon=True).start()
            limit = self._after.pop(0) if self._after else None
            threading.Thread(target=self._downwards, args=(runner, host, limit), daemon=True).start()

    def _upwards(self, host: socket.socket, runner: socket.socket) -> None:
        try:
            while data := host.recv(65536):
                runner.sendall(data)
        except OSError:
            pass
        _hang_up(runner, host)

    def _downwards(self, runner: socket.socket, host: socket.socket, limit: int | None) -> None:
        try:
            while data := runner.recv(65536):
                if limit is not None and len(data) >= limit:
                    host.sendall(data[:limit] + self._spoil)
                    break
                host.sendall(data)
                limit = None if limit is None else limit - len(data)
        except OSError:
            pass
        _hang_up(runner, host)


def _hang_up(*connections: socket.socket) -> None:
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _through_proxy(after: Sequence[int], spoil: bytes = b"") -> Callable[[Path, int], None]:
    return lambda storage, port: announce(storage, Proxy(port, after, spoil).port)


def _cuts(fault: Fault) -> list[int]:
    """Choose after how many bytes each connection is cut; the first gets beyond the start of the job."""
    chance = random.Random(int(fault.amount))
    return [chance.randint(1500, 4000), *(chance.randint(0, 9000) for _ in range(4))]


def _impostor(says: bytes) -> Callable[[Path, int], None]:
    """Announce a port where somebody else answers."""

    def answer(listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(says)

    def tell(storage: Path, port: int) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        announce(storage, listener.getsockname()[1])

    return tell


def _raw(text: bytes) -> Callable[[Path, int], None]:
    """Announce in words of one's own."""

    def tell(storage: Path, port: int) -> None:
        (storage / ".other").write_bytes(text)
        (storage / ".other").rename(storage / ADDRESS_FILE)

    return tell


_OLD = codec.encode(Refused(code="protocol_version", reason="the runner speaks 0, the host 1: update the older"))
_NEW = (
    b'{"reply":"hello","protocol_version":99,"runner_version":"9","platform":"python","engines":{},'
    b'"virtual":false,"pid":1}\n'
)
ANNOUNCEMENTS: dict[str, Callable[[Fault], Callable[[Path, int], None]]] = {
    "mute": lambda fault: lambda storage, port: None,
    "cut": lambda fault: _through_proxy(_cuts(fault)),
    "cut at once": lambda fault: _through_proxy([0]),
    "cut before the job": lambda fault: _through_proxy([400]),
    "cut for ever": lambda fault: _through_proxy([2000, *[0] * 10_000]),
    "spoilt": lambda fault: _through_proxy([2000], b'\n{"event": "dance"}\n'),
    "garbage": lambda fault: _impostor(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "binary": lambda fault: _impostor(bytes(range(128, 256)) * 20 + b"\n"),
    "silent": lambda fault: _impostor(b""),
    "old version": lambda fault: _impostor(_OLD + b"\n"),
    "new version": lambda fault: _impostor(_NEW),
    "no address": lambda fault: _raw(b"{}"),
    "no port": lambda fault: _raw(b'{"port":70000,"pid":1}'),
}


def main() -> int:
    """Run the runner, with its fault if this process is the one to have it."""
    fault, storage = Fault(*json.loads(sys.argv[1])), Path(sys.argv[-1])
    arguments = sys.argv[3:]
    if storage.name != str(fault.process):
        fault = Fault("none")
    if fault.what == "late":
        time.sleep(fault.amount)
    if fault.what == "remove":
        Path(fault.path).unlink()
    if fault.what == "wrong token":
        (storage / TOKEN_FILE).write_text("another")
    taken = socket.create_server(("127.0.0.1", 0))
    if fault.what == "port taken":
        arguments += ["--port", str(taken.getsockname()[1])]
    FaultyEngine.fault, FaultyEngine.storage = fault, storage
    tell = ANNOUNCEMENTS[fault.what](fault) if fault.what in ANNOUNCEMENTS else announce
    clock = JumpingClock() if fault.what == "clock" else RealClock()

    def new_engine(name: str, *, threads: int | None) -> FaultyEngine:
        return FaultyEngine(threads=threads)

    return run(arguments, {FaultyEngine.name: FaultyEngine.version}, new_engine, clock, tell)


if __name__ == "__main__":
    raise SystemExit(main())

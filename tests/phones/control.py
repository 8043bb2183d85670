"""The channel by which a synthetic runner drives its phone's time, does its work and reads its gauges.

TCP on 127.0.0.1, one JSON object a line and one in reply; a reply with `error` says what was wrong with the request.
Time is driven from `attach` until `detach` or the end of the connection. A process that the low-memory killer took
while it waited gets no reply: its connection just ends, as everything else of it does.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.phones.android.commands_files import read_as_app
from tests.phones.model import DeviceModel

Request = dict[str, Any]
Reply = dict[str, Any]

_LINE_BYTES = 1 << 20


class RequestError(Exception):
    """A request that cannot be answered; the text goes back to the runner."""


class GoneError(Exception):
    """The runner's process has been killed: there is nobody to answer."""


class ControlServer:
    """Serve one phone's channel; a context manager. `address` goes to the runner's command line."""

    def __init__(self, model: DeviceModel) -> None:
        self._model = model
        self._driver = threading.Lock()
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @property
    def address(self) -> str:
        """Return `host:port`."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="phone-control", daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def wait_until_free(self, seconds: float) -> bool:
        """Wait until no runner drives the phone; False if one still does after that many seconds."""
        free = self._driver.acquire(timeout=seconds)
        if free:
            self._driver.release()
        return free

    def close(self) -> None:
        """Stop listening and end every connection."""
        with self._guard:
            for each in (self._listener, *self._open):
                _shut(each)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), name="phone-control-peer", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.add(connection)
        peer = Peer(self._model, self._driver)
        with connection, connection.makefile("rb") as incoming:
            try:
                while line := incoming.readline(_LINE_BYTES):
                    connection.sendall(json.dumps(peer.answer(line)).encode() + b"\n")
            except (OSError, GoneError):
                pass  # the runner is gone, which is as good as its end of the connection
            finally:
                peer.detach()
        with self._guard:
            self._open.discard(connection)


class Peer:
    """One connection: which process it speaks for, and what it may ask."""

    def __init__(self, model: DeviceModel, driver: threading.Lock) -> None:
        self._model = model
        self._driver = driver
        self._pid: int | None = None
        self._answers: dict[str, Callable[[Request], Reply]] = {
            "attach": self._attach,
            "detach": self._detach,
            "advance": self._advance,
            "load": self._load,
            "unload": self._unload,
            "call": self._call,
            "canary": self._canary,
            "read": self._read,
            "battery": self._battery,
            "thermal": self._thermal,
            "power_monitors": self._power_monitors,
            "screen": self._screen,
            "memory_limits": self._memory_limits,
        }

    def answer(self, line: bytes) -> Reply:
        """Answer one line; GoneError if the process was killed by then."""
        try:
            request = json.loads(line)
            reply = self._answer_to(request)(request)
        except (RequestError, ValueError) as error:
            return {"error": str(error)}
        if self._pid is not None:
            self._process()
        return reply

    def _answer_to(self, request: object) -> Callable[[Request], Reply]:
        do = request.get("do") if isinstance(request, dict) else None
        if not isinstance(do, str) or do not in self._answers:
            raise RequestError(f"unknown request; there are: {', '.join(self._answers)}")
        return self._answers[do]

    def detach(self) -> None:
        """Let the phone's time run free again, if this connection drove it."""
        if self._pid is not None:
            self._pid = None
            self._model.run_free()
            self._driver.release()

    def _process(self) -> int:
        """Return the attached process, which must be alive."""
        if self._pid is None:
            raise RequestError("attach first")
        if self._pid not in self._model.memory.processes:
            raise GoneError
        return self._pid

    def _attach(self, request: Request) -> Reply:
        pid = _whole(request, "pid")
        if pid not in self._model.memory.processes:
            raise RequestError(f"no process {pid} on this phone")
        if self._pid is not None or not self._driver.acquire(blocking=False):
            raise RequestError("somebody drives this phone already")
        self._pid = pid
        self._model.drive()
        return self._clocks()

    def _detach(self, request: Request) -> Reply:
        self.detach()
        return {}

    def _advance(self, request: Request) -> Reply:
        self._process()
        self._model.advance(_whole(request, "boot_ns"))
        return self._clocks()

    def _load(self, request: Request) -> Reply:
        pid, component = self._process(), _text(request, "component")
        sizes = _whole(request, "file_bytes"), _whole(request, "parameters")
        with self._model.present():
            return {"duration_ns": self._model.work.load(pid, component, *sizes)}

    def _unload(self, request: Request) -> Reply:
        pid, component = self._process(), _text(request, "component")
        with self._model.present():
            self._model.work.unload(pid, component)
        return {}

    def _call(self, request: Request) -> Reply:
        names = self._process(), _text(request, "component"), _text(request, "function")
        sizes = _whole(request, "parameters"), _whole(request, "output_bytes")
        with self._model.present():
            return {"duration_ns": self._model.work.call(*names, *sizes)}

    def _canary(self, request: Request) -> Reply:
        pid, rounds = self._process(), _whole(request, "rounds")
        with self._model.present():
            return {"duration_ns": self._model.work.canary(pid, rounds)}

    def _read(self, request: Request) -> Reply:
        path = _text(request, "path")
        pid = self._process()
        try:
            content = read_as_app(self._model, pid, path)
        except KeyError:
            return {"text": None, "reason": f"{path}: No such file or directory"}
        if content is None:
            return {"text": None, "reason": f"{path}: Permission denied"}
        return {"text": content.decode(), "reason": None}

    def _battery(self, request: Request) -> Reply:
        with self._model.present():
            reading = self._model.reported.battery()
        return {
            "current_now": reading.current_now,
            "charge_counter": reading.charge_counter,
            "voltage_mv": reading.voltage,
            "temperature_tenths": reading.temperature,
            "level": reading.level,
            "scale": 100,
            "plugged": reading.plugged,
            "status": reading.status,
        }

    def _thermal(self, request: Request) -> Reply:
        with self._model.present():
            return {"status": self._model.reported.thermal_status(), "headroom": self._model.reported.headroom()}

    def _power_monitors(self, request: Request) -> Reply:
        """Give the rails where the framework has them for apps: Android 15 and later."""
        with self._model.present():
            known = self._model.persona.system.api >= 35
            return {"readings": self._model.reported.rails() if known else None}

    def _screen(self, request: Request) -> Reply:
        with self._model.present():
            return {"interactive": self._model.screen.on, "locked": self._model.screen.locked}

    def _memory_limits(self, request: Request) -> Reply:
        with self._model.present():
            memory = self._model.memory
            return {"available_bytes": max(0, memory.available_bytes()), "total_bytes": memory.total_bytes}

    def _clocks(self) -> Reply:
        with self._model.present():
            return {"boot_ns": self._model.boot_ns(), "wall_ns": self._model.wall_ns()}


def _whole(request: Request, key: str) -> int:
    """Return a whole number of at least 0 from a request."""
    value = request.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RequestError(f"{key} must be a whole number of at least 0, not {value!r}")
    return value


def _text(request: Request, key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str):
        raise RequestError(f"{key} must be text, not {value!r}")
    return value


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # not connected, or closed by its own thread meanwhile

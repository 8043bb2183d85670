"""The runner's side of the conversation: one host at a time, over loopback connections that may break."""

from __future__ import annotations

import hmac
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiler import __version__, codec
from profiler.bundle_files import sha256_of
from profiler.clock import Clock
from profiler.errors import InternalError, InvalidRecord, ProfilerError
from profiler.journal import JOURNAL_FILE, Journal
from profiler.records.job import Job
from profiler.records.message import (
    EXIT_HOST_GONE,
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    TOKEN_FILE,
    Accepted,
    Bye,
    Cancel,
    HostHello,
    Inspect,
    Inspection,
    Receipt,
    Refused,
    Replay,
    Reply,
    Request,
    RunnerHello,
    Start,
)
from profiler.runner.engines.installed import lack_of

_HELLO_TIMEOUT_S = 10.0
# Events gather before they are sent: each wake-up, here and on the host, takes a tenth of a millisecond from the model.
_GATHER_S = 0.1


class Office:
    """What connection and work share: the storage, the job taken, its journal, and the cancel signal.

    `leave` ends the process at once.
    """

    def __init__(
        self, storage: Path, engines: dict[str, str], clock: Clock, *, leave: Callable[[int], object] = os._exit
    ) -> None:
        self.storage = storage
        self.engines = engines
        self.clock = clock
        self.job: Job | None = None
        self.journal: Journal | None = None
        self.cancelled = threading.Event()
        self.taken = threading.Event()
        self.released = threading.Event()
        self._leave = leave
        self._lock = threading.Lock()
        self._host: Line | None = None
        self._timers: list[threading.Timer] = []

    def take(self, job: Job) -> None:
        """Open the job's journal. Raises ProfilerError where this runner has a job already."""
        if self.job is not None:
            raise ProfilerError("this runner serves one job in its life; start another process")
        self.journal = Journal(self.storage / JOURNAL_FILE, job.job_id, self.clock)
        self.job = job
        self.taken.set()

    def work(self) -> tuple[Job, Journal]:
        """Return the job and its journal, once `taken` is set."""
        if self.job is None or self.journal is None:
            raise InternalError("no job was taken")
        return self.job, self.journal

    def host_came(self, line: Line) -> None:
        """Take a connection for the host's, in the place of any before, and call off what its end set going."""
        with self._lock:
            former, self._host = self._host, line
            self._call_off()
        if former is not None:
            former.hang_up()

    def host_went(self, line: Line) -> None:
        """Obey the job's `on_disconnect`, unless the host talks over another connection already.

        A host that comes back in time finds the work going on; one that never handed over a job is not waited for.
        """
        with self._lock:
            if self._host is not line:
                return
            self._host = None
            if self.job is None:
                self.released.set()
            elif not self.released.is_set() and self.job.on_disconnect.kind == "stop_after_s":
                self._stop_after(self.job.on_disconnect.seconds or 0.0)

    def leave_if_idle(self) -> None:
        """Leave where there is neither a host nor a job."""
        with self._lock:
            if self._host is None and self.job is None:
                self.released.set()

    def close(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            self._call_off()

    def _stop_after(self, seconds: float) -> None:
        # A call into the runtime cannot be stopped: if it does not return, the process leaves all the same.
        self._timers = [
            threading.Timer(seconds, self.cancelled.set),
            threading.Timer(2 * seconds + 1, self._leave, args=(EXIT_HOST_GONE,)),
        ]
        for timer in self._timers:
            timer.daemon = True
            timer.start()

    def _call_off(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []


class Line:
    """Newline-delimited JSON over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_HELLO_TIMEOUT_S)
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._lock = threading.Lock()

    def wait_without_limit(self) -> None:
        """Let the other end be silent from now on."""
        self._connection.settimeout(None)

    def read(self) -> Request | None:
        """Return the next request, or None at the end. Raises InvalidRecord or OSError."""
        data = self._stream.readline(MAX_LINE_BYTES + 1)
        if len(data) > MAX_LINE_BYTES:
            raise InvalidRecord(f"the host: a line of more than {MAX_LINE_BYTES} bytes")
        if not data.endswith(b"\n"):
            return None
        return codec.decode_checked(data, Request, where="the host")  # type: ignore[arg-type]

    def send(self, reply: Reply) -> None:
        """Send one reply."""
        self.send_bytes(codec.encode(reply) + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send whole lines; never interleaved with another thread's."""
        with self._lock:
            self._connection.sendall(data)

    def hang_up(self) -> None:
        """End the connection for whoever reads or writes it now."""
        _try(lambda: self._connection.shutdown(socket.SHUT_RDWR))

    def close(self) -> None:
        """Give the connection up."""
        self.hang_up()
        self._stream.close()
        self._connection.close()


def serve(listener: socket.socket, office: Office, *, idle_timeout_s: float) -> None:
    """Listen until the host says `bye`, or none comes while there is nothing to do.

    Each connection has a thread of its own, so that neither a stranger nor one that broke unnoticed keeps the host out.
    """
    listener.settimeout(idle_timeout_s)
    while not office.released.is_set():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            office.leave_if_idle()
            continue
        threading.Thread(target=_converse, args=(Line(connection), office), daemon=True).start()


def _converse(line: Line, office: Office) -> None:
    """Serve one connection to its end."""
    try:
        if _greet(line, office):
            office.host_came(line)
            line.wait_without_limit()
            while (request := line.read()) is not None:
                _answer(request, line, office)
                if isinstance(request, Bye):
                    break
    except InvalidRecord as error:
        refusal = Refused(code="request", reason=str(error))
        _try(lambda: line.send(refusal))
    except OSError:
        pass  # the host is gone; the disconnect rule takes over
    finally:
        office.host_went(line)
        line.close()


def _greet(line: Line, office: Office) -> bool:
    request = line.read()
    refusal = _check_hello(request, office)
    if refusal is not None:
        line.send(refusal)
        return False
    line.send(
        RunnerHello(
            protocol_version=PROTOCOL_VERSION,
            runner_version=__version__,
            platform="python",
            engines=office.engines,
            virtual=False,
            pid=os.getpid(),
        )
    )
    return True


def _check_hello(request: Request | None, office: Office) -> Refused | None:
    if not isinstance(request, HostHello):
        return Refused(code="request", reason="the first line must be hello")
    if request.protocol_version != PROTOCOL_VERSION:
        return Refused(
            code="protocol_version",
            reason=f"the runner speaks {PROTOCOL_VERSION}, the host {request.protocol_version}: update the older",
        )
    token = (office.storage / TOKEN_FILE).read_text().strip()
    if not hmac.compare_digest(token.encode(), request.token.encode()):
        return Refused(code="token", reason="not the token of this session")
    return None


def _answer(request: Request, line: Line, office: Office) -> None:
    match request:
        case HostHello():
            line.send(Refused(code="request", reason="hello comes once"))
        case Inspect():
            line.send(Inspection(receipts=tuple(_receipt(office.storage, path) for path in request.paths)))
        case Start():
            _start(request.job, line, office)
        case Replay():
            _replay(request, line, office)
        case Cancel():
            office.cancelled.set()
        case Bye():
            office.cancelled.set()
            office.released.set()


def _start(job: Job, line: Line, office: Office) -> None:
    if job.engine not in office.engines:
        line.send(Refused(code="job", reason=str(lack_of(job.engine))))
        return
    try:
        office.take(job)
    except ProfilerError as error:
        line.send(Refused(code="busy", reason=str(error)))
        return
    except OSError as error:
        line.send(Refused(code="job", reason=f"cannot open the journal: {error.strerror}"))
        return
    line.send(Accepted(job_id=job.job_id))
    _follow(line, office, from_seq=0)


def _replay(request: Replay, line: Line, office: Office) -> None:
    if office.job is None or office.job.job_id != request.job_id:
        line.send(Refused(code="unknown_job", reason=f"no job {request.job_id} here"))
        return
    line.send(Accepted(job_id=request.job_id))
    _follow(line, office, from_seq=request.from_seq)


def _follow(line: Line, office: Office, *, from_seq: int) -> None:
    """Send the journal's lines as it grows, on a thread of its own: a slow host never holds up a timed window."""
    _, journal = office.work()
    threading.Thread(target=_try, args=(lambda: send_journal(line, journal, from_seq),), daemon=True).start()


def send_journal(line: Line, journal: Journal, from_seq: int) -> None:
    """Send lines as they are written, until the journal closes. Raises OSError where the host goes away."""
    seq = 0
    with journal.path.open("rb") as stream:
        while True:
            data = stream.readline()
            if data.endswith(b"\n"):
                if seq >= from_seq:
                    line.send_bytes(data)
                seq += 1
                continue
            stream.seek(-len(data), os.SEEK_CUR)
            with journal.grown:
                if stream.tell() == journal.path.stat().st_size:
                    if journal.closed:
                        return
                    journal.grown.wait()
            if not journal.closed:
                time.sleep(_GATHER_S)


def _receipt(storage: Path, path: str) -> Receipt:
    file = storage / path  # an absolute path stands for itself
    if not file.is_file():
        return Receipt(path=path, size_bytes=None, sha256=None)
    return Receipt(path=path, size_bytes=file.stat().st_size, sha256=sha256_of(file))


def _try(action: Callable[[], Any]) -> None:
    try:
        action()
    except OSError:
        pass  # the other end is gone

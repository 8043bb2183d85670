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

from profiler import __version__
from profiler.bundle_files import sha256_of
from profiler.errors import InvalidRecord, ProfilerError
from profiler.journal import Journal
from profiler.records.job import Job
from profiler.records.message import (
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
    Request,
    RunnerHello,
    Start,
)
from profiler.runner.engines.installed import lack_of
from profiler.runner.line import Line
from profiler.runner.office import Office

# Events gather before they are sent: each wake-up, here and on the host, takes a tenth of a millisecond from the model.
_GATHER_S = 0.1


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
            line.send(Inspection(receipts=tuple(_receipt(office.locate(path), path) for path in request.paths)))
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


def _receipt(file: Path, path: str) -> Receipt:
    if not file.is_file():
        return Receipt(path=path, size_bytes=None, sha256=None)
    return Receipt(path=path, size_bytes=file.stat().st_size, sha256=sha256_of(file))


def _try(action: Callable[[], Any]) -> None:
    try:
        action()
    except OSError:
        pass  # the other end is gone

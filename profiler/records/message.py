"""What host and runner say to each other besides events: one JSON object a line."""

from __future__ import annotations

from typing import Literal

from profiler.records.job import Job
from profiler.records.record import Record

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 1024 * 1024
TOKEN_FILE = "token"
ADDRESS_FILE = "runner.json"
# How a runner process ends where no stop event can say why.
EXIT_HOST_GONE, EXIT_NO_SPACE = 3, 5


class RunnerAddress(Record):
    """Where a runner listens on its device's loopback; written into its storage once it does."""

    port: int
    pid: int


class HostHello(Record, tag="hello", tag_field="request"):
    """The host's first line; `token` is the file it pushed into the runner's storage."""

    protocol_version: int
    host_version: str
    token: str


class Inspect(Record, tag="inspect", tag_field="request"):
    """Ask which of these files, relative to the runner's storage or absolute, are there."""

    paths: tuple[str, ...]


class Start(Record, tag="start", tag_field="request"):
    """Run a job."""

    job: Job


class Replay(Record, tag="replay", tag_field="request"):
    """Send a job's events again, from a sequence number on."""

    job_id: str
    from_seq: int


class Cancel(Record, tag="cancel", tag_field="request"):
    """Stop the running job before its next call."""


class Bye(Record, tag="bye", tag_field="request"):
    """End the connection on purpose; an idle runner exits."""


Request = HostHello | Inspect | Start | Replay | Cancel | Bye


class RunnerHello(Record, tag="hello", tag_field="reply"):
    """The runner's answer to `hello`: what it is and what it can run.

    `virtual` is a device that is only simulated; a `synthetic` runner computes nothing and models its costs.
    """

    protocol_version: int
    runner_version: str
    platform: str
    engines: dict[str, str]
    virtual: bool
    pid: int
    synthetic: bool = False


class Receipt(Record):
    """A file as the runner sees it; `sha256` is null where the file is missing."""

    path: str
    size_bytes: int | None
    sha256: str | None


class Inspection(Record, tag="inspection", tag_field="reply"):
    """The answer to `inspect`."""

    receipts: tuple[Receipt, ...]


class Accepted(Record, tag="accepted", tag_field="reply"):
    """A job was taken; its events follow."""

    job_id: str


class Refused(Record, tag="refused", tag_field="reply"):
    """A request that the runner will not serve, and why."""

    code: Literal["protocol_version", "token", "busy", "job", "unknown_job", "request"]
    reason: str


Reply = RunnerHello | Inspection | Accepted | Refused

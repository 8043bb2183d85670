"""Write the JSON Schemas and the example files in `protocol/` from the records: `python -m scripts.write_schemas`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from profiler import codec
from profiler.records.bundle import Bundle
from profiler.records.device import DeviceProfile
from profiler.records.event import AnyEvent
from profiler.records.job import Job
from profiler.records.message import Reply, Request
from profiler.records.plan import Plan, Schedules
from profiler.records.policy import Policy, ReferenceTable
from profiler.records.run import Run
from profiler.records.spec import ModelSpec
from tests.messages_for_tests import make_failed_journal, make_journal, make_phone_journal, make_replies, make_requests
from tests.plan_cases import plan_cases
from tests.records_for_tests import make_bundle, make_job, make_plan, make_schedules
from tests.runs_for_tests import make_run

PROTOCOL = Path(__file__).resolve().parent.parent / "protocol"
COMMAND = "python -m scripts.write_schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# file name: (record or union of records, title)
KINDS: dict[str, tuple[Any, str]] = {
    "bundle": (Bundle, "Bundle manifest (bundle.json)"),
    "plan": (Plan, "Plan (*.plan.json)"),
    "schedules": (Schedules, "Schedules (*.schedules.json)"),
    "job": (Job, "Job"),
    "event": (AnyEvent, "Event (a line of events.jsonl)"),
    "request": (Request, "Request (a line from host to runner)"),
    "reply": (Reply, "Reply (a line from runner to host, besides events)"),
    "run": (Run, "Run (run.json)"),
    "model_spec": (ModelSpec, "Registry entry (exporters/models/*.toml)"),
    "device_profile": (DeviceProfile, "Device profile (device_profiles/*.toml)"),
    "policy": (Policy, "Tier policy (device_profiles/policies/*.toml)"),
    "reference": (ReferenceTable, "Published results (device_profiles/reference/*.toml)"),
}


def main() -> None:
    """Bring `protocol/` up to date and say what changed."""
    wanted = rendered()
    for path in generated_files():
        if path not in wanted:
            (PROTOCOL / path).unlink()
            print(f"removed protocol/{path}")
    for path, data in wanted.items():
        target = PROTOCOL / path
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            print(f"wrote protocol/{path}")


def rendered() -> dict[str, bytes]:
    """Return every generated file's content by its path below `protocol/`."""
    schemas = {f"{name}.schema.json": _schema(kind, title) for name, (kind, title) in KINDS.items()}
    return schemas | {f"examples/{name}": data for name, data in _examples().items()}


def generated_files() -> list[str]:
    """Return the generated files that are there, by their paths below `protocol/`."""
    found = [*PROTOCOL.glob("*.schema.json"), *(PROTOCOL / "examples").glob("*.json*")]
    return sorted(path.relative_to(PROTOCOL).as_posix() for path in found)


def _schema(kind: Any, title: str) -> bytes:
    schema = {"$schema": DIALECT, "title": title, **msgspec.json.schema(kind)}
    return msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"


def _examples() -> dict[str, bytes]:
    journal = _lines(make_journal())
    return {
        "bundle.json": codec.encode_pretty(make_bundle()),
        "plan.json": codec.encode_pretty(make_plan()),
        "plan_rules.jsonl": _lines(plan_cases()),
        "schedules.json": codec.encode_pretty(make_schedules()),
        "job.json": codec.encode_pretty(make_job()),
        "run.json": codec.encode_pretty(make_run()),
        "events.jsonl": journal,
        "events_phone.jsonl": _lines(make_phone_journal()),
        "events_failed.jsonl": _lines(make_failed_journal()),
        "events_torn.jsonl": journal[: -len(journal) // 8],
        "requests.jsonl": _lines(make_requests()),
        "requests_invalid.jsonl": b"".join(line + b"\n" for line in _INVALID_REQUESTS),
        "replies.jsonl": _lines(make_replies()),
    }


def _lines(records: Iterable[Any]) -> bytes:
    return b"".join(codec.encode(record) + b"\n" for record in records)


_INVALID_REQUESTS = (
    b'{"request":"reboot"}',
    b'{"request":"bye","colour":1}',
    b'{"request":"replay","job_id":"x"}',
    b'{"request":"replay","job_id":"x","from_seq":"5"}',
    b'{"request":"inspect","paths":["a",null]}',
    b'{"paths":["a"]}',
    b'["bye"]',
    b"null",
)

if __name__ == "__main__":
    main()

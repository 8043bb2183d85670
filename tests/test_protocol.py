"""`protocol/` says what the records say, and its examples follow both."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from profiler import codec
from profiler.errors import InvalidRecord
from profiler.journal import read_journal
from profiler.plan_rules import check_plan
from profiler.records.bundle import Bundle
from profiler.records.event import AnyEvent, Begin, Event
from profiler.records.message import MAX_LINE_BYTES, Reply, Request
from profiler.records.plan import Plan
from scripts.write_schemas import COMMAND, KINDS, PROTOCOL, generated_files, rendered

EXAMPLES = PROTOCOL / "examples"
WHOLE_FILES = ("bundle", "plan", "schedules", "job", "run")
LINE_FILES = {
    "events.jsonl": "event",
    "events_failed.jsonl": "event",
    "requests.jsonl": "request",
    "replies.jsonl": "reply",
}
LINES = [
    pytest.param(kind, line, id=f"{name}:{number}")
    for name, kind in LINE_FILES.items()
    for number, line in enumerate((EXAMPLES / name).read_bytes().splitlines(), start=1)
]
INVALID_LINES = (EXAMPLES / "requests_invalid.jsonl").read_bytes().splitlines()


def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((PROTOCOL / f"{name}.schema.json").read_bytes()))


def test_the_folder_holds_the_generated_files_and_no_older_ones() -> None:
    assert generated_files() == sorted(rendered()), f"renew them: {COMMAND}"


@pytest.mark.parametrize(("path", "data"), rendered().items(), ids=list(rendered()))
def test_a_generated_file_is_up_to_date(path: str, data: bytes) -> None:
    target = PROTOCOL / path
    assert target.is_file(), f"renew it: {COMMAND}"
    assert target.read_bytes() == data, f"renew it: {COMMAND}"


@pytest.mark.parametrize("name", KINDS)
def test_a_schema_is_a_schema_of_its_dialect_with_a_title(name: str) -> None:
    schema = json.loads((PROTOCOL / f"{name}.schema.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]


@pytest.mark.parametrize("name", KINDS)
def test_every_object_that_a_schema_names_is_closed(name: str) -> None:
    schema = json.loads((PROTOCOL / f"{name}.schema.json").read_bytes())
    assert all(definition["additionalProperties"] is False for definition in schema["$defs"].values())


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_an_example_file_follows_record_and_schema(name: str) -> None:
    path = EXAMPLES / f"{name}.json"
    record = codec.read(path, KINDS[name][0])
    assert codec.encode_pretty(record) == path.read_bytes()
    _validator(name).validate(json.loads(path.read_bytes()))


def test_the_example_plan_keeps_the_rules_of_plans() -> None:
    check_plan(codec.read(EXAMPLES / "plan.json", Plan), codec.read(EXAMPLES / "bundle.json", Bundle).components)


@pytest.mark.parametrize(("kind", "line"), LINES)
def test_an_example_line_follows_record_and_schema(kind: str, line: bytes) -> None:
    record: Any = codec.decode(line, KINDS[kind][0], where="example")
    assert codec.encode(record) == line
    assert len(line) < MAX_LINE_BYTES
    _validator(kind).validate(json.loads(line))


@pytest.mark.parametrize("line", INVALID_LINES, ids=repr)
def test_an_invalid_request_is_refused_by_record_and_schema(line: bytes) -> None:
    with pytest.raises(InvalidRecord):
        codec.decode(line, Request, where="example")  # type: ignore[arg-type]
    assert not _validator("request").is_valid(json.loads(line))


@pytest.mark.parametrize(
    ("union", "examples"),
    [(AnyEvent, "events.jsonl"), (Request, "requests.jsonl"), (Reply, "replies.jsonl")],
    ids=["event", "request", "reply"],
)
def test_every_kind_of_message_has_an_example(union: Any, examples: str) -> None:
    lines = (EXAMPLES / examples).read_bytes().splitlines()
    shown = {type(codec.decode(line, union, where="example")) for line in lines}
    assert shown == set(union.__args__)


def test_the_example_journal_is_one_that_the_reader_accepts() -> None:
    events = list(read_journal(EXAMPLES / "events.jsonl"))
    assert [event.seq for event in events] == list(range(len(events)))


def test_the_torn_journal_is_the_whole_one_up_to_its_last_whole_line() -> None:
    torn: list[Event] = list(read_journal(EXAMPLES / "events_torn.jsonl"))
    whole = list(read_journal(EXAMPLES / "events.jsonl"))
    assert not (EXAMPLES / "events_torn.jsonl").read_bytes().endswith(b"\n")
    assert torn == whole[: len(torn)]
    assert len(torn) < len(whole)


def test_the_failed_journal_says_where_the_job_died() -> None:
    *_, begun, stop = read_journal(EXAMPLES / "events_failed.jsonl")
    assert isinstance(begun, Begin)
    assert (stop.stage, stop.component) == (begun.stage, begun.component)  # type: ignore[union-attr]

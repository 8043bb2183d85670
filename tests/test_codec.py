"""Records to bytes and back: every kind, and every way in which bytes can be wrong."""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler import codec, records
from profiler.errors import InternalError, InvalidRecord, MissingSource
from profiler.records.bundle import Bundle, Difference
from profiler.records.device import DeviceProfile
from profiler.records.event import AnyEvent
from profiler.records.job import Job
from profiler.records.message import Reply, Request
from profiler.records.plan import Plan
from profiler.records.record import NAME_PATTERN, SCHEMA_VERSION, Name, Record
from profiler.records.run import Run
from tests.records_for_tests import make_bundle, make_job, make_plan

INT64 = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.from_regex(NAME_PATTERN, fullmatch=True)


def _kinds() -> list[type[Record]]:
    """Find every record class there is, so that a new one is tested without being listed."""
    for module in pkgutil.iter_modules(records.__path__):
        importlib.import_module(f"{records.__name__}.{module.name}")
    found: list[type[Record]] = [Record]
    for kind in found:
        found.extend(child for child in kind.__subclasses__() if child.__module__.startswith("profiler.records"))
    return sorted(set(found[1:]), key=lambda kind: kind.__qualname__)


@pytest.fixture(scope="module", autouse=True)
def json_numbers() -> None:
    """Build records with the numbers that JSON and 64 bits can hold."""
    st.register_type_strategy(int, INT64)
    st.register_type_strategy(float, FINITE)
    for kind in _kinds():
        if chosen := _not_by_type_alone(kind):
            st.register_type_strategy(kind, st.builds(kind, **chosen))


def _not_by_type_alone(kind: type[Record]) -> dict[str, st.SearchStrategy[Any]]:
    """Return strategies for fields whose values a bare type does not tell: names, and those made by a factory."""
    hints = get_type_hints(kind, include_extras=True)
    made = {field.name for field in msgspec.structs.fields(kind) if field.default_factory is not msgspec.NODEFAULT}
    return {name: _strategy(hint) for name, hint in hints.items() if _is_named(hint) or name in made}


def _is_named(hint: Any) -> bool:
    return hint == Name or (get_origin(hint) is dict and get_args(hint)[0] == Name)


def _strategy(hint: Any) -> st.SearchStrategy[Any]:
    if hint == Name:
        return NAMES
    if _is_named(hint):
        return st.dictionaries(NAMES, st.from_type(get_args(hint)[1]), max_size=2)
    return st.from_type(hint)


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_kind_of_record_reads_back_as_it_was(kind: type[Record], data: st.DataObject) -> None:
    record = data.draw(st.from_type(kind))
    assert codec.decode(codec.encode(record), kind, where="test") == record
    assert codec.decode(codec.encode_pretty(record), kind, where="test") == record


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_no_kind_of_record_takes_an_unknown_key(kind: type[Record]) -> None:
    config = kind.__struct_config__
    head = {config.tag_field: config.tag} if config.tag else {}
    line = codec.encode({**head, "surely_not_a_field": 1})
    with pytest.raises(InvalidRecord, match="unknown field `surely_not_a_field`"):
        codec.decode(line, kind, where="test")


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_every_kind_of_record_is_frozen_and_keyword_only(kind: type[Record]) -> None:
    assert kind.__struct_config__.frozen
    if kind.__struct_fields__:
        with pytest.raises(TypeError, match="positional"):
            kind("positional")


def test_one_line_is_one_line_whatever_the_text() -> None:
    data = codec.encode(make_job(bundle="a\nb\r\u2028c"))
    assert b"\n" not in data
    assert codec.decode(data, Job, where="test").bundle == "a\nb\r\u2028c"


def test_the_same_record_has_the_same_bytes_and_hash() -> None:
    assert codec.encode_pretty(make_bundle()) == codec.encode_pretty(make_bundle())
    assert codec.content_sha256(make_plan()) == codec.content_sha256(make_plan())
    assert codec.content_sha256(make_plan()) != codec.content_sha256(make_plan(steps=3))


def test_an_unknown_key_is_named_with_its_place_and_file() -> None:
    data = codec.encode_pretty(make_bundle()).replace(b'"licence": {', b'"licence": {"colour": 1,')
    with pytest.raises(InvalidRecord, match=r"bundle\.json: not a valid Bundle: .*unknown field `colour`.*licence"):
        codec.decode(data, Bundle, where="bundle.json")


def test_an_unknown_kind_of_plan_step_is_an_error() -> None:
    data = codec.encode(make_plan()).replace(b'"kind":"output"', b'"kind":"branch"')
    with pytest.raises(InvalidRecord, match="Invalid value 'branch'"):
        codec.decode(data, Plan, where="plan.json")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InvalidRecord, match="missing required field `job_id`"):
        codec.decode(b"{}", Job, where="job.json")


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 10**6])
def test_a_newer_format_says_to_update_before_it_complains_about_anything_else(version: int) -> None:
    with pytest.raises(InvalidRecord, match=f"written in format {version}.*reads up to 2") as error:
        codec.decode(b'{"schema_version": %d, "novelty": 1}' % version, Bundle, where="bundle.json")
    assert error.value.hint == "Install a newer ondevice-profiler."


@pytest.mark.parametrize("version", [b"0", b"-1", b"1.5", b'"1"', b"null", b"true", b"[]"])
def test_a_version_that_never_was_is_an_error(version: bytes) -> None:
    data = codec.encode(make_plan()).replace(b'"schema_version":1', b'"schema_version":' + version)
    with pytest.raises(InvalidRecord):
        codec.decode(data, Plan, where="plan.json")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff\xfe{}",
        b"null",
        b"[]",
        b'{"job_id": "\xed\xa0\x80"}',
        b'{"job_id": "\\ud800"}',
        b"{" * 100_000,
        b'{"x":' + b"[" * 100_000,
        b'{"body":' * 50_000,
        b'{"steps": ' + b"9" * 100_000 + b"}",
        b'{"schema_version": ' + b"9" * 100_000 + b"}",
        b'{"steps": NaN}',
        b'{"steps": 1e999}',
        b'{"steps": 1} trailing',
    ],
    ids=lambda data: repr(data[:24]),
)
@pytest.mark.parametrize("kind", [Plan, Run, AnyEvent, Request, Reply], ids=str)
def test_hostile_bytes_are_an_invalid_record_and_nothing_else(data: bytes, kind: Any) -> None:
    with pytest.raises(InvalidRecord, match="the sender: not a valid"):
        codec.decode(data, kind, where="the sender")


@given(data=st.binary(max_size=200))
def test_random_bytes_are_an_invalid_record_and_nothing_else(data: bytes) -> None:
    with pytest.raises(InvalidRecord):
        codec.decode(data, Job, where="the sender")


@given(cut=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused_but_never_crashes(cut: int, value: int) -> None:
    data = bytearray(codec.encode(make_job()))
    data[cut % len(data)] = value
    try:
        assert isinstance(codec.decode(bytes(data), Job, where="the sender"), Job)
    except InvalidRecord:
        pass


@given(length=st.integers(0, 10_000))
def test_a_torn_line_is_an_invalid_record(length: int) -> None:
    data = codec.encode(make_job())
    with pytest.raises(InvalidRecord):
        codec.decode(data[: length % len(data)], Job, where="the journal")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_record_that_json_cannot_hold_is_refused_when_written_not_when_read(value: float) -> None:
    with pytest.raises(InternalError, match="this Difference could not be read back"):
        codec.encode_pretty(Difference(max_absolute=value, relative=0.0))


def test_a_file_that_is_not_there_is_a_missing_source(tmp_path: Path) -> None:
    with pytest.raises(MissingSource, match=r"cannot read .*none\.json: No such file"):
        codec.read(tmp_path / "none.json", Plan)
    with pytest.raises(MissingSource, match="cannot read"):
        codec.read(tmp_path, Plan)


def test_a_file_reads_back_and_an_error_in_it_names_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(codec.encode_pretty(make_plan()))
    assert codec.read(path, Plan) == make_plan()
    path.write_bytes(b"{}")
    with pytest.raises(InvalidRecord, match=r"plan\.json: not a valid Plan"):
        codec.read(path, Plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"name = ", "not a valid DeviceProfile"),
        (b"name = 1\nname = 2", "not a valid DeviceProfile"),
        (b"name = \xff", "not a valid DeviceProfile"),
        (b"name = " + b"9" * 5000, "not a valid DeviceProfile"),
        (b"name = " + b"[" * 100_000, "not a valid DeviceProfile"),
        (b"colour = 1", "unknown field `colour`"),
        (b"schema_version = 3\ncolour = 1", "written in format 3"),
    ],
    ids=lambda value: repr(value[:24]),
)
def test_a_broken_toml_file_is_an_invalid_record(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "phone.toml"
    path.write_bytes(text)
    with pytest.raises(InvalidRecord, match=message):
        codec.read_toml(path, DeviceProfile)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(MissingSource, match="not a plain file"):
        codec.read(tmp_path / "run.json", Run)


@pytest.mark.parametrize(
    "data",
    [
        b'{"task":"generate","task":"edit"}',
        b'{"a": {"b": 1, "b": 1}}',
        b'[{"x": [{"y": 1, "z": 2, "y": 3}]}]',
        b'{"caf\\u00e9": 1, "caf\xc3\xa9": 2}',
    ],
)
def test_a_key_that_stands_twice_is_refused_and_named(data: bytes) -> None:
    with pytest.raises(InvalidRecord, match=r"plan\.json: the key '(task|b|y|café)' stands twice"):
        codec.decode_checked(data, Any, where="plan.json")


def test_a_file_with_a_key_twice_is_refused_however_it_is_written(tmp_path: Path) -> None:
    whole = codec.encode_pretty(make_plan())
    (tmp_path / "plan.json").write_bytes(whole.replace(b'"steps":', b'"steps": 1,\n "steps":', 1))
    with pytest.raises(InvalidRecord, match=r"plan\.json: the key 'steps' stands twice"):
        codec.read(tmp_path / "plan.json", Plan)
    (tmp_path / "plan.json").write_bytes(whole.replace(b"\n", b"\r\n\t"))
    assert codec.read(tmp_path / "plan.json", Plan) == make_plan()


def test_a_file_longer_than_any_record_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "plan.json").open("wb") as stream:
        stream.truncate(codec.MAX_FILE_BYTES + 1)  # sparse
    with pytest.raises(InvalidRecord, match="67108865 bytes long; a record of its kind has up to 67108864"):
        codec.read(tmp_path / "plan.json", Plan)
    with pytest.raises(InvalidRecord, match="up to 67108864"):
        codec.read_toml(tmp_path / "plan.json", Plan)

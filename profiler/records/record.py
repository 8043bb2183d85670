"""The kind of struct every record is."""

from __future__ import annotations

from typing import Annotated, Any, Literal, dataclass_transform

import msgspec

# A record carries the format in which its kind last changed; every older one is read for ever (tests/golden).
# 1: 0.1.0. 2: canaries, clock limits, other work and power saving (run, session, job, summary).
SCHEMA_VERSION = 2
SchemaVersion = Literal[1, 2]
Task = Literal["generate", "edit"]
DType = Literal["float32", "int32"]
# Of what plug-ins may add to: lower case, so that two names never differ by a file system's or a shell's habits.
NAME_PATTERN = "^[a-z][a-z0-9_-]{0,63}$"
Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]


class _RecordMeta(msgspec.StructMeta):
    """Makes every record keyword-only: unlike `frozen`, msgspec does not pass that setting on to subclasses."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **settings: Any) -> _RecordMeta:
        return super().__new__(mcs, name, bases, namespace, **{"kw_only": True, **settings})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, metaclass=_RecordMeta, frozen=True, forbid_unknown_fields=True):
    """A frozen record that knows exactly its own fields; an unknown key is an error."""

"""What the registry knows of a model: where it comes from, its family, licence and usual settings."""

from __future__ import annotations

from typing import Literal

from profiler.records.record import Record, SchemaVersion, Task


class Licence(Record):
    """Who may do what with the weights; `name` as in the SPDX list where it is there."""

    name: str
    commercial_use: Literal["allowed", "forbidden", "conditional", "unknown"]
    source: str | None = None


class TaskDefaults(Record):
    """The settings a task runs with unless told otherwise.

    `source_image` is a PNG beside the registry entry; an edit without one gets a drawn test picture.
    """

    prompt: str
    steps: int
    text_guidance: float
    image_guidance: float | None = None
    negative_prompt: str = ""
    seed: int = 0
    source_image: str | None = None


class ModelSpec(Record):
    """A registry entry (`exporters/models/*.toml`).

    `repo` is a hub id, or a path relative to the entry's own folder when `embedded` is true.
    """

    schema_version: SchemaVersion = 1
    name: str
    title: str
    family: str
    repo: str
    revision: str | None = None
    embedded: bool = False
    licence: Licence
    height: int
    width: int
    tasks: dict[Task, TaskDefaults]
    notes: str = ""

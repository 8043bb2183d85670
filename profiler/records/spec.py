"""What the registry knows of a model: where it comes from, its family, licence and usual settings."""

from __future__ import annotations

from typing import Literal

import msgspec

from profiler.records.recipe import ComputeUnit, EncoderScheme, Precision, Runtime
from profiler.records.record import Record, SchemaVersion, Task

Provenance = Literal["published", "inferred"]


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


class PublishedCount(Record):
    """How many parameters a publication gives a network: `count` with the digits it prints, as 859520964 or 0.39B."""

    count: str
    source: str


class NetworkPart(Record):
    """One network of a pipeline: which architecture (`exporters/models/architectures/`) its subfolder holds.

    `parameters` are counted from the architecture's configuration, tied ones once.
    """

    architecture: str
    parameters: int
    published: PublishedCount | None = None


class AlternativeRecipe(Record):
    """What to fall back to where a default recipe does not load or is too inexact."""

    text_encoder: EncoderScheme
    precision: Precision | None = None


class DefaultRecipe(Record):
    """What a model is exported with for one runtime unless told otherwise, and in `note` why.

    `experimental`: part of it is known to fail on some devices; `alternative` is then what to try.
    """

    precision: Precision
    text_encoder: EncoderScheme
    compute_unit: ComputeUnit | None = None
    experimental: bool = False
    note: str
    alternative: AlternativeRecipe | None = None


class ModelSpec(Record):
    """A registry entry (`exporters/models/*.toml`).

    `repo` is a hub id, or a path relative to the entry's own folder when `embedded` is true. `parts`, `scheduler` and
    `tokenizers` describe the pipeline without its weights: subfolder to network, the scheduler's settings
    (`exporters/models/schedulers/`), and subfolder to transformers class for tokenizers and processors. `configs` says
    whether those settings were published with the weights or inferred, `configs_note` which and from what.
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
    pipeline: str | None = None
    parts: dict[str, NetworkPart] = msgspec.field(default_factory=dict)
    scheduler: str | None = None
    tokenizers: dict[str, str] = msgspec.field(default_factory=dict)
    configs: Provenance = "published"
    configs_note: str = ""
    recipes: dict[Runtime, DefaultRecipe] = msgspec.field(default_factory=dict)
    notes: str = ""

    @property
    def parameters(self) -> int | None:
        """Count the networks' parameters together; None where the entry does not describe them."""
        return sum(part.parameters for part in self.parts.values()) or None

"""A bundle: exported components, plans and the manifest that names every file in it."""

from __future__ import annotations

from profiler.records.plan import Port
from profiler.records.recipe import EncoderScheme, Precision, Recipe
from profiler.records.record import Record, SchemaVersion, Task
from profiler.records.spec import Licence


class BundleFile(Record):
    """A file of the bundle; `path` is relative to its folder, with forward slashes."""

    path: str
    size_bytes: int
    sha256: str


class Function(Record):
    """One graph of a component; `path` is the file that a runner opens."""

    path: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


class Component(Record):
    """One network part as exported; `files` lists all that its functions need, weights included."""

    functions: dict[str, Function]
    files: tuple[str, ...]
    parameters: int
    precision: Precision | EncoderScheme


class Source(Record):
    """Where the weights came from; `weights_sha256` is over their files, or `random:<seed>`."""

    repo: str
    revision: str | None
    weights_sha256: str


class PromptEncoding(Record):
    """How a prompt becomes token ids: a `tokenizers` file that pads and truncates to `length`."""

    tokenizer: str
    length: int


class DefaultInputs(Record):
    """The inputs a plan runs on unless told otherwise, and the words, seed and picture (PNG) they were made from."""

    path: str
    prompt: str
    negative_prompt: str
    seed: int
    source_image: str | None = None


class TaskPlan(Record):
    """Where a task's plan, the schedules for other step counts, and its default inputs lie."""

    plan: str
    schedules: str
    defaults: DefaultInputs


class Difference(Record):
    """How far an output is from the fp32 source: ‖a − b‖∞ and ‖a − b‖₂ / ‖b‖₂."""

    max_absolute: float
    relative: float


class ImageDifference(Record):
    """How far a final image is from the source's own loop, before and after rounding to uint8."""

    float_image: Difference
    uint8_max_levels: int
    uint8_changed_share: float


class Verification(Record):
    """What was compared at export time, and how well it agreed."""

    reference: str
    components: dict[str, Difference]
    images: dict[Task, ImageDifference]


class Bundle(Record):
    """The manifest (`bundle.json`)."""

    schema_version: SchemaVersion = 1
    model: str
    source: Source
    licence: Licence
    recipe: Recipe
    components: dict[str, Component]
    tasks: dict[Task, TaskPlan]
    prompt_encoding: PromptEncoding
    verification: Verification
    files: tuple[BundleFile, ...]
    tools: dict[str, str]

"""A bundle: exported components, plans and the manifest that names every file in it."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from profiler.records.plan import Port
from profiler.records.recipe import EncoderScheme, Precision, Recipe
from profiler.records.record import Record, SchemaVersion, Task
from profiler.records.spec import Licence


class BundleFile(Record):
    """A file of the bundle; `path` is relative to its folder, with forward slashes."""

    path: str
    size_bytes: int
    sha256: str


class Link(Record):
    """One piece of a graph that is in several: what it takes and gives by name, and where it lies."""

    path: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


class Function(Record):
    """One graph of a component; `path` is the file that a runner opens, or the folder of a Core ML package.

    A graph that is too large for one file is in `chain`: pieces that run one after the other, each taking inputs of
    the function and outputs of earlier pieces. `path` is then the first one's.
    """

    path: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    chain: tuple[Link, ...] = ()

    @property
    def links(self) -> tuple[Link, ...]:
        """Return the pieces, of which there is one where the graph is whole."""
        return self.chain or (Link(path=self.path, inputs=self.inputs, outputs=self.outputs),)


class Difference(Record):
    """How far an output is from its reference: ‖a − b‖∞ and ‖a − b‖₂ / ‖b‖₂."""

    max_absolute: float
    relative: float


class Quantization(Record):
    """What a scheme did to a component's weights.

    `bits_per_weight` is over all its files and weights; `coverage` is the share of weights that are stored by the
    scheme, or by int8 where NF4 cannot hold them (`fallen_back`); `kept` are as precise as the recipe's networks.
    `block` is how many weights share an NF4 scale. `tied` maps further names of a weight to the one it is stored
    under. `ideal_bytes` are codes, scales and all other weights in float32. `from_fp32` is how far the source's output
    with these weights is from that with its own; random weights have none.
    """

    scheme: EncoderScheme
    block: int | None
    absmax_dtype: Literal["float32", "float16"] | None
    bits_per_weight: float
    coverage: float
    kept: tuple[str, ...]
    fallen_back: tuple[str, ...]
    tied: dict[str, str]
    tied_saved_bytes: int
    ideal_bytes: int
    file_bytes: int
    from_fp32: Difference | None = None


class Component(Record):
    """One network part as exported; `files` lists all that its functions need, weights included.

    `notes` say what to know before it runs on a device.
    """

    functions: dict[str, Function]
    files: tuple[str, ...]
    parameters: int
    precision: Precision | EncoderScheme
    quantization: Quantization | None = None
    notes: tuple[str, ...] = ()


class Source(Record):
    """Where the weights came from; `weights_sha256` is over their files, or `random:<seed>`."""

    repo: str
    revision: str | None
    weights_sha256: str


class PromptForm(Record):
    """How a task's prompt is wrapped before it is made token ids: `{prompt}` in the templates stands for it.

    `lowercase` strips and lowers the prompt, not the template. At most `limit` tokens are kept (None: as many as fit);
    where `cut` is false, a prompt of more is refused instead. The first `hidden` tokens, which are the template's, are
    masked as padding is.
    """

    template: str = "{prompt}"
    negative_template: str = "{prompt}"
    lowercase: bool = False
    limit: int | None = None
    cut: bool = True
    hidden: int = 0


class PromptEncoding(Record):
    """How a prompt becomes token ids: a `tokenizers` file that pads and truncates to `length`.

    `forms` say how a task wraps its prompts; one that is not there takes them as they are.
    """

    tokenizer: str
    length: int
    forms: dict[Task, PromptForm] = field(default_factory=dict)


class DefaultInputs(Record):
    """The inputs a plan runs on unless told otherwise, and the words, seed and picture (PNG) they were made from.

    `made_up` are those that nobody gave: drawn from the seed, or zero.
    """

    path: str
    prompt: str
    negative_prompt: str
    seed: int
    source_image: str | None = None
    made_up: tuple[str, ...] = ()


class TaskPlan(Record):
    """Where a task's plan, the schedules for other step counts, and its default inputs lie."""

    plan: str
    schedules: str
    defaults: DefaultInputs


class ImageDifference(Record):
    """How far a final image is from the source's own loop, before and after rounding to uint8."""

    float_image: Difference
    uint8_max_levels: int
    uint8_changed_share: float


class Verification(Record):
    """What was compared at export time, and how well it agreed; a quantized encoder with the same weights in fp32.
    Nothing is compared in a foreign graph, which is its own source.

    `engine` is what ran the exported files (None in bundles that do not tell); where that is not what devices have,
    `not_run` says so, and what the numbers leave open with it. `images_not_run` says why no whole images were compared.
    Where nothing at hand runs the files there are no numbers and no engine, and `not_run` says why.
    """

    reference: str
    components: dict[str, Difference]
    images: dict[Task, ImageDifference]
    engine: str | None = None
    not_run: str | None = None
    images_not_run: str | None = None


class Bundle(Record):
    """The manifest (`bundle.json`); `prompt_encoding` is null where no words go in."""

    schema_version: SchemaVersion = 1
    model: str
    source: Source
    licence: Licence
    recipe: Recipe
    components: dict[str, Component]
    tasks: dict[Task, TaskPlan]
    prompt_encoding: PromptEncoding | None
    verification: Verification
    files: tuple[BundleFile, ...]
    tools: dict[str, str]

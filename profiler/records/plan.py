"""A plan: the calls that make one image, as data that every runner interprets the same way."""

from __future__ import annotations

from typing import Literal

from profiler.records.record import DType, Record, SchemaVersion, Task

Media = Literal["image", "tensor"]


class Port(Record):
    """A named tensor at a graph's boundary; `shape` is static."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


class Constant(Record):
    """A small tensor that the plan carries itself, row-major."""

    dtype: DType
    shape: tuple[int, ...]
    values: tuple[float, ...]


class Load(Record, tag="load", tag_field="kind"):
    """Make a component's graphs ready to run."""

    component: str


class Unload(Record, tag="unload", tag_field="kind"):
    """Give a component's memory back."""

    component: str


class Call(Record, tag="call", tag_field="kind"):
    """Run one function: `bind` maps its input ports to values, `emit` its output ports to new values."""

    component: str
    function: str
    bind: dict[str, str]
    emit: dict[str, str]
    stage: str


class Free(Record, tag="free", tag_field="kind"):
    """Forget values that no later step reads."""

    values: tuple[str, ...]


class Loop(Record, tag="loop", tag_field="kind"):
    """Repeat `body` for each row of the tensors in `over` (element name → tensor), or `over` times.

    `carry` maps a loop value to the value it starts from; the body emits it anew each round, and it keeps
    its last value after the loop. `index`, where named, is the round as an int32 tensor of shape [1].
    """

    over: dict[str, str] | int
    carry: dict[str, str]
    body: tuple[Call | Free, ...]
    stage: str
    index: str | None = None


class Output(Record, tag="output", tag_field="kind"):
    """End the iteration: turn a float image [1, 3, height, width] of 0–255 into uint8 RGB rows, or leave a tensor as
    it is. A tensor is only looked at for values that are not finite."""

    value: str
    stage: str
    media: Media = "image"


PlanStep = Load | Unload | Call | Loop | Free | Output


class Guidance(Record):
    """Classifier-free guidance scales; `image` only where a source image guides too."""

    text: float
    image: float | None = None


class Plan(Record):
    """One task at one step count: `prepare` runs once a process, `body` once an image.

    One that ends in a tensor carries format 2: before, there were only images. `inputs` are the job's; `constants` are
    the plan's own, `constants_file` names a safetensors file in the bundle with larger ones.
    """

    schema_version: SchemaVersion = 1
    task: Task
    scheduler: str
    steps: int
    guidance: Guidance
    inputs: tuple[Port, ...]
    constants: dict[str, Constant]
    constants_file: str | None = None
    prepare: tuple[Load, ...]
    body: tuple[PlanStep, ...]


class Schedules(Record):
    """The plan constants that change with the step count, for each count that the source scheduler gave."""

    schema_version: SchemaVersion = 1
    scheduler: str
    constants_by_steps: dict[int, dict[str, Constant]]

"""What a foreign graph ends in: an image of 0–255 where it has the shape of one, or a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exporters.foreign.graph import FUNCTION, PIXELS, Foreign, ValueRange
from profiler.errors import InputError, UnknownName
from profiler.records.bundle import Component
from profiler.records.plan import Media, Port


class Ended(NamedTuple):
    """A component with the output that a plan ends in, and what to know about it."""

    component: Component
    output: Port
    media: Media
    notes: tuple[str, ...]


def ended(graph: Foreign, folder: Path, component: Component, wanted: str | None, values: ValueRange | None) -> Ended:
    """Choose the output and what it is: an image of 0–255 where it has the shape of one and can be brought to that."""
    outputs = component.functions[FUNCTION].outputs
    output = _chosen(outputs, wanted)
    if output.shape[:2] != (1, 3) or len(output.shape) != 4:
        if values is not None:
            raise InputError(
                f"the output {output.name} is {list(output.shape)}, no image; --output-range has no meaning",
                hint="An image is [1, 3, height, width]; another output is named with --output NAME.",
            )
        return Ended(component, output, "tensor", ())
    said = "; say --output-range if it is another" if values is None else ""
    values = values or PIXELS
    image = graph.end_in_image(folder, component, output.name, values)
    if image is None or (graph.runtime != "onnx" and output.dtype != "float32"):
        note = f"{output.name} has the shape of an image, but nothing here brings it to 0–255: it counts as a tensor"
        return Ended(component, output, "tensor", (note,))
    place = [port.name for port in outputs].index(output.name)
    note = f"{output.name} {list(output.shape)} is taken for an image of {values[0]:g} to {values[1]:g}{said}"
    return Ended(image, image.functions[FUNCTION].outputs[place], "image", (note,))


def _chosen(outputs: Sequence[Port], wanted: str | None) -> Port:
    if not outputs:
        raise InputError("the graph gives nothing")
    if wanted is None:
        return outputs[0]
    for port in outputs:
        if port.name in (wanted, f"{wanted}_{port.dtype}"):
            return port
    raise UnknownName("output", wanted, [port.name for port in outputs])


def with_values(found: Ended, values: Any) -> Ended:
    """Say what the values were; an image that leaves 0–255 would be cut into stripes, and counts as a tensor."""
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    if found.media == "tensor":
        return found
    if low < -0.5 or high > 255.5:
        note = f"its values reach from {low:.4g} to {high:.4g}, beyond an image's 0–255: it counts as a tensor"
        return found._replace(media="tensor", notes=(*found.notes, note))
    if high <= 1.0:
        note = f"its values reach from {low:.4g} to {high:.4g}, an almost black image: see --output-range"
        return found._replace(notes=(*found.notes, note))
    return found

"""The boundary of an ONNX graph: static shapes, float32 and int32, and an image of 0–255 at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx import helper

from exporters.foreign.graph import Shapes, ValueRange
from profiler.errors import InputError
from profiler.records.record import DType

_T = onnx.TensorProto
# What a graph may have at its boundary, by its NumPy name, and what a runner gives or takes in its place.
_BOUNDARY: dict[int, tuple[str, DType]] = {
    _T.FLOAT: ("float32", "float32"),
    _T.FLOAT16: ("float16", "float32"),
    _T.BFLOAT16: ("bfloat16", "float32"),
    _T.DOUBLE: ("float64", "float32"),
    _T.INT32: ("int32", "int32"),
    _T.INT64: ("int64", "int32"),
    _T.INT16: ("int16", "int32"),
    _T.INT8: ("int8", "int32"),
    _T.UINT8: ("uint8", "int32"),
    _T.UINT16: ("uint16", "int32"),
    _T.BOOL: ("bool", "int32"),
}
_ONNX: dict[DType, int] = {"float32": _T.FLOAT, "int32": _T.INT32}


class Side(NamedTuple):
    """One input or output: its own name and type, the port's name and type, and the shape where it is known."""

    name: str
    dtype: str
    port: str
    boundary: DType
    shape: tuple[int, ...] | None


def real_inputs(graph: Any) -> list[Any]:
    """Return what is fed: old files list weights among their inputs."""
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def fix_shapes(model: Any, wanted: Shapes, path: Path) -> bool:
    """Give dynamic dimensions the sizes wanted; a size counts wherever its symbol stands. Tell whether any changed.

    Raises InputError where one is left, or where a wish does not fit.
    """
    inputs = {value.name: value for value in real_inputs(model.graph)}
    unknown = sorted(set(wanted) - set(inputs))
    if unknown:
        raise InputError(f"{path.name} has no input {unknown[0]!r}", hint=f"It has {_signature(inputs.values())}.")
    symbols: dict[str, int] = {}
    for name, shape in wanted.items():
        _fix(inputs[name], shape, symbols, path)
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        _fill(value, symbols)
    left = [value for value in inputs.values() if _static(value) is None]
    if left:
        raise InputError(
            f"{path.name} has inputs without a fixed shape: {_signature(inputs.values())}",
            hint="Fix them: " + " ".join(f"--shape '{value.name}={_template(value)}'" for value in left),
        )
    return bool(wanted)


def sides(model: Any, values: Any, path: Path) -> tuple[Side, ...]:
    """Describe inputs or outputs. Raises InputError for types that a runner cannot reach."""
    return tuple(_side(model, value, path) for value in values)


def cast_boundary(model: Any, inputs: tuple[Side, ...], outputs: tuple[Side, ...]) -> bool:
    """Insert a cast at each input and output of another type than the port's; tell whether there was any."""
    graph = model.graph
    _need_opset(model)
    for side in (side for side in inputs if side.port != side.name):
        own = next(value for value in graph.input if value.name == side.name)
        node = helper.make_node("Cast", [side.port], [side.name], to=own.type.tensor_type.elem_type)
        graph.node.insert(0, node)
        _retype(own, side)
    for side in (side for side in outputs if side.port != side.name):
        graph.node.append(helper.make_node("Cast", [side.name], [side.port], to=_ONNX[side.boundary]))
        _retype(next(value for value in graph.output if value.name == side.name), side)
    return any(side.port != side.name for side in (*inputs, *outputs))


def end_in_pixels(model: Any, output: str, shape: tuple[int, ...], values: ValueRange) -> str:
    """Append what takes an output from a range of values to 0–255, within it; return the new output's name."""
    low, high = values
    graph, new = model.graph, free_name(model, f"{output}_pixels")
    scale = 255.0 / (high - low)
    value = free_name(model, f"{new}_0")
    graph.node.append(helper.make_node("Cast", [output], [value], to=_T.FLOAT))
    steps = {"Mul": scale, "Add": -low * scale, "Max": 0.0, "Min": 255.0}
    for number, (kind, constant) in enumerate(steps.items(), 1):
        by = free_name(model, f"{new}_{kind.lower()}")
        result = new if kind == "Min" else free_name(model, f"{new}_{number}")
        graph.node.append(
            helper.make_node("Constant", [], [by], value=helper.make_tensor(by, _T.FLOAT, [], [constant]))
        )
        graph.node.append(helper.make_node(kind, [value, by], [result]))
        value = result
    place = next(number for number, value in enumerate(graph.output) if value.name == output)
    graph.output[place].CopyFrom(helper.make_tensor_value_info(new, _T.FLOAT, shape))
    return new


def opset_of(model: Any) -> int:
    """Return the version of ONNX's own operators that a model uses; 0 where it uses none."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)


def free_name(model: Any, wanted: str) -> str:
    """Return a name that nothing in a graph has."""
    taken = set(_names(model.graph))
    while wanted in taken:
        wanted += "_"
    return wanted


def _names(graph: Any) -> Iterator[str]:
    yield from (value.name for value in (*graph.input, *graph.output, *graph.initializer))
    for node in graph.node:
        yield from (*node.input, *node.output)
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _names(inner)


def _side(model: Any, value: Any, path: Path) -> Side:
    kind = value.type.tensor_type.elem_type if value.type.WhichOneof("value") == "tensor_type" else None
    if kind not in _BOUNDARY:
        what = value.type.WhichOneof("value") if kind is None else f"tensor of {_T.DataType.Name(kind).lower()}"
        raise InputError(
            f"{path.name}: {value.name} is a {what}, which no runner gives or takes",
            hint=f"A graph may have tensors of {', '.join(name for name, _ in _BOUNDARY.values())}.",
        )
    dtype, boundary = _BOUNDARY[kind]
    port = value.name if dtype == boundary else free_name(model, f"{value.name}_{boundary}")
    return Side(value.name, dtype, port, boundary, _static(value))


def _retype(value: Any, side: Side) -> None:
    value.name = side.port
    value.type.tensor_type.elem_type = _ONNX[side.boundary]


def _need_opset(model: Any) -> None:
    """Let a graph that uses none of ONNX's own operators use them: a cast is one."""
    if opset_of(model) == 0:
        model.opset_import.append(helper.make_opsetid("", 13))


def _dimensions(value: Any) -> list[int | str] | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return [d.dim_value if d.dim_value > 0 else d.dim_param or "?" for d in kind.shape.dim]


def _static(value: Any) -> tuple[int, ...] | None:
    sizes = _dimensions(value)
    if sizes is None or not all(isinstance(size, int) for size in sizes):
        return None
    return tuple(int(size) for size in sizes)


def _fix(value: Any, shape: tuple[int, ...], symbols: dict[str, int], path: Path) -> None:
    sizes = _dimensions(value)
    if sizes is None:
        sizes = ["?"] * len(shape)
        value.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in shape)
    fits = len(sizes) == len(shape) and min(shape, default=1) >= 1
    for old, new in zip(sizes, shape, strict=False):
        # A symbol stands for one size, wherever it stands.
        fits = fits and (old == "?" or new == (old if isinstance(old, int) else symbols.setdefault(old, new)))
    if not fits:
        raise InputError(
            f"--shape {value.name}={_commas(shape)} does not fit {path.name}, which has {_words(value)}"
            + (f" and {', '.join(f'{a} = {b}' for a, b in symbols.items())}" if symbols else "")
        )
    for dimension, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
        dimension.dim_value = size


def _fill(value: Any, symbols: dict[str, int]) -> None:
    for dimension in value.type.tensor_type.shape.dim if value.type.tensor_type.HasField("shape") else ():
        if dimension.dim_param in symbols:
            dimension.dim_value = symbols[dimension.dim_param]


def _signature(values: Any) -> str:
    return "; ".join(_words(value) for value in values) or "no inputs"


def _words(value: Any) -> str:
    sizes = _dimensions(value)
    return f"{value.name}[{'?' if sizes is None else ', '.join(map(str, sizes))}]"


def _template(value: Any) -> str:
    sizes = _dimensions(value)
    return "SIZES" if sizes is None else ",".join(str(size).upper() for size in sizes)


def _commas(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))

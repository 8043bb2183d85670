"""Parts to Core ML packages: iOS 18 MIL programs, float16 unless the recipe says float32."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from exporters.coreml_package import write_package
from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quiet import quiet
from exporters.runtimes import Runtime, coreml_precision
from exporters.runtimes.layout import function_path
from profiler.errors import InputError, InternalError, MissingExtra, ModelError, first_line
from profiler.records.bundle import Component, Function, Link
from profiler.records.plan import Port
from profiler.records.recipe import EncoderScheme, Precision, Recipe
from profiler.records.record import DType

if find_spec("coremltools") is None:
    raise MissingExtra("exporting to Core ML", "export")
with quiet():  # at import coremltools tells of what only macOS has, and of torch's version
    import coremltools
    from coremltools.proto import FeatureTypes_pb2

    from exporters.runtimes.coreml_coded import CodedWeights, with_weights
    from exporters.runtimes.coreml_operators import UNWANTED_PASS, register_operators
    from exporters.runtimes.coreml_split import CannotSplit, split
    from exporters.verify_coreml import MilInterpreter

ENDING = "mlpackage"
# Apple's own Stable Diffusion is split into chunks below this, for iOS and the Neural Engine
# (github.com/apple/ml-stable-diffusion, --chunk-unet).
NEURAL_ENGINE_LIMIT_BYTES = 1_000_000_000
# Left whole, because MIL has them: taken apart, a linear layer becomes a matmul that weight compression does not see,
# and the masks of text encoders become operations that coremltools does not know.
_KEPT = (
    torch.ops.aten.linear.default,
    torch.ops.aten.matmul.default,
    torch.ops.aten.scaled_dot_product_attention.default,
    torch.ops.aten.layer_norm.default,
    torch.ops.aten.group_norm.default,
    torch.ops.aten.silu.default,
    torch.ops.aten.gelu.default,
    torch.ops.aten.upsample_nearest2d.vec,
)
_DTYPES: dict[int, DType] = {
    FeatureTypes_pb2.ArrayFeatureType.FLOAT32: "float32",
    FeatureTypes_pb2.ArrayFeatureType.INT32: "int32",
}
_NUMPY = {torch.float32: np.float32, torch.int32: np.int32}


def check(recipe: Recipe) -> None:
    """Raise InputError for a scheme on a unit that does not load it."""
    if recipe.text_encoder == "nf4" and recipe.compute_unit == "all":
        raise InputError(
            "an NF4 text encoder does not load on the Neural Engine",
            hint="Use compute unit cpu_gpu, or --text-encoder int8 (github.com/apple/coremltools, pull request 2688).",
        )


def export_part(
    part: Part, folder: Path, recipe: Recipe, stages: Stages, *, limit_bytes: int = NEURAL_ENGINE_LIMIT_BYTES
) -> Component:
    """Write a part's functions as packages below `folder`, for the Neural Engine in pieces of at most `limit_bytes`.

    Raises ModelError where coremltools cannot convert one.
    """
    wanted = part.precision(recipe)
    # What weights are stored in is the scheme's; what is computed in is the recipe's, also for coded weights.
    computed: Precision = "fp32" if wanted == "fp32" else recipe.precision
    functions: dict[str, Function] = {}
    files: list[str] = []
    for name, graph in part.graphs.items():
        stages.begin(f"export {part.name}.{name}")
        with stages.heartbeat():
            pieces = _pieces(graph, computed, limit_bytes) if recipe.compute_unit == "all" else [graph]
            links = [
                _write_link(part.name, name if len(pieces) == 1 else f"{name}_{number}", piece, computed, folder, files)
                for number, piece in enumerate(pieces, 1)
            ]
        functions[name] = _function(graph, links)
    return Component(
        functions=functions,
        files=tuple(files),
        parameters=part.parameters,
        precision=wanted,
        notes=tuple(notes(wanted, _sizes(functions, files, folder), limit_bytes)),
    )


def notes(
    precision: Precision | EncoderScheme, sizes: Sequence[Sequence[int]], limit_bytes: int = NEURAL_ENGINE_LIMIT_BYTES
) -> Iterator[str]:
    """Say what a device will make of a component; `sizes` are the bytes of each function's packages."""
    if precision == "nf4":
        yield (
            "Experimental, for the CPU and GPU only: a float16 table times a float16 scale fails to load on the Neural "
            "Engine (github.com/apple/coremltools, pull request 2688 and issue 2716, both open)."
        )
    limit = f"the Neural Engine takes up to {limit_bytes / 1e9:.2g} GB a model"
    for packages in sizes:
        largest = max(packages)
        if len(packages) > 1:
            yield f"In {len(packages)} packages of up to {largest / 1e9:.2f} GB that run one after the other: {limit}."
        elif largest > limit_bytes:
            yield f"{largest / 1e9:.2f} GB in one piece: for the CPU and GPU only, as {limit}."


def _pieces(graph: Graph, precision: Precision, limit_bytes: int) -> list[Graph]:
    """Cut a graph for the Neural Engine; it stays whole where it cannot be cut, or not be traced."""
    try:
        with quiet():
            return split(graph, limit_bytes, halves=precision == "fp16")
    except CannotSplit:
        return [graph]


def _write_link(part: str, name: str, graph: Graph, precision: Precision, folder: Path, files: list[str]) -> Link:
    path = function_path(part, name, ENDING)
    specification, written = _write(f"{part}.{name}", graph, precision, folder / path)
    files += [f"{path}/{file}" for file in written]
    description = specification.description
    return Link(path=path, inputs=_ports(description.input), outputs=_ports(description.output))


def _function(graph: Graph, links: Sequence[Link]) -> Function:
    """Describe a function by its pieces; a boundary between them is none of its own."""
    inputs = {port.name: port for link in links for port in link.inputs}
    outputs = {port.name: port for link in links for port in link.outputs}
    whole = len(links) == 1
    return Function(
        path=links[0].path,
        inputs=links[0].inputs if whole else tuple(inputs[name] for name in graph.inputs if name in inputs),
        outputs=links[0].outputs if whole else tuple(outputs[name] for name in graph.outputs),
        chain=() if whole else tuple(links),
    )


def _sizes(functions: Mapping[str, Function], files: Sequence[str], folder: Path) -> list[list[int]]:
    return [
        [
            sum((folder / file).stat().st_size for file in files if file.startswith(f"{link.path}/"))
            for link in function.links
        ]
        for function in functions.values()
    ]


def _write(name: str, graph: Graph, precision: Precision, destination: Path) -> tuple[Any, list[str]]:
    destination.parent.mkdir(parents=True, exist_ok=True)
    # Beside the destination, so that large files are moved there and not copied.
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".") as scratch:
        coded = CodedWeights()
        model = _convert(name, graph, precision, coded, Path(scratch) / f"model.{ENDING}")
        specification = model.get_spec()
        _strip(specification)
        weights = Path(model.weights_dir) / "weight.bin"
        coded.put_into(specification, weights)
        written = write_package(
            destination,
            specification.SerializeToString(deterministic=True),
            weights if weights.is_file() else None,
        )
    return specification, written


def _convert(name: str, graph: Graph, precision: Precision, coded: CodedWeights, destination: Path) -> Any:
    """Return the converted model, its files in `destination`, its coded weights still to be put in."""
    inputs = [_input(port, example) for port, example in graph.inputs.items()]
    try:
        with quiet():
            register_operators(coded)
            program = torch.export.export(graph.module, tuple(graph.inputs.values()), strict=False)
            return coremltools.convert(
                program.run_decompositions(_decompositions()),
                convert_to="mlprogram",
                minimum_deployment_target=coremltools.target.iOS18,
                compute_precision=_precision(precision, graph.wide),
                inputs=inputs,
                outputs=_outputs(program, graph),
                pass_pipeline=_passes(),
                package_dir=str(destination),
                skip_model_load=True,
            )
    except Exception as error:  # both raise whatever the model's own code and their own passes raise
        raise ModelError(f"cannot convert {name} to Core ML: {first_line(error)}") from error


def _precision(precision: Precision, wide: bool) -> Any:
    if precision == "fp32":
        return coremltools.precision.FLOAT32
    selects = coreml_precision.layer_computes_in_half if wide else coreml_precision.computes_in_half
    return coremltools.transform.FP16ComputePrecision(op_selector=with_weights(selects))


def _passes() -> Any:
    passes = coremltools.PassPipeline.DEFAULT
    passes.remove_passes([UNWANTED_PASS])
    return passes


def _input(name: str, example: torch.Tensor) -> Any:
    if example.dtype not in _NUMPY:
        raise InternalError(f"graph input {name} is {example.dtype}; only float32 and int32 may be")
    return coremltools.TensorType(name=name, shape=tuple(example.shape), dtype=_NUMPY[example.dtype])


def _outputs(program: torch.export.ExportedProgram, graph: Graph) -> list[Any]:
    results = [node.meta["val"] for node in program.graph.output_node().args[0]]
    return [
        coremltools.TensorType(name=port, dtype=np.float32 if value.is_floating_point() else np.int32)
        for port, value in zip(graph.outputs, results, strict=True)
    ]


def _decompositions() -> Mapping[Any, Any]:
    table: Any = torch.export.default_decompositions()
    return {operation: table[operation] for operation in table if operation not in _KEPT}


def _strip(specification: Any) -> None:
    """Blank the date of the conversion, which would make every export differ."""
    specification.description.metadata.userDefined["com.github.apple.coremltools.conversion_date"] = ""


def _ports(features: Any) -> tuple[Port, ...]:
    return tuple(_port(feature) for feature in features)


def _port(feature: Any) -> Port:
    array = feature.type.multiArrayType
    if feature.type.WhichOneof("Type") != "multiArrayType" or array.dataType not in _DTYPES:
        raise InternalError(f"graph boundary {feature.name} is no float32 or int32 array")
    return Port(name=feature.name, dtype=_DTYPES[array.dataType], shape=tuple(int(size) for size in array.shape))


RUNTIME = Runtime(
    export_part=export_part,
    engine=MilInterpreter,
    tools=("coremltools",),
    precisions=("fp32", "fp16"),
    schemes=("fp32", "fp16", "int8", "nf4"),
    check=check,
    not_run="Core ML runs on Apple devices only; an interpreter of the MIL programs stood in for it",
)

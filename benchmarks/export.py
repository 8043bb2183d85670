"""What our exports cost beside the bare toolchains: `python -m benchmarks.export [--runtime NAME …] [--repeats N]`.

The U-Net of benchmarks.large_pipeline (59 M parameters) is written by `export_part`, and by the toolchain's own calls
alone with the same options: torch.onnx.export and save; torch.export, to_edge_transform_and_lower for XNNPACK and
to_executorch; torch.export and coremltools.convert. Each has a process of its own, in turn; compared are the medians of
the wall time after all imports, and of the peak of RssAnon + RssShmem.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.verdicts import Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler.quantities import format_bytes

WALL_LIMIT, MEMORY_LIMIT = 1.10, 1.05
SIDES = ("bare", "ours")


class Taken(NamedTuple):
    """What one export took in its process, and what it wrote."""

    wall_s: float
    peak_bytes: int
    file_bytes: int


def unet_part() -> Any:
    """Return the U-Net as a part."""
    import torch

    from benchmarks.large_pipeline import LATENT_SIDE, large_unet
    from exporters.families.stable_diffusion_graphs import Denoiser
    from exporters.parts import Graph, Part

    torch.manual_seed(0)
    unet = large_unet().requires_grad_(False)
    inputs = {
        "latents": torch.randn(1, 4, LATENT_SIDE, LATENT_SIDE),
        "timestep": torch.tensor([500.0]),
        "text_states": torch.randn(1, 77, unet.config.cross_attention_dim),
    }
    return Part(name="denoiser", graphs={"predict": Graph(module=Denoiser(unet), inputs=inputs, outputs=("noise",))})


def export_ours(runtime: str, part: Any, folder: Path) -> None:
    """Write the component as an export does."""
    from exporters.progress import Stages
    from exporters.runtimes import runtime as target
    from profiler.records.recipe import recipe_of

    target(runtime).export_part(part, folder, recipe_of(256, 256, runtime=runtime), Stages())


def export_onnx(graph: Any, folder: Path) -> None:
    """Write ONNX with nothing but the toolchain."""
    import torch

    program = torch.onnx.export(
        graph.module,
        tuple(graph.inputs.values()),
        input_names=list(graph.inputs),
        output_names=list(graph.outputs),
        opset_version=20,
        dynamo=True,
        optimize=True,
        verbose=False,
    )
    assert program is not None
    program.save(folder / "bare.onnx", external_data=True)


def export_executorch(graph: Any, folder: Path) -> None:
    """Write an XNNPACK program with nothing but the toolchain."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    with torch.no_grad():
        program = torch.export.export(graph.module, tuple(graph.inputs.values()), strict=False)
    edge = to_edge_transform_and_lower(
        program, partitioner=[XnnpackPartitioner()], compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    with (folder / "bare.pte").open("wb") as stream:
        edge.to_executorch().write_to_file(stream)


def export_coreml(graph: Any, folder: Path) -> None:
    """Write a package with nothing but the toolchain."""
    import coremltools
    import numpy as np
    import torch

    from exporters.runtimes.coreml import _decompositions

    program = torch.export.export(graph.module, tuple(graph.inputs.values()), strict=False)
    coremltools.convert(
        program.run_decompositions(_decompositions()),
        convert_to="mlprogram",
        minimum_deployment_target=coremltools.target.iOS18,
        compute_precision=coremltools.precision.FLOAT16,
        inputs=[
            coremltools.TensorType(name=name, shape=tuple(value.shape), dtype=np.float32)
            for name, value in graph.inputs.items()
        ],
        outputs=[coremltools.TensorType(name=name, dtype=np.float32) for name in graph.outputs],
        package_dir=str(folder / "bare.mlpackage"),
        skip_model_load=True,
    )


BARE = {"onnx": export_onnx, "executorch": export_executorch, "coreml": export_coreml}


def export_once(runtime: str, side: str, folder: Path) -> Taken:
    """Export in this process."""
    from exporters.children import Peak, resident_bytes
    from exporters.runtimes import runtime as target

    target(runtime)  # imports the toolchain, which is not what is timed
    part = unet_part()
    peak = Peak(partial(resident_bytes, "self"))
    begin = time.monotonic()
    if side == "ours":
        export_ours(runtime, part, folder)
    else:
        (graph,) = part.graphs.values()
        BARE[runtime](graph, folder)
    wall_s = time.monotonic() - begin
    return Taken(wall_s, peak.end(), sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def compare(runtime: str, repeats: int, console: Console) -> list[Verdict]:
    """Export both ways in fresh processes, print what each took, and judge the ratios of the medians."""
    taken: dict[str, list[Taken]] = {side: [] for side in SIDES}
    for _ in range(repeats):
        for side in SIDES:
            found = _in_fresh_process(runtime, side)
            taken[side].append(found)
            console.print(
                f"{runtime}, {side}: {found.wall_s:.1f} s, {format_bytes(found.peak_bytes)} peak, "
                f"{format_bytes(found.file_bytes)} written"
            )
    wall, peak = (_ratio(taken, place) for place in (0, 1))
    return [
        judge(f"{runtime}: wall time over the bare toolchain's", "", wall, WALL_LIMIT),
        judge(f"{runtime}: peak memory over the bare toolchain's", "", peak, MEMORY_LIMIT),
    ]


def _ratio(taken: dict[str, list[Taken]], place: int) -> float:
    bare, ours = (statistics.median(each[place] for each in taken[side]) for side in SIDES)
    return ours / bare


def _in_fresh_process(runtime: str, side: str) -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.export", "--runtime", runtime, "--one", side]
        command += ["--folder", folder]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{side} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return Taken(*json.loads(ended.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, or do one process's part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="exports of each kind")
    parser.add_argument("--runtime", nargs="*", choices=BARE, default=list(BARE))
    parser.add_argument("--one", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.one:
        print(json.dumps(export_once(asked.runtime[0], asked.one, asked.folder)))
        return 0
    console, before = Console(), load_now()
    verdicts = [verdict for runtime in asked.runtime for verdict in compare(runtime, asked.repeats, console)]
    print_verdicts(verdicts, load_since(before), console)
    return exit_code(verdicts)


if __name__ == "__main__":
    sys.exit(main())

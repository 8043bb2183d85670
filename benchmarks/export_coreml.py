"""What our export to Core ML costs beside the bare toolchain: `python -m benchmarks.export_coreml [--repeats N]`.

The U-Net of benchmarks.large_pipeline (59 M parameters, float16) is written as a package by `export_part`, and by
torch.export and coremltools.convert alone with the same decompositions, target and precision. Each has a process of
its own, in turn; compared are the medians of the wall time after all imports, and of the peak resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.verdicts import Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler.quantities import KIB, format_bytes

WALL_LIMIT, MEMORY_LIMIT = 1.10, 1.05
SIDES = ("bare", "ours")


class Taken(NamedTuple):
    """What one export took in its process, and what it wrote."""

    wall_s: float
    peak_bytes: int
    package_bytes: int


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


def export_ours(part: Any, folder: Path) -> None:
    """Write the package as an export does."""
    from exporters.progress import Stages
    from exporters.runtimes.coreml import export_part
    from profiler.records.recipe import recipe_of

    export_part(part, folder, recipe_of(256, 256, runtime="coreml"), Stages())


def export_bare(part: Any, folder: Path) -> None:
    """Write the package with nothing but the toolchain."""
    import coremltools
    import numpy as np
    import torch

    from exporters.runtimes.coreml import _decompositions

    (graph,) = part.graphs.values()
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


def export_once(side: str, folder: Path) -> Taken:
    """Export in this process."""
    import exporters.runtimes.coreml  # noqa: F401 - not what is timed

    part = unet_part()
    export = export_ours if side == "ours" else export_bare
    begin = time.monotonic()
    export(part, folder)
    wall_s = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    return Taken(wall_s, peak, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def compare(repeats: int, console: Console) -> list[Verdict]:
    """Export both ways in fresh processes, print what each took, and judge the ratios of the medians."""
    taken: dict[str, list[Taken]] = {side: [] for side in SIDES}
    for _ in range(repeats):
        for side in SIDES:
            found = _in_fresh_process(side)
            taken[side].append(found)
            console.print(
                f"{side}: {found.wall_s:.1f} s, {format_bytes(found.peak_bytes)} peak, "
                f"{format_bytes(found.package_bytes)} written"
            )
    wall, peak = (_ratio(taken, place) for place in (0, 1))
    return [
        judge("wall time over the bare toolchain's", "", wall, WALL_LIMIT),
        judge("peak resident memory over the bare toolchain's", "", peak, MEMORY_LIMIT),
    ]


def _ratio(taken: dict[str, list[Taken]], place: int) -> float:
    bare, ours = (statistics.median(each[place] for each in taken[side]) for side in SIDES)
    return ours / bare


def _in_fresh_process(side: str) -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.export_coreml", "--one", side, "--folder", folder]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{side} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return Taken(*json.loads(ended.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, or do one process's part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="exports of each kind")
    parser.add_argument("--one", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.one:
        print(json.dumps(export_once(asked.one, asked.folder)))
        return 0
    console, before = Console(), load_now()
    verdicts = compare(asked.repeats, console)
    print_verdicts(verdicts, load_since(before), console)
    return exit_code(verdicts)


if __name__ == "__main__":
    sys.exit(main())

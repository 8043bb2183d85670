"""What lowering a network to ExecuTorch costs, and what our form of attention saves of it.

    python -m benchmarks.lowering [--network NAME ...] [--form ours torch]

Each network is lowered in a process of its own for each form: as PyTorch writes attention down, and as we do. The
U-Net of DreamLite at full size takes minutes, 6 GiB and 2 GB of disk, so that it is lowered only when it is named:

    python -m benchmarks.lowering --network "DreamLite U-Net" --form ours
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from exporters.children import Peak, resident_bytes
from exporters.families import stable_diffusion
from exporters.families.stable_diffusion_graphs import Denoiser
from exporters.networks import Networks
from exporters.parts import Graph
from exporters.verify import difference
from profiler.records.recipe import Recipe

_RATIOS = ("islands", "cpu_s", "wall_s", "peak_mib", "anonymous_mib", "megabytes")
_FORMS = {"torch": "PyTorch's attention", "ours": "ours"}
NANO = Path(__file__).resolve().parent.parent / "exporters" / "models" / "nano"


class Lowered(NamedTuple):
    """One network, lowered once; `cpu_s` is what counts on a machine that others use too."""

    islands: int
    wall_s: float
    cpu_s: float
    peak_mib: float
    anonymous_mib: float
    megabytes: float
    relative: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Lower all networks both ways and print them side by side."""
    options = _parse(arguments)
    if options.one:
        print(json.dumps(lower_once(options.network[0], attention=options.one == "ours")))
        return 0
    table = Table("network", "", "islands", "CPU s", "wall s", "peak MiB", "RssAnon", "MB", "relative error", box=None)
    for network in options.network:
        found = {form: _in_a_process(network, form) for form in options.form}
        for form, cost in found.items():
            table.add_row(network, _FORMS[form], *_cells(cost))
        if len(found) == len(_FORMS):
            ratios = [f"{getattr(found['ours'], name) / getattr(found['torch'], name):.2f}" for name in _RATIOS]
            table.add_row("", "ours / PyTorch's", *ratios, "")
        Console(stderr=True).print(table)
    Console(width=130).print(table)
    return 0


def lower_once(network: str, *, attention: bool) -> Lowered:
    """Lower a network in this process; run it once beside its source."""
    from exporters.runtimes import executorch
    from exporters.runtimes.executorch_forms import ExecutorchForms
    from exporters.runtimes.executorch_graph import islands
    from profiler.runner.engines.executorch_engine import binding

    graph = NETWORKS[network]()
    peak = Peak(partial(resident_bytes, "self"))
    wall_s, cpu_s = time.monotonic(), time.process_time()
    traced = executorch.trace(graph, "fp32", forms=ExecutorchForms(attention=attention))
    edge = executorch.lower(network, traced)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forward.pte")
        executorch.write(edge, path)
        wall_s, cpu_s = time.monotonic() - wall_s, time.process_time() - cpu_s
        anonymous_mib = peak.end() / 2**20
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        (found,) = binding._load_program(str(path)).load_method("forward").call(list(graph.inputs.values()))
        off = difference(np.asarray(found), graph.run()[0].numpy())
        size = path.stat().st_size / 1e6
        return Lowered(islands(edge), wall_s, cpu_s, peak_mib, anonymous_mib, size, off.relative)


def _dreamlite() -> Graph:
    """Build DreamLite's U-Net, 390 M random weights, as it is exported at 1024 pixels."""
    from diffusers import DreamLiteUNetModel

    from exporters.architectures import config_of
    from exporters.families.dreamlite import LENGTH
    from exporters.families.dreamlite_graphs import Denoiser as DreamLiteDenoiser

    torch.manual_seed(0)
    unet = DreamLiteUNetModel.from_config(config_of("dreamlite-unet"))
    inputs = {
        "latents": torch.randn(1, 4, 128, 128),
        "timestep": torch.tensor([500.0]),
        "source_latents": torch.randn(1, 4, 128, 128),
        "text_states": torch.randn(1, LENGTH, unet.config.encoder_hid_dim),
        "text_mask": (torch.arange(LENGTH) < 300).int()[None],
    }
    module = DreamLiteDenoiser(unet, 1024, 1024).eval().requires_grad_(False)
    return Graph(module=module, inputs=inputs, outputs=("prediction",))


def _nano(part: str, function: str) -> Graph:
    recipe = Recipe(height=64, width=64)
    found = stable_diffusion.load(Networks(NANO), recipe).parts[part]
    found.fill(recipe)
    return found.graphs[function]


def _unet() -> Graph:
    """Build a U-Net of Stable Diffusion's kind, 59 M parameters, at 256 pixels."""
    from benchmarks.large_pipeline import LATENT_SIDE, large_unet

    torch.manual_seed(0)
    unet = large_unet()
    inputs: dict[str, Any] = {
        "latents": torch.randn(1, unet.config.in_channels, LATENT_SIDE, LATENT_SIDE),
        "timestep": torch.tensor([500.0]),
        "text_states": torch.randn(1, 77, unet.config.cross_attention_dim),
    }
    return Graph(module=Denoiser(unet).eval(), inputs=inputs, outputs=("prediction",))


LARGE = "DreamLite U-Net"
NETWORKS: dict[str, Callable[[], Graph]] = {
    "nano text encoder": lambda: _nano("text_encoder", "encode"),
    "nano U-Net": lambda: _nano("denoiser", "predict"),
    "59 M U-Net": _unet,
    LARGE: _dreamlite,
}


def _in_a_process(network: str, form: str) -> Lowered:
    command = [sys.executable, "-m", "benchmarks.lowering", "--network", network, "--one", form]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Lowered(*json.loads(ended.stdout.splitlines()[-1]))


def _cells(found: Lowered) -> list[str]:
    return [
        str(found.islands),
        f"{found.cpu_s:.1f}",
        f"{found.wall_s:.1f}",
        f"{found.peak_mib:.0f}",
        f"{found.anonymous_mib:.0f}",
        f"{found.megabytes:.1f}",
        f"{found.relative:.1e}",
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lowering", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", nargs="+", choices=NETWORKS, default=[name for name in NETWORKS if name != LARGE])
    parser.add_argument("--form", nargs="+", choices=_FORMS, default=list(_FORMS))
    parser.add_argument("--one", choices=("ours", "torch"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())

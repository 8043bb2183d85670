"""Size, exactness and memory of text encoders as Core ML packages.

    python -m benchmarks.coreml_encoder [--large [--layers N]] [--schemes nf4 int8]

Without options: a CLIP-like encoder of 123 M parameters. `--large`: the encoder of SANA-Sprint, Gemma 2 with 2.6 B
parameters, its seeded random weights drawn one by one as an export does; `--layers` takes fewer of its 26 layers. Each
scheme has a process of its own, which reads and codes the weights, exports, and compares the interpreter's output with
PyTorch holding the same weights. Judged are the package's bytes against codes and scales plus all other weights in half
precision, the error, and the process's largest RssAnon + RssShmem, sampled ten times a second.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.encoder_schemes import encoder_part
from benchmarks.verdicts import Verdict, exit_code, judge, load_now, load_since, print_verdicts
from exporters.children import Peak, resident_bytes
from profiler.quantities import GIB, format_bytes

SCHEMES, LARGE_SCHEMES = ("fp16", "int8", "nf4"), ("int8", "nf4")
SIZE_LIMIT, ERROR_LIMIT, MEMORY_LIMIT = 1.03, 2e-2, 10 * GIB
LENGTH, LAYERS = 300, 26


def large_part(layers: int, folder: Path) -> Any:
    """Build Gemma 2 without memory for its weights; `folder` takes its configuration."""
    import torch

    from exporters.architectures import config_of
    from exporters.networks import Networks
    from exporters.parts import Graph, Part
    from exporters.weights import RandomWeights

    config = config_of("gemma-2-2b") | {"num_hidden_layers": layers}
    (folder / "text_encoder").mkdir()
    (folder / "text_encoder" / "config.json").write_text(json.dumps(config))
    (folder / "model_index.json").write_text(json.dumps({"text_encoder": ["transformers", "Gemma2Model"]}))
    networks = Networks(folder, RandomWeights(0))
    module = gemma_layers(networks.module("text_encoder", attn_implementation="eager"))
    ids = (torch.arange(LENGTH, dtype=torch.int32)[None] * 613) % config["vocab_size"]
    graph = Graph(module=module, inputs={"input_ids": ids}, outputs=("s",))
    return Part(name="text_encoder", graphs={"encode": graph}, encodes_text=True, filler=networks)


def gemma_layers(gemma: Any) -> Any:
    """Return a module that calls Gemma's layers one by one: its own way builds masks that exporters do not know."""
    import torch
    from torch import nn

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layers, self.norm = gemma.embed_tokens, gemma.layers, gemma.norm
            cos, sin = gemma.rotary_emb(torch.zeros(1), torch.arange(LENGTH)[None])
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)
            mask = torch.full((LENGTH, LENGTH), -10_000.0).triu(1)[None, None]
            self.register_buffer("mask", mask, persistent=False)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            states = nn.functional.embedding(input_ids, self.embedding.weight)
            for layer in self.layers:
                states = layer(states, position_embeddings=(self.cos, self.sin), attention_mask=self.mask)
            normed: torch.Tensor = self.norm(states)
            return normed

    return Layers().eval()


def measure(scheme: str, layers: int | None, folder: Path) -> dict[str, Any]:
    """Do all of one scheme in this process; tell bytes, error, and each stage's time and peak memory."""
    from exporters import text_encoder
    from exporters.progress import Stages
    from exporters.runtimes.coreml import export_part
    from exporters.verify import verify_part
    from exporters.verify_coreml import MilInterpreter
    from profiler.records.recipe import recipe_of

    recipe = recipe_of(512, 512, runtime="coreml", text_encoder=scheme)  # type: ignore[arg-type]
    told: dict[str, Any] = {"stages": {}}
    with _stage("weights", told):
        part = encoder_part() if layers is None else large_part(layers, folder)
        part.fill(recipe)
        applied = text_encoder.code(part, recipe)
    if applied is None:
        raise SystemExit(f"{scheme} codes nothing")
    with _stage("export", told):
        component = export_part(part, folder, recipe, Stages())
    with _stage("verify", told):
        difference = verify_part(part, component, folder, MilInterpreter())
    coded = list(applied.coded.values())
    return told | {
        "packages": sum(len(function.links) for function in component.functions.values()),
        "weights": applied.weights,
        "file_bytes": sum((folder / path).stat().st_size for path in component.files),
        "ideal_bytes": sum(held.size_bytes for held in coded)
        + 2 * (applied.weights - sum(held.count for held in coded)),
        "relative": difference.relative,
    }


@contextmanager
def _stage(name: str, told: dict[str, Any]) -> Iterator[None]:
    begin, peak = time.monotonic(), Peak(partial(resident_bytes, "self"))
    yield
    told["stages"][name] = (time.monotonic() - begin, peak.end())


def _in_fresh_process(scheme: str, layers: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.coreml_encoder", "--one", scheme, "--folder", folder]
        command += ["--large", "--layers", str(layers)] if layers is not None else []
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{scheme} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _row(scheme: str, found: dict[str, Any], table: Table) -> list[Verdict]:
    stages = found["stages"]
    peak = max(peak for _, peak in stages.values())
    over = found["file_bytes"] / found["ideal_bytes"]
    table.add_row(
        scheme,
        f"{found['weights']:,}",
        f"{format_bytes(found['file_bytes'])} in {found['packages']}",
        f"{over - 1:+.2%}",
        f"{found['relative']:.1e}",
        *(f"{took:.0f} s, {format_bytes(peak)}" for took, peak in stages.values()),
    )
    return [
        judge(f"{scheme}: package over ideal bytes", "", over, SIZE_LIMIT),
        judge(f"{scheme}: relative error", "", found["relative"], ERROR_LIMIT),
        judge(f"{scheme}: peak memory in GiB", "", peak / GIB, MEMORY_LIMIT / GIB),
    ]


def main() -> int:
    """Measure all schemes, or do one process's part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="Gemma 2 in place of CLIP")
    parser.add_argument("--layers", type=int, default=LAYERS, help="how many of the large encoder's layers")
    parser.add_argument("--schemes", nargs="+", help="only these")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    layers = asked.layers if asked.large else None
    if asked.one:
        print(json.dumps(measure(asked.one, layers, asked.folder)))
        return 0
    console, before, verdicts = Console(width=160), load_now(), []
    table = Table("scheme", "weights", "package", "over ideal", "error", "weights coded", "export", "verify", box=None)
    for scheme in asked.schemes or (LARGE_SCHEMES if asked.large else SCHEMES):
        verdicts += _row(scheme, _in_fresh_process(scheme, layers), table)
    console.print(table)
    print_verdicts(verdicts, load_since(before), console)
    return exit_code(verdicts)


if __name__ == "__main__":
    sys.exit(main())

"""What each text-encoder scheme costs and saves in a runtime, on a random CLIP text encoder of 123 M parameters.

    python -m benchmarks.encoder_schemes [--runtime onnx|executorch] [--folder DIR]

For every scheme the encoder is exported and compared with PyTorch holding the same weights; then a fresh process
loads the file and runs it, and tells its own memory, so that a saving on disk that is none in memory shows.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from benchmarks.verdicts import Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler.quantities import format_bytes
from profiler.records.recipe import EncoderScheme, Runtime

LENGTH, VOCABULARY, WIDTH = 77, 49408, 768
# The encoder's own output must be as exact as its scheme promises, against PyTorch with the same weights.
ERROR_LIMIT, SIZE_LIMIT = 1e-3, 1.03


def encoder_part() -> Any:
    """Build the encoder of Stable Diffusion 1.5 with seeded random weights."""
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel

    from exporters.families.stable_diffusion_graphs import TextEncoder
    from exporters.parts import Graph, Part

    torch.manual_seed(0)
    config = CLIPTextConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=4 * WIDTH, num_hidden_layers=12,
        num_attention_heads=12, max_position_embeddings=LENGTH,
    )  # fmt: skip
    module = TextEncoder(CLIPTextModel(config)).eval().requires_grad_(False)
    ids = (torch.arange(LENGTH, dtype=torch.int32)[None] * 613) % VOCABULARY
    graph = Graph(module=module, inputs={"input_ids": ids}, outputs=("s",))
    return Part(name="text_encoder", graphs={"encode": graph}, encodes_text=True)


def export_scheme(scheme: EncoderScheme, runtime_name: Runtime, folder: Path) -> dict[str, Any]:
    """Export in this process; return sizes and the file, with the reference output beside it."""
    import numpy as np

    from exporters.progress import Stages
    from exporters.quantize.schemes import Scheme, apply
    from exporters.runtimes import runtime
    from exporters.verify import difference
    from profiler.records.recipe import recipe_of

    part = encoder_part()
    exact = part.graphs["encode"].run()[0].numpy()
    begin = time.monotonic()
    applied = apply(part.modules, Scheme(name=scheme))
    coded_s = time.monotonic() - begin
    recipe = recipe_of(64, 64, runtime=runtime_name, text_encoder=scheme)
    component = runtime(runtime_name).export_part(part, folder, recipe, Stages())
    reference = part.graphs["encode"].run()[0].numpy()
    np.save(folder / "ids.npy", part.graphs["encode"].inputs["input_ids"].numpy())
    np.save(folder / "reference.npy", reference)
    return {
        "path": component.files[0],
        "weights": applied.weights,
        "file_bytes": sum((folder / path).stat().st_size for path in component.files),
        "ideal_bytes": applied.ideal_bytes if scheme != "fp32" else 4 * applied.weights,
        "from_fp32": difference(reference, exact).relative,
        "coding_s": coded_s,
        "export_s": time.monotonic() - begin - coded_s,
    }


def run_file(folder: Path, runtime_name: Runtime, path: str) -> dict[str, Any]:
    """Load and run in this process, which did nothing else before."""
    import numpy as np

    from profiler.records.bundle import Component, Function
    from profiler.records.plan import Port
    from profiler.runner.engines.installed import engine_for, open_engine

    ids, reference = np.load(folder / "ids.npy"), np.load(folder / "reference.npy")
    function = Function(
        path=path,
        inputs=(Port(name="input_ids", dtype="int32", shape=ids.shape),),
        outputs=(Port(name="s", dtype="float32", shape=reference.shape),),
    )
    component = Component(functions={"encode": function}, files=(path,), parameters=1, precision="fp32")
    engine = open_engine(engine_for(runtime_name), threads=1)
    idle = _status()
    begin = time.monotonic()
    call = engine.load("text_encoder", component, folder)["encode"]
    load_s, loaded, times = time.monotonic() - begin, _status(), []
    for _ in range(3):
        begin = time.process_time()  # one thread: what others do at the same time does not count
        found = call({"input_ids": ids})[0]
        times.append(time.process_time() - begin)
    ran = _status()
    off = np.linalg.norm(found.astype(np.float64) - reference) / np.linalg.norm(reference)
    return {
        "load_s": load_s,
        "run_cpu_s": min(times),
        "error": float(off),
        "loaded_bytes": loaded["RssAnon"] - idle["RssAnon"],
        "ran_bytes": ran["RssAnon"] - idle["RssAnon"],
        "peak_bytes": ran["VmHWM"] - idle["VmRSS"],
    }


def _status() -> dict[str, int]:
    text = Path("/proc/self/status").read_text()
    return {key: int(value) * 1024 for key, value in re.findall(r"(RssAnon|VmHWM|VmRSS):\s+(\d+) kB", text)}


def _in_fresh_process(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.encoder_schemes", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def measure(folder: Path, runtime_name: Runtime, console: Console) -> list[Verdict]:
    """Export and run each scheme, print a table, judge."""
    columns = ("scheme", "file", "over ideal", "bits/weight", "error", "from fp32", "export", "load", "run (CPU)",
               "loaded", "ran", "peak")  # fmt: skip
    table = Table(*columns, box=None)
    verdicts = []
    for scheme in get_args(EncoderScheme):
        below = folder / scheme
        below.mkdir()
        made = _in_fresh_process("--export", scheme, "--runtime", runtime_name, "--folder", str(below))
        ran = _in_fresh_process("--run", made["path"], "--runtime", runtime_name, "--folder", str(below))
        over = made["file_bytes"] / made["ideal_bytes"]
        table.add_row(
            scheme,
            format_bytes(made["file_bytes"]),
            f"{100 * (over - 1):.2f} %",
            f"{8 * made['file_bytes'] / made['weights']:.2f}",
            f"{ran['error']:.1e}",
            f"{made['from_fp32']:.1e}",
            f"{made['coding_s']:.1f} + {made['export_s']:.1f} s",
            f"{ran['load_s']:.2f} s",
            f"{1000 * ran['run_cpu_s']:.0f} ms",
            *(format_bytes(ran[key]) for key in ("loaded_bytes", "ran_bytes", "peak_bytes")),
        )
        verdicts.append(judge(f"{scheme}: file over ideal bytes", "", over, SIZE_LIMIT))
        verdicts.append(judge(f"{scheme}: relative error", "", ran["error"], ERROR_LIMIT))
        shutil.rmtree(below)
    console.print(table)
    return verdicts


def main() -> int:
    """Measure all schemes, or do one process's part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", choices=("onnx", "executorch"), default="onnx")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--export", choices=get_args(EncoderScheme), help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.export:
        print(json.dumps(export_scheme(asked.export, asked.runtime, asked.folder)))
        return 0
    if asked.run:
        print(json.dumps(run_file(asked.folder, asked.runtime, asked.run)))
        return 0
    console, before = Console(width=160), load_now()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        verdicts = measure(Path(folder), asked.runtime, console)
    print_verdicts(verdicts, load_since(before), console)
    return exit_code(verdicts)


if __name__ == "__main__":
    sys.exit(main())

"""What every model × runtime × text-encoder scheme comes to: bytes, errors, time and memory of its export.

    python -m benchmarks.export_matrix [--only dreamlite/coreml/nf4 …] [--work DIR] [--write-docs]

Weights are drawn from seed 0, since no hub is needed for bytes, time and memory. Each export runs in a fresh process
whose whole tree is watched; its row is kept in the work folder as soon as it is there, so a run that was stopped goes
on with the next, and a case that was stopped with its next component. `--write-docs` puts the tables of all kept rows
into docs/exporters.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from profiler import catalog
from profiler.cli.sizes import by_size, verdict
from profiler.quantities import format_bytes
from profiler.records.recipe import EncoderScheme, Precision

DOCS = Path(__file__).parent.parent / "docs" / "exporters.md"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
GIB = 1 << 30


class Case(NamedTuple):
    """One export."""

    model: str
    runtime: str
    precision: Precision
    text_encoder: EncoderScheme

    @property
    def name(self) -> str:
        """Name it on a command line and in files."""
        return f"{self.model}/{self.runtime}/{self.text_encoder}"


CASES = (
    Case("nano", "onnx", "fp32", "fp32"),
    Case("nano", "onnx", "fp16", "fp16"),
    Case("bk-sdm-tiny", "onnx", "fp32", "fp32"),
    Case("bk-sdm-tiny", "executorch", "fp32", "int8"),
    Case("bk-sdm-tiny", "coreml", "fp16", "int8"),
    Case("sd-1.5", "onnx", "fp16", "int8"),
    Case("sd-1.5", "coreml", "fp16", "int8"),
    *(Case("dreamlite", "onnx", "fp16", scheme) for scheme in ("nf4", "int8", "fp16")),
    *(Case("dreamlite", "coreml", "fp16", scheme) for scheme in ("nf4", "int8")),
    *(Case("dreamlite", "executorch", "fp32", scheme) for scheme in ("nf4", "int8")),
    *(Case("sana-sprint-0.6b", "onnx", "fp16", scheme) for scheme in ("nf4", "int8")),
    *(Case("sana-sprint-0.6b", "coreml", "fp16", scheme) for scheme in ("nf4", "int8")),
    Case("sana-sprint-0.6b", "executorch", "fp32", "nf4"),
)


def main() -> int:
    """Run what was asked for and has no row yet; print all rows."""
    arguments = _arguments()
    if arguments.one:
        print(json.dumps(export_one(next(case for case in CASES if case.name == arguments.one), arguments.work)))
        return 0
    arguments.work.mkdir(parents=True, exist_ok=True)
    failed = 0
    for case in _chosen(arguments.only):
        path = _row_path(arguments.work, case)
        if not path.exists() or arguments.again:
            failed += not _run(case, arguments.work, path)
    rows = list(_rows(arguments.work))
    console = Console(width=160)
    for row in rows:
        console.print(_table(row))
    if arguments.write_docs:
        write_docs(rows)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="MODEL/RUNTIME/SCHEME")
    parser.add_argument("--again", action="store_true", help="also those that have a row")
    parser.add_argument("--work", type=Path, default=Path("export-matrix"), help="where rows are kept")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _chosen(only: list[str]) -> Iterator[Case]:
    unknown = set(only) - {case.name for case in CASES}
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(case.name for case in CASES)}")
    yield from (case for case in CASES if not only or case.name in only)


def _row_path(work: Path, case: Case) -> Path:
    return work / f"{case.name.replace('/', '_')}.json"


def _rows(work: Path) -> Iterator[dict[str, Any]]:
    for case in CASES:
        path = _row_path(work, case)
        if path.exists():
            yield json.loads(path.read_text())


def _run(case: Case, work: Path, path: Path) -> bool:
    """Export in a fresh process, watch its tree, and keep the row; tell whether there is one."""
    from exporters.children import Peak

    print(f"{case.name} …", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.export_matrix", "--one", case.name, "--work", str(work)]
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = Peak(partial(tree_bytes, process.pid))
        output, _ = process.communicate()
    peak_bytes = peak.end()
    if process.returncode:
        print(f"{case.name} failed with exit code {process.returncode}", file=sys.stderr)
        return False
    row = json.loads(output) | {"wall_s": time.monotonic() - begin, "peak_bytes": peak_bytes}
    path.write_text(json.dumps(row, indent=1) + "\n")
    return True


def tree_bytes(pid: int) -> int:
    """Return RssAnon + RssShmem of a process and all its descendants, summed."""
    from exporters.children import resident_bytes

    return sum(resident_bytes(each) for each in _tree(pid))


def _tree(pid: int) -> Iterable[int]:
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return ()


def export_one(case: Case, work: Path) -> dict[str, Any]:
    """Export in this process; return the row."""
    from exporters.quiet import quiet

    with quiet():
        from exporters.children import Making
        from exporters.pipeline import export
    from profiler.exporting import Wanted

    spec = catalog.model(case.model)
    wanted = Wanted(case.runtime, case.precision, case.text_encoder)
    folder = _row_path(work, case).with_suffix("")  # its own, so that what is done of a case waits for its next try
    shutil.rmtree(folder, ignore_errors=True)
    took: dict[str, Making] = {}

    def tell(stage: str, done: int, total: int) -> None:
        print(f"  {done}/{total} {stage}", file=sys.stderr, flush=True)

    bundle = export(spec, wanted.recipe(spec), folder, weights="random:0", progress=tell, tell_making=took.__setitem__)
    row = {**case._asdict(), **_described(bundle, folder, took)}
    shutil.rmtree(folder)
    return row


def _described(bundle: Any, folder: Path, took: dict[str, Any]) -> dict[str, Any]:
    from profiler.bundle_files import load_plan, manifest_sha256
    from profiler.session import bundle_use

    sizes = {entry.path: entry.size_bytes for entry in bundle.files}
    components = {}
    for name, component in bundle.components.items():
        difference, making = bundle.verification.components.get(name), took.get(name)
        done = component.quantization
        components[name] = {
            "parameters": component.parameters,
            "bytes": sum(sizes[path] for path in set(component.files)),
            "precision": component.precision,
            "error": None if difference is None else difference.relative,
            "bits_per_weight": None if done is None else done.bits_per_weight,
            "of_ideal": None if done is None else done.file_bytes / done.ideal_bytes,
            "wall_s": None if making is None else making.wall_s,
            "peak_bytes": None if making is None else making.peak_bytes,
            "notes": list(component.notes),
        }
    tasks = {
        task: bundle_use(bundle, manifest_sha256(folder), load_plan(folder, bundle, task)).size_bytes
        for task in sorted(bundle.tasks)
    }
    return {"engine": bundle.verification.engine, "components": components, "tasks": tasks}


def _table(row: dict[str, Any]) -> Table:
    title = f"{row['model']} · {row['runtime']} · {row['precision']} · text encoder {row['text_encoder']}"
    table = Table(title=title, title_justify="left", caption_justify="left", box=None)
    for name in ("component", "parameters", "MB", "relative error", "s", "peak GiB", "placement"):
        table.add_column(name, justify="left" if name in ("component", "placement") else "right")
    for name, found in row["components"].items():
        table.add_row(name, *_cells(found))
    sizes, wall, peak = _totals(row)
    table.caption = f"whole export: {sizes}; {wall} s, peak {peak} GiB"
    return table


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{found['parameters']:,}",
        f"{found['bytes'] / 1e6:,.1f}",
        "not run" if found["error"] is None else f"{found['error']:.1e}",
        "–" if found["wall_s"] is None else f"{found['wall_s']:.0f}",
        "–" if found["peak_bytes"] is None else f"{found['peak_bytes'] / GIB:.2f}",
        _placement(found["notes"]),
    )


def _placement(notes: list[str]) -> str:
    """Return what an export knows of where a component runs: ONNX Runtime here has the CPU alone, and Core ML decides
    on the device, but not for the Neural Engine where a package is too large or its weights have four bits."""
    delegated = (note.partition(": ")[2] for note in notes if "subgraphs" in note)
    limited = (note.partition(": ")[0] for note in notes if "the CPU and GPU only" in note or "packages" in note)
    return "; ".join([*delegated, *limited]) or "–"


def _totals(row: dict[str, Any]) -> tuple[str, ...]:
    policy = by_size(catalog.policy("moi-bench"))
    sizes = "; ".join(f"{task} {format_bytes(size)} ({verdict(policy, size)})" for task, size in row["tasks"].items())
    return sizes, "–" if row["wall_s"] is None else f"{row['wall_s']:.0f}", f"{row['peak_bytes'] / GIB:.2f}"


def write_docs(rows: list[dict[str, Any]]) -> None:
    """Replace the tables between the marks in docs/exporters.md."""
    text = DOCS.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCS.write_text(f"{before}{BEGIN}\n\n{markdown(rows)}\n{END}{after}", encoding="utf-8")


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return one table of exports and one of their components."""
    head = (
        "| model | runtime | networks | text encoder | size by task | export s | peak GiB |\n"
        "|---|---|---|---|---|--:|--:|\n"
    )
    exports = "".join(
        f"| {' | '.join((row['model'], row['runtime'], row['precision'], row['text_encoder'], *_totals(row)))} |\n"
        for row in rows
    )
    parts_head = (
        "| export | component | parameters | MB | relative error | s | peak GiB | placement |\n"
        "|---|---|--:|--:|--:|--:|--:|---|\n"
    )
    parts = "".join(
        f"| {row['model']} {row['runtime']} {row['text_encoder']} | {name} | {' | '.join(_cells(found))} |\n"
        for row in rows
        for name, found in row["components"].items()
        if found["parameters"]
    )
    return f"{head}{exports}\n{parts_head}{parts}"


if __name__ == "__main__":
    sys.exit(main())

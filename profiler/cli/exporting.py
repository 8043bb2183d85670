"""`profile export`: make a bundle, or find it in the cache."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from profiler.bundle_files import load_manifest, manifest_sha256
from profiler.cli.licences import tell_licence
from profiler.cli.output import notes, print_json, print_result
from profiler.cli.places import usable
from profiler.cli.progress import ExportProgress
from profiler.cli.sizes import sizes
from profiler.errors import InputError
from profiler.exporting import Exported, Graph, Wanted
from profiler.exporting import export as export_bundle
from profiler.exporting import wrap as wrap_graph
from profiler.quantities import format_bytes
from profiler.records.bundle import Bundle, Difference, Verification
from profiler.records.spec import DefaultRecipe
from profiler.report.terminal import plain

_NAMES_SHOWN = 3


def wrap(file: Path, graph: Graph, out: Path | None, *, as_json: bool) -> int:
    """Wrap a foreign graph and print what came of it."""
    if out is None:
        raise InputError("a foreign graph is wrapped into a folder of its own", hint="Name it: --out DIR")
    path, folder = usable(file, "a graph", "Name another file."), usable(out, "a bundle", "Give it another name.")
    if graph.inputs is not None:
        graph = graph._replace(inputs=usable(graph.inputs, "inputs", "Name another file."))
    with ExportProgress(notes()) as progress:
        wrap_graph(path, graph, folder, progress.report)
    return _tell(Exported(folder, made=True, usual=None), as_json=as_json)


def export(model: str, out: Path | None, wanted: Wanted, *, as_json: bool) -> int:
    """Export and print what came out and how exact it is."""
    folder = usable(out, "a bundle", "Name another: --out DIR") if out is not None else None
    with ExportProgress(notes()) as progress:
        done = export_bundle(model, folder, wanted, progress.report, tell_licence)
    return _tell(done, as_json=as_json)


def _tell(done: Exported, *, as_json: bool) -> int:
    folder, bundle = done.folder, load_manifest(done.folder)
    if as_json:
        print_json({"folder": str(folder), "made": done.made, "sha256": manifest_sha256(folder), "bundle": bundle})
    else:
        print_result(_table(bundle))
        for line in (*_quantized(bundle), *sizes(folder, bundle, done.usual)):
            print_result(plain(line))
        word = "exported to" if done.made else "already exported, in"
        print(f"{word} {folder}")
        for line in _to_know(bundle, done.usual):
            print(line)
        if bundle.verification.not_run is None:
            print(f"measure it: profile --bundle {shlex.quote(str(folder))}")
    return 0


def _to_know(bundle: Bundle, usual: DefaultRecipe | None) -> Iterator[str]:
    """Say what the recipe is, what the errors leave open, and where a component cannot run."""
    if usual is not None:
        kind = "experimental default" if usual.experimental else "default"
        yield f"recipe: {bundle.model}'s {kind} for {bundle.recipe.runtime}. {usual.note}"
    if bundle.source.weights_sha256.startswith("random:"):
        yield f"weights: {bundle.source.weights_sha256}; latency, memory and size mean something, images do not"
    if bundle.verification.images_not_run is not None:
        yield f"whole images were not compared: {bundle.verification.images_not_run}"
    yield from _compared(bundle.verification)
    for name, component in bundle.components.items():
        yield from (f"{name}: {note}" for note in component.notes)


def _compared(verification: Verification) -> Iterator[str]:
    """Say what the errors are not, or why there are none."""
    if verification.engine is None and verification.not_run is not None:
        yield f"not verified: {verification.not_run}"
    elif not verification.components:
        yield f"compared with {verification.reference}"
        yield from (verification.not_run,) if verification.not_run is not None else ()
    elif verification.not_run is not None:
        yield f"errors are those of {verification.engine}: {verification.not_run}"


def _table(bundle: Bundle) -> Table:
    sizes = {entry.path: entry.size_bytes for entry in bundle.files}
    table = Table(box=None, pad_edge=False)
    for name in ("component", "parameters", "size", "max abs error", "relative error"):
        table.add_column(name, justify="left" if name == "component" else "right")
    for name, component in bundle.components.items():
        size = format_bytes(sum(sizes[path] for path in set(component.files)))
        table.add_row(
            plain(name), f"{component.parameters:,}", size, *_errors(bundle.verification.components.get(name))
        )
    for task, image in bundle.verification.images.items():
        levels = "uint8: identical"
        if image.uint8_max_levels:
            share = f"{100 * image.uint8_changed_share:.2f} % of values"
            levels = f"uint8: at most {image.uint8_max_levels} of 255 levels, on {share}"
        table.add_row(f"image, {task}", "", levels, *_errors(image.float_image))
    return table


def _errors(difference: Difference | None) -> tuple[str, str]:
    if difference is None:
        return "not verified", ""
    return f"{difference.max_absolute:.2g}", f"{difference.relative:.2g}"


def _quantized(bundle: Bundle) -> Iterator[str]:
    """Say what was done to the weights of each quantized component, and what that changed."""
    for name, component in bundle.components.items():
        done = component.quantization
        if done is None:
            continue
        yield (
            f"{name} as {done.scheme}: {done.bits_per_weight:.2f} bits per weight, {100 * done.coverage:.1f} % of "
            f"weights covered{_distances(bundle.verification.components.get(name), done.from_fp32)}"
        )
        for what, names in (("kept", done.kept), ("int8 instead of nf4", done.fallen_back), ("tied", tuple(done.tied))):
            if names:
                yield f"  {what}: {_some(names)}"


def _distances(same: Difference | None, moved: Difference | None) -> str:
    """Tell how far the output is from PyTorch's, and how far coding moved it, as far as either was measured."""
    told = [] if same is None else [f"{same.relative:.2g} from PyTorch with the same weights"]
    told += [] if moved is None else [f"{moved.relative:.2g} from fp32"]
    return f"; output {', '.join(told)} (relative)" if told else ""


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"

"""`profile export`: make a bundle, or find it in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from profiler.bundle_files import load_manifest, manifest_sha256
from profiler.cli.output import notes, print_json, print_result
from profiler.cli.progress import ExportProgress
from profiler.exporting import export as export_bundle
from profiler.quantities import format_bytes
from profiler.records.bundle import Bundle
from profiler.records.recipe import LoadPolicy, Runtime
from profiler.report.terminal import plain


def export(
    model: str, out: Path | None, load_policy: LoadPolicy, *, runtime: Runtime | None = None, as_json: bool
) -> int:
    """Export and print what came out and how exact it is."""
    place = out.expanduser() if out else None
    with ExportProgress(notes()) as progress:
        folder, made = export_bundle(model, place, load_policy, progress.report, runtime=runtime)
    bundle = load_manifest(folder)
    if as_json:
        print_json({"folder": str(folder), "made": made, "sha256": manifest_sha256(folder), "bundle": bundle})
    else:
        print_result(_table(bundle))
        word = "exported to" if made else "already exported, in"
        print(f"{word} {folder}")
        for line in _to_know(bundle):
            print(line)
        if bundle.verification.not_run is None:
            print(f"measure it: profile --model {folder}")
    return 0


def _to_know(bundle: Bundle) -> Iterator[str]:
    """Say what the errors leave open, and where a component cannot run."""
    if bundle.verification.not_run is not None:
        yield f"errors are those of {bundle.verification.engine}: {bundle.verification.not_run}"
    for name, component in bundle.components.items():
        yield from (f"{name}: {note}" for note in component.notes)


def _table(bundle: Bundle) -> Table:
    sizes = {entry.path: entry.size_bytes for entry in bundle.files}
    table = Table(box=None, pad_edge=False)
    for name in ("component", "parameters", "size", "max abs error", "relative error"):
        table.add_column(name, justify="left" if name == "component" else "right")
    for name, component in bundle.components.items():
        difference = bundle.verification.components[name]
        size = format_bytes(sum(sizes[path] for path in set(component.files)))
        table.add_row(
            plain(name),
            f"{component.parameters:,}",
            size,
            f"{difference.max_absolute:.2g}",
            f"{difference.relative:.2g}",
        )
    for task, image in bundle.verification.images.items():
        levels = f"uint8: {image.uint8_max_levels} level on {100 * image.uint8_changed_share:.2f} % of values"
        difference = image.float_image
        table.add_row(f"image, {task}", "", levels, f"{difference.max_absolute:.2g}", f"{difference.relative:.2g}")
    return table

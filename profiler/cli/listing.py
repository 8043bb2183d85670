"""`profile models`: what is known by name."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from profiler import catalog, plugins
from profiler.bundle_files import load_manifest
from profiler.cli.output import print_json, print_result
from profiler.exporting import ready_bundle
from profiler.quantities import format_count
from profiler.records.spec import ModelSpec
from profiler.report.terminal import plain

_WIDE = 160  # a model is one line in a log or a pipe


def models(*, as_json: bool) -> int:
    """Print every registry entry, and whether its bundle is at hand."""
    specs = catalog.models()
    if as_json:
        for spec in specs.values():
            print_json(spec)
        return 0
    table = table_of("model", "tasks", "image", "parameters", "licence, commercial use", "bundle", "weights")
    for name, spec in specs.items():
        table.add_row(name, *(escape(cell) for cell in _cells(spec)))
    print_result(table, plain_width=_WIDE)
    for line in _added():
        print_result(plain(line))
    return 0


def _added() -> Iterator[str]:
    """Say what plug-ins bring, without importing them."""
    for group, word in plugins.WORDS.items():
        for name, package in plugins.plugins(group).items():
            yield f"{word} {name}, of the package {package}"


def _cells(spec: ModelSpec) -> tuple[str, ...]:
    ready = "ready" if ready_bundle(spec.name) else "export it"
    weights = "in the package" if spec.embedded else spec.repo
    licence = f"{spec.licence.name}, {spec.licence.commercial_use}"
    size = f"{spec.width}×{spec.height}"
    return ", ".join(spec.tasks), size, format_count(spec.parameters or _counted(spec)), licence, ready, weights


def _counted(spec: ModelSpec) -> int | None:
    """Count the parameters of a bundle that ships with the product."""
    folder = catalog.shipped_bundle(spec)
    return sum(part.parameters for part in load_manifest(folder).components.values()) if folder else None


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in ("model", "device", "image", "bundle"), overflow="fold")
    return table

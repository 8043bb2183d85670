"""`profile report`: runs as files, each whole or not there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

from profiler import __version__
from profiler.cli.output import notes, print_json
from profiler.cli.places import open_policy, open_store
from profiler.cli.writing import check_folder_of_figures, check_places, make_folder, write_whole
from profiler.errors import InputError
from profiler.records.policy import Policy
from profiler.records.record import Record
from profiler.report.entry import Entry, blaming
from profiler.report.summary import summarise
from profiler.report.terminal import plain
from profiler.store import RUN_FILE, Store

_WORTH_A_BAR = 3
Make = Callable[[Sequence[Entry]], bytes]


class Written(Record):
    """A file that a report made; `runs` are in it."""

    path: str
    format: str
    size_bytes: int
    runs: tuple[str, ...]


class Wanted(NamedTuple):
    """What `profile report` was asked to write."""

    files: Sequence[Path]
    figures: Path | None
    force: bool


def report(
    runs: Sequence[str],
    path: Path | None,
    policy_name: str,
    not_required: Iterable[str],
    wanted: Wanted,
    *,
    as_json: bool,
) -> int:
    """Write runs in every format asked for, and say which files were written."""
    makers = {file: _maker(file) for file in wanted.files}
    store, policy = open_store(path), open_policy(policy_name, not_required)
    ids = list(dict.fromkeys(store.find(run) for run in runs or ["last"]))
    if not makers and wanted.figures is None:
        makers = {(file := Path(f"{_default_name(ids)}.html")): _maker(file)}
    check_places(makers, force=wanted.force)
    entries = [_entry(store, run_id, policy) for run_id in ids]
    figures = _figures(entries, wanted)
    # All is written before a word is said: a reader of stdout that goes away ends only the telling.
    written = [(file, kind, write_whole(file, make(entries))) for file, (kind, make) in makers.items()]
    if wanted.figures is not None:
        make_folder(wanted.figures)
    written += [(file, "png", write_whole(file, draw())) for file, draw in figures.items()]
    for file, kind, size_bytes in written:
        _tell(Written(path=_shown(file), format=kind, size_bytes=size_bytes, runs=tuple(ids)), as_json)
    return 0


def _default_name(ids: Sequence[str]) -> str:
    """Name a page after its run, or after the first of several and their number."""
    others = f"-and-{len(ids) - 1}-more" if len(ids) > 1 else ""
    return f"report-{ids[0]}{others}"


def _maker(file: Path) -> tuple[str, Make]:
    """Return the format that a file's name ends in. Raises InputError."""
    name = file.name.lower()
    for suffix, make in _FORMATS.items():
        if name.endswith(suffix) and name != suffix:
            return suffix.removeprefix("."), make
    raise InputError(
        f"{str(file)!r} names no format that a report can be written in",
        hint=f"End the name in one of: {', '.join(_FORMATS)}.",
    )


def _entry(store: Store, run_id: str, policy: Policy) -> Entry:
    run = store.load(run_id)
    folder = store.folder(run_id)
    try:
        traces = store.load_traces(run)
    except InputError as error:  # the record holds the numbers; a broken journal costs the traces beside them
        notes().print(plain(f"without traces: {error}", style="yellow"))
        traces = ()
    with blaming(folder / RUN_FILE):
        return Entry(run, summarise(run, folder, policy), traces, folder)


def _figures(entries: Sequence[Entry], wanted: Wanted) -> dict[Path, Callable[[], bytes]]:
    """Return how each figure is drawn, by the file it goes to. Raises InputError."""
    if wanted.figures is None:
        return {}
    from profiler.report.entry import labels
    from profiler.report.figures import canvas, drawings

    check_folder_of_figures(wanted.figures)
    compared = drawings.side_by_side(entries, labels(entries))
    named = [(f"{entry.run.run_id}-{drawing.name}", drawing) for entry in entries for drawing in drawings.of_run(entry)]
    named = [*([(compared.name, compared)] if compared else []), *named]
    files = {wanted.figures / f"{name}.png": partial(canvas.png, drawing) for name, drawing in named}
    check_places(files if wanted.figures.is_dir() else (), force=wanted.force)
    return dict(files)


def _shown(file: Path) -> str:
    """Return a path as text that any encoding can write; a name that is no text loses what is none."""
    return str(file).encode("utf-8", "replace").decode()


def _tell(written: Written, as_json: bool) -> None:
    print_json(written) if as_json else print(written.path)


def _html(entries: Sequence[Entry]) -> bytes:
    from profiler.report.html import page

    with _progress(len(entries)) as done:
        return page(entries, __version__, done).encode()


@contextlib.contextmanager
def _progress(number: int) -> Iterator[Callable[[], None]]:
    """Count runs drawn on a terminal; a third of a second each is soon more than one waits for in the dark."""
    with Progress(console=notes(), transient=True, disable=number < _WORTH_A_BAR) as bar:
        task = bar.add_task("drawing", total=number)
        yield lambda: bar.advance(task)


def _runs_csv(entries: Sequence[Entry]) -> bytes:
    from profiler.report.csv_file import runs_csv

    return _encoded(runs_csv(entries))


def _samples_csv(entries: Sequence[Entry]) -> bytes:
    from profiler.report.csv_file import samples_csv

    return _encoded(samples_csv(entries))


def _runs_parquet(entries: Sequence[Entry]) -> bytes:
    from profiler.report.parquet import runs_parquet

    return runs_parquet(entries)


def _samples_parquet(entries: Sequence[Entry]) -> bytes:
    from profiler.report.parquet import samples_parquet

    return samples_parquet(entries)


def _markdown(entries: Sequence[Entry]) -> bytes:
    from profiler.report.markdown import markdown

    return _encoded(markdown(entries))


def _perfetto(entries: Sequence[Entry]) -> bytes:
    from profiler.report.perfetto import perfetto

    return perfetto(entries)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# The longer suffix first: run.samples.csv ends in both.
_FORMATS: dict[str, Make] = {
    ".html": _html,
    ".samples.csv": _samples_csv,
    ".csv": _runs_csv,
    ".samples.parquet": _samples_parquet,
    ".parquet": _runs_parquet,
    ".md": _markdown,
    ".json": _perfetto,
}

"""`profile runs` and `profile show`: what the store holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table

from profiler import catalog
from profiler.cli.output import notes, print_json, print_result, print_summary, results
from profiler.cli.places import open_policy, open_store, tidy
from profiler.clock import RealClock
from profiler.errors import InputError, InvalidRecord, MissingSource, UnknownName
from profiler.quantities import format_bytes, format_ns
from profiler.records.policy import Policy
from profiler.records.summary import Summary
from profiler.report.entry import blaming
from profiler.report.listing import Filter, Line, line, ordered
from profiler.report.summary import protocol_text, summarise
from profiler.report.terminal import plain, precision
from profiler.store import RUN_FILE, Store

_WIDE = 200  # one line a run, for grep and the like
_JUSTIFY: dict[str, JustifyMethod] = dict.fromkeys(("n", "median", "peak memory", "size", "doubts"), "right")
_BETWEEN = 2  # spaces that rich leaves between two columns
# In a narrow terminal these columns go, one after another, until the rest fits.
_DISPENSABLE = ("steps", "recipe", "size", "device", "protocol", "doubts", "n", "peak memory", "task", "outcome")


class Wanted(NamedTuple):
    """Which runs to list, in which order, and how many of them at most."""

    filter: Filter
    order: str
    reverse: bool
    limit: int | None


def runs(path: Path | None, policy_name: str, not_required: Iterable[str], wanted: Wanted, *, as_json: bool) -> int:
    """Print a line a run; a record that cannot be read is named and left out."""
    store, policy = open_store(path), open_policy(policy_name, not_required)
    _tidy(store)
    found = [each for run_id in store.run_ids() if (each := _line(store, run_id, policy)) is not None]
    _check_names(found, wanted.filter)
    taken = [each for each in found if wanted.filter.takes(each)]
    shown = _limited(ordered(taken, wanted.order, reverse=wanted.reverse), wanted)
    if as_json:
        for summary in _summaries(store, shown, policy):
            print_json(summary)
    elif shown:
        print_result(runs_table(shown, results(plain_width=_WIDE).width), plain_width=_WIDE)
    _tell_left_out(store, len(found), len(taken), len(shown))
    return 0


def _limited(lines: list[Line], wanted: Wanted) -> list[Line]:
    """Keep the newest of a list by time, which ends with them, and the first of any other."""
    if wanted.limit is None:
        return lines
    return lines[-wanted.limit :] if wanted.order == "time" and not wanted.reverse else lines[: wanted.limit]


def _check_names(found: Sequence[Line], wanted: Filter) -> None:
    """Refuse names that neither the store nor the product knows: a list that is empty by a typing error misleads."""
    devices = {each.run.unit.profile for each in found} | set(catalog.device_profiles())
    models = {each.run.model for each in found} | set(catalog.models())
    for kind, names, known in (("device", wanted.devices, devices), ("model", wanted.models, models)):
        for name in names:
            if name not in known:
                raise UnknownName(kind, name, known)


def _tell_left_out(store: Store, found: int, taken: int, shown: int) -> None:
    if not found:
        notes().print(plain(f"no runs in {store.root} yet; make one: profile --device local --model nano"))
    if found > taken:
        notes().print(plain(f"{found - taken} of {found} runs left out by the filters", style="dim"))
    if taken > shown:
        notes().print(plain(f"{taken - shown} more not listed: --limit {shown}", style="dim"))


def show(run: str, path: Path | None, policy_name: str, not_required: Iterable[str], *, as_json: bool) -> int:
    """Print one run."""
    store, policy = open_store(path), open_policy(policy_name, not_required)
    run_id = store.find(run)
    record, folder = store.load(run_id), store.folder(run_id)
    with blaming(folder / RUN_FILE):
        summary = summarise(record, folder, policy)
    print_json(summary) if as_json else print_summary(summary)
    return 0


def _tidy(store: Store) -> None:
    """Collect what was left open; where that cannot be, say so and go on: what is there can still be read."""
    try:
        for line in tidy(store, RealClock()):
            notes().print(plain(line, style="dim"))
    except InputError as error:
        notes().print(plain(str(error), style="yellow"))


def _line(store: Store, run_id: str, policy: Policy) -> Line | None:
    try:
        run = store.load(run_id)
        with blaming(store.folder(run_id) / RUN_FILE):
            found = line(run, policy)
            _cells(found)  # what cannot be shown is found out while it can still be left out
            return found
    except (InvalidRecord, MissingSource) as error:
        _leave_out(error)
        return None


def _summaries(store: Store, lines: Sequence[Line], policy: Policy) -> Iterator[Summary]:
    for each in lines:
        folder = store.folder(each.run.run_id)
        try:
            with blaming(folder / RUN_FILE):
                summary = summarise(each.run, folder, policy)
        except InvalidRecord as error:
            _leave_out(error)
            continue
        yield summary


def _leave_out(error: InputError) -> None:
    notes().print(plain(f"left out: {error}", style="yellow"))


def runs_table(lines: Sequence[Line], room: int) -> Table:
    """Draw the list; where there is no room for a line a run, what says least about it goes first."""
    names = _fitting([_cells(each) for each in lines], room)
    table = Table(box=None, pad_edge=False)
    for name in names:
        # An id that is cut cannot be typed again; anything else may fold.
        table.add_column(name, justify=_JUSTIFY.get(name, "left"), no_wrap=name == "run", overflow="fold")
    for each in lines:
        cells = _cells(each)
        table.add_row(*(plain(cells[name]) for name in names))
    return table


def _fitting(rows: Sequence[dict[str, str]], room: int) -> list[str]:
    names = list(rows[0])
    widths = {name: max(cell_len(name), *(cell_len(row[name]) for row in rows)) for name in names}
    for name in _DISPENSABLE:
        if sum(widths[name] + _BETWEEN for name in names) <= room:
            break
        names.remove(name)
    return names


def _cells(found: Line) -> dict[str, str]:
    run = found.run
    return {
        "run": run.run_id,
        "device": f"{run.unit.profile} (virtual)" if run.unit.virtual or run.virtual else run.unit.profile,
        "model": run.model,
        "task": run.task,
        "steps": str(run.settings.steps),
        "protocol": protocol_text(run),
        "recipe": f"{run.recipe.runtime} {precision(run.recipe)}",
        "outcome": run.outcome,
        "n": str(found.n),
        "median": format_ns(found.latency_ns),
        "peak memory": format_bytes(found.peak_memory_bytes),
        "size": format_bytes(run.bundle.size_bytes),
        "tier": found.tier,
        "doubts": str(len(run.doubts)),
    }

"""`profile runs` and `profile show`: what the store holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import JustifyMethod
from rich.table import Table

from profiler import catalog
from profiler.cli.output import notes, print_json, print_result, print_summary
from profiler.cli.places import open_policy, open_store, tidy
from profiler.clock import RealClock
from profiler.errors import InputError, UnknownName
from profiler.quantities import format_bytes, format_ns
from profiler.records.run import Run
from profiler.report.listing import Filter, Line, line, ordered
from profiler.report.summary import protocol_text, summarise
from profiler.report.terminal import plain
from profiler.store import Store

_WIDE = 160  # one line a run, for grep and the like
_JUSTIFY: dict[str, JustifyMethod] = dict.fromkeys(("n", "median", "peak memory", "size"), "right")


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
    found = [line(run, policy) for run_id in store.run_ids() if (run := _read(store, run_id)) is not None]
    _check_names(found, wanted.filter)
    taken = [each for each in found if wanted.filter.takes(each)]
    shown = ordered(taken, wanted.order, reverse=wanted.reverse)[: wanted.limit]
    if as_json:
        for each in shown:
            print_json(summarise(each.run, store.folder(each.run.run_id), policy))
    elif shown:
        print_result(_table(shown), plain_width=_WIDE)
    _tell_left_out(store, len(found), len(taken), len(shown))
    return 0


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
    summary = summarise(store.load(run_id), store.folder(run_id), policy)
    print_json(summary) if as_json else print_summary(summary)
    return 0


def _tidy(store: Store) -> None:
    """Collect what was left open; where that cannot be, say so and go on: what is there can still be read."""
    try:
        for line in tidy(store, RealClock()):
            notes().print(plain(line, style="dim"))
    except InputError as error:
        notes().print(plain(str(error), style="yellow"))


def _read(store: Store, run_id: str) -> Run | None:
    try:
        return store.load(run_id)
    except InputError as error:
        notes().print(plain(f"left out: {error}", style="yellow"))
        return None


def _table(lines: Iterable[Line]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in (
        "run",
        "device",
        "model",
        "task",
        "steps",
        "protocol",
        "outcome",
        "n",
        "median",
        "peak memory",
        "size",
        "tier",
    ):
        # An id that is cut cannot be typed again; anything else may fold.
        table.add_column(name, justify=_JUSTIFY.get(name, "left"), no_wrap=name == "run", overflow="fold")
    for each in lines:
        table.add_row(*(plain(cell) for cell in _cells(each)))
    return table


def _cells(found: Line) -> tuple[str, ...]:
    run = found.run
    return (
        run.run_id,
        run.unit.profile,
        run.model,
        run.task,
        str(run.settings.steps),
        protocol_text(run),
        run.outcome,
        str(found.n),
        format_ns(found.latency_ns),
        format_bytes(found.peak_memory_bytes),
        format_bytes(run.bundle.size_bytes),
        found.tier,
    )

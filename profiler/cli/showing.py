"""`profile runs` and `profile show`: what the store holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table

from profiler.cli.output import notes, print_json, print_result, print_summary
from profiler.cli.places import open_policy, open_store, tidy
from profiler.clock import RealClock
from profiler.errors import InputError
from profiler.quantities import format_bytes, format_ns
from profiler.records.policy import Policy
from profiler.records.summary import Summary
from profiler.report.summary import summarise
from profiler.report.terminal import plain
from profiler.store import Store

_WIDE = 160  # one line a run, for grep and the like
_JUSTIFY: dict[str, JustifyMethod] = dict.fromkeys(("n", "median", "peak memory", "size"), "right")


def runs(path: Path | None, policy_name: str, not_required: Iterable[str], *, as_json: bool) -> int:
    """Print a line a run; a record that cannot be read is named and left out."""
    store, policy = open_store(path), open_policy(policy_name, not_required)
    _tidy(store)
    summaries = [summary for run_id in store.run_ids() if (summary := _read(store, run_id, policy)) is not None]
    if as_json:
        for summary in summaries:
            print_json(summary)
    elif summaries:
        print_result(_table(summaries), plain_width=_WIDE)
    else:
        notes().print(plain(f"no runs in {store.root} yet; make one: profile --device local --model nano"))
    return 0


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


def _read(store: Store, run_id: str, policy: Policy) -> Summary | None:
    try:
        return summarise(store.load(run_id), store.folder(run_id), policy)
    except InputError as error:
        notes().print(plain(f"left out: {error}", style="yellow"))
        return None


def _table(summaries: Iterable[Summary]) -> Table:
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
    for summary in summaries:
        table.add_row(*(plain(cell) for cell in _cells(summary)))
    return table


def _cells(summary: Summary) -> tuple[str, ...]:
    latency = summary.latency_ns
    return (
        summary.run_id,
        summary.device.profile,
        summary.model,
        summary.task,
        str(summary.steps),
        summary.protocol,
        summary.outcome,
        str(latency.n if latency else 0),
        format_ns(latency.median if latency else None),
        format_bytes(summary.peak_memory_bytes),
        format_bytes(summary.bundle.size_bytes),
        summary.tier.tier,
    )

"""`profile collect`: bring home what phones still hold."""

from __future__ import annotations

from pathlib import Path

from profiler.cli.output import notes, print_result
from profiler.cli.places import collect, open_store, told
from profiler.clock import Clock, RealClock
from profiler.leftovers import Waiting
from profiler.report.terminal import plain
from profiler.store import Store

_LOOK_S = 5.0


def collect_all(path: Path | None, *, stop: bool) -> int:
    """Collect every session that was left open, waiting for those still at work; exit 3 where a device is away."""
    store, clock = open_store(path), RealClock()
    waiting = _look(store, clock, stop=stop)
    while any(each.at_work for each in waiting):
        notes().print(
            plain("waiting for a phone that is still at work; Ctrl-C leaves it to a later command", style="dim")
        )
        clock.sleep(_LOOK_S)
        waiting = _look(store, clock, stop=stop)
    if held := store.held_sessions():
        print_result(plain(f"{held} open in {store.root}, of a profile command that still runs: it collects by itself"))
    elif not waiting:
        print_result(plain(f"nothing is left open in {store.root}"))
    return 3 if waiting else 0


def _look(store: Store, clock: Clock, *, stop: bool) -> list[Waiting]:
    waiting = []
    for found in collect(store, clock, at_work="stop" if stop else "wait"):
        print_result(plain(told(found)))
        waiting += [found] if isinstance(found, Waiting) else []
    return waiting

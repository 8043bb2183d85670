"""What `profile doctor` finds: a thing that is there, missing, not to be had here, or in the way."""

from __future__ import annotations

from typing import Literal

from rich.markup import escape
from rich.table import Table

from profiler.records.record import Record


class Finding(Record):
    """One thing looked at; `needed` says whether the main job depends on it.

    `unavailable` is what this machine may simply not have, such as a battery; `disturbing` would spoil a measurement
    made now.
    """

    what: str
    state: Literal["there", "missing", "unavailable", "disturbing"]
    detail: str
    remedy: str | None
    needed: bool


def there(what: str, detail: str, *, needed: bool = False) -> Finding:
    """Return that something is as it should be."""
    return Finding(what=what, state="there", detail=detail, remedy=None, needed=needed)


def missing(what: str, detail: str, remedy: str, *, needed: bool = False) -> Finding:
    """Return that something is not there, and how to get it."""
    return Finding(what=what, state="missing", detail=detail, remedy=remedy, needed=needed)


def unavailable(what: str, detail: str, remedy: str) -> Finding:
    """Return that something is not to be had here, and why."""
    return Finding(what=what, state="unavailable", detail=detail, remedy=remedy, needed=False)


def disturbing(what: str, detail: str, remedy: str) -> Finding:
    """Return that something would spoil a measurement now, and what to do."""
    return Finding(what=what, state="disturbing", detail=detail, remedy=remedy, needed=False)


def either(found: bool, what: str, detail: str, lack: str, remedy: str) -> Finding:
    """Return that something is there, or missing with the way to get it."""
    return there(what, detail) if found else missing(what, lack, remedy)


def findings_table(findings: list[Finding]) -> Table:
    """Draw a line for each."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "what", "found", "to know"):
        table.add_column(column)
    for finding in findings:
        mark = {
            "there": "[green]ok[/green]",
            "missing": "[red]missing[/red]" if finding.needed else "[yellow]missing[/yellow]",
            "unavailable": "[dim]none[/dim]",
            "disturbing": "[yellow]not now[/yellow]",
        }
        table.add_row(mark[finding.state], finding.what, escape(finding.detail), escape(finding.remedy or ""))
    return table

"""Runs as Markdown: the answer, the numbers, the doubts and the samples, for an issue or a paper's appendix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from profiler.report import facts
from profiler.report.comparing import comparison, lead
from profiler.report.entry import Entry, labels
from profiler.report.terminal import failure, policy_line, rows, tier_line
from profiler.report.words import foreign

_MOST_SAMPLES = 400
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def markdown(entries: Sequence[Entry]) -> str:
    """Return one document for all runs."""
    return "\n".join(_lines(entries)).rstrip() + "\n"


def _lines(entries: Sequence[Entry]) -> Iterator[str]:
    names = labels(entries)
    if len(entries) > 1:
        yield f"# {len(entries)} runs side by side"
        yield ""
        yield f"**{_escaped(lead(entries, names))}**"
        yield ""
        yield from _comparison(entries, names)
    level = "#" if len(entries) == 1 else "##"
    for entry, name in zip(entries, names, strict=True):
        yield from _run(entry, name, level)


def _comparison(entries: Sequence[Entry], names: Sequence[str]) -> Iterator[str]:
    lines = [line for part in comparison(entries) for line in part]
    head = ("", *names)
    yield from _table(head, ((f"{line.name}{' (differs)' if line.differs else ''}", *line.cells) for line in lines))


def _run(entry: Entry, name: str, level: str) -> Iterator[str]:
    run, summary = entry.run, entry.summary
    yield f"{level} {_escaped(name)}"
    yield ""
    yield f"**{_escaped(tier_line(summary))}**"
    yield ""
    yield _escaped(policy_line(summary))
    yield ""
    ended_early = failure(summary)
    if ended_early:
        yield f"**Ended early:** {_escaped(ended_early)}"
        yield ""
    for doubt in summary.doubts:
        yield f"- Doubt, {_escaped(doubt.kind)}: {_escaped(doubt.detail)} {_escaped(doubt.advice)}"
    yield from [""] if summary.doubts else []
    yield from _section("The numbers", level, _table(("", ""), ((key.strip(), value) for key, value in rows(summary))))
    yield from _section("Conditions", level, _table(("", ""), [*facts.conditions(run), *facts.settings(run)]))
    yield from _section("Processes", level, _table(*facts.processes(run)))
    yield from _section("Samples", level, _samples(entry))


def _section(title: str, level: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{level}# {title}"
    yield ""
    yield from lines


def _samples(entry: Entry) -> Iterator[str]:
    grid = facts.samples(entry.run)
    if not grid.rows:
        yield from ("No image was finished.", "")
        return
    yield from _table(grid.head, grid.rows[:_MOST_SAMPLES])
    if len(grid.rows) > _MOST_SAMPLES:
        left_out = len(grid.rows) - _MOST_SAMPLES
        yield f"{left_out} more are left out: `profile report {entry.run.run_id} -o run.samples.csv`."
        yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head), escape=False)
    for cells in rows:
        yield _row(cells)
    yield ""


def _row(cells: Sequence[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(_escaped(cell) if escape else cell for cell in cells)} |"


def _escaped(text: str) -> str:
    """Return words so that no sign of them is taken for Markdown or HTML."""
    return _SIGNS.sub(r"\\\1", " ".join(foreign(text).split()))

"""One page that holds everything: no script, no network, light and dark, narrow and wide."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from profiler.records.run import Run
from profiler.report import facts, palette
from profiler.report.comparing import comparison, lead
from profiler.report.csv_file import page_samples_csv
from profiler.report.entry import Entry, labels
from profiler.report.figures import canvas, drawings
from profiler.report.figures.canvas import Drawing
from profiler.report.pictures import Picture, picture
from profiler.report.terminal import NO_IMAGE, failure, policy_line, rows, tier_line
from profiler.report.words import foreign, one_line

_MANY = 6  # from here on figures are small multiples: one width, two beside each other on a wide screen
_MOST_SAMPLES = 400
_MOST_IN_CSV = 20_000  # images; a page is mailed and opened, and each has a hundred bytes and more
_TONES = {"D4": "good", "D3": "good", "D2": "fair", "D1": "fair"}


class Chart(NamedTuple):
    """A figure on the page: `wide` is missing where the narrow one serves every width."""

    name: str
    alt: str
    caption: str
    narrow: Markup
    wide: Markup | None


class Section(NamedTuple):
    """One run on the page."""

    ident: str
    label: str
    entry: Entry
    tone: str
    answer: str
    policy: str
    failure: str | None
    tiles: list[facts.Tile]
    numbers: list[facts.Row]
    pictures: list[Picture]
    charts: dict[str, Chart]
    missing: list[facts.Row]
    samples: facts.Grid
    left_out: int
    csv: str | None


def page(entries: Sequence[Entry], profiler_version: str, done: Callable[[], None] = lambda: None) -> str:
    """Return the page for one run, or for several side by side; `done` is called after each run was drawn."""
    names = labels(entries)
    many = len(entries) > _MANY
    sections = [
        _section(entry, f"run-{number}", name, many, done)
        for number, (entry, name) in enumerate(zip(entries, names, strict=True), 1)
    ]
    compared = drawings.side_by_side(entries, names)
    return _template().render(
        title=_title(sections),
        sections=sections,
        comparison=comparison(entries) if len(entries) > 1 else None,
        lead=lead(entries, names) if len(entries) > 1 else None,
        compared=_chart(compared, "all", many=False) if compared else None,
        facts=facts,
        no_image=NO_IMAGE[0].upper() + NO_IMAGE[1:] + ".",
        light=Markup(palette.variables("light")),
        dark=Markup(palette.variables("dark")),
        style=Markup(_source("page.css")),
        version=profiler_version,
    )


def _title(sections: Sequence[Section]) -> str:
    if len(sections) > 1:
        return f"{len(sections)} runs compared"
    summary = sections[0].entry.summary
    return f"{sections[0].label}: tier {summary.tier.tier}"


def _section(entry: Entry, ident: str, label: str, many: bool, done: Callable[[], None]) -> Section:
    grid = facts.samples(entry.run, _MOST_SAMPLES)
    charts = {drawing.name: _chart(drawing, ident, many=many) for drawing in drawings.of_run(entry)}
    done()
    return Section(
        ident=ident,
        label=label,
        entry=entry,
        tone=_TONES.get(entry.summary.tier.tier, "poor"),
        answer=tier_line(entry.summary),
        policy=policy_line(entry.summary),
        failure=failure(entry.summary),
        tiles=facts.tiles(entry.summary),
        numbers=list(rows(entry.summary)),
        pictures=[picture(image, entry.folder, 320 if many else 1024) for image in _source_first(entry)],
        charts=charts,
        missing=drawings.missing(entry),
        samples=grid,
        left_out=len(entry.run.iterations) - len(grid.rows),
        csv=_csv(entry.run),
    )


def _csv(run: Run) -> str | None:
    """Return a link that holds every image of a run, or nothing where it would hold too many."""
    if len(run.iterations) > _MOST_IN_CSV:
        return None
    return "data:text/csv;base64," + base64.b64encode(page_samples_csv(run).encode("utf-8", "replace")).decode()


def _source_first(entry: Entry) -> Iterator[Any]:
    return iter(sorted(entry.run.images, key=lambda image: image.role != "source"))


def _chart(drawing: Drawing, ident: str, *, many: bool) -> Chart:
    narrow = Markup(canvas.svg(drawing, canvas.NARROW, f"{ident}-{drawing.name}-n"))
    wide = None if many else Markup(canvas.svg(drawing, canvas.WIDE, f"{ident}-{drawing.name}-w"))
    return Chart(drawing.name, drawing.alt, drawing.caption, narrow, wide)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["shown"] = foreign
    environment.filters["line"] = one_line
    environment.filters["day"] = lambda wall_ns: facts.moment(wall_ns, "%Y-%m-%d %H:%M")
    return environment.from_string(_source("page.html.jinja"))


def _source(name: str) -> str:
    from importlib.resources import files

    return (files("profiler.report") / name).read_text(encoding="utf-8")

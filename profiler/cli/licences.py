"""Tells a model's licence before anything of it is fetched."""

from __future__ import annotations

from profiler.cli.output import notes
from profiler.records.spec import ModelSpec
from profiler.report.terminal import plain

_MEANINGS = {
    "allowed": "commercial use is allowed",
    "forbidden": "no commercial use",
    "conditional": "commercial use under conditions",
    "unknown": "whether commercial use is allowed is not known",
}


def tell_licence(spec: ModelSpec) -> None:
    """Print who may do what with the weights; the embedded model's are the project's own."""
    if spec.embedded:
        return
    licence = spec.licence
    where = f"; {licence.source}" if licence.source else ""
    style = "dim" if licence.commercial_use == "allowed" else "yellow"
    text = f"{spec.title}: licence {licence.name}, {_MEANINGS[licence.commercial_use]}{where}"
    notes().print(plain(text, style=style))

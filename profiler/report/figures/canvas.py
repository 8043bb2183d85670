"""What all figures share: paper, axes, units, and the way to SVG and PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from profiler.quantities import GIB, KIB, MIB, NS_PER_MS, NS_PER_S, NS_PER_US
from profiler.report.palette import light, themed
from profiler.report.words import one_line

WIDE, NARROW = 920, 352  # CSS pixels of the card's inside on a desktop and at 400 px
FONT_PX = 11.5
SMALL_PX = 10.5
_PX_PER_INCH = 72  # one point is one CSS pixel, so that sizes in the code are sizes on the page

_STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": FONT_PX,
    "text.parse_math": False,  # names of others may hold dollars
    "svg.fonttype": "none",
    "svg.hashsalt": "profile",
    "axes.formatter.useoffset": False,  # "+1" over an axis of zeros is no honest scale
    "axes.linewidth": 1.0,
    "path.simplify": False,
}


class Drawing(NamedTuple):
    """One figure: what it shows in words and numbers, and how to draw it at a width."""

    name: str
    alt: str
    caption: str
    draw: Callable[[int], Figure]


def svg(drawing: Drawing, width: int, ident: str) -> str:
    """Return a figure as SVG for a page: theme variables for colours, ids of its own, nothing that differs by time."""
    stream = io.StringIO()
    with _drawing():
        drawing.draw(width).savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None})
    return _for_page(stream.getvalue(), ident)


def png(drawing: Drawing, width: int = WIDE, *, scale: float = 2) -> bytes:
    """Return a figure as PNG on light paper, `scale` dots a CSS pixel."""
    stream = io.BytesIO()
    with _drawing():
        dpi, paper_colour = _PX_PER_INCH * scale, light("card")
        drawing.draw(width).savefig(stream, format="png", dpi=dpi, facecolor=paper_colour, metadata={"Software": None})
    return stream.getvalue()


@contextmanager
def _drawing() -> Iterator[None]:
    """Set the style, and keep quiet about signs that the measuring font does not have: the page's font draws them."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        yield


def paper(width: int, height: int) -> Figure:
    """Return an empty figure of so many CSS pixels."""
    return Figure(figsize=(width / _PX_PER_INCH, height / _PX_PER_INCH), dpi=_PX_PER_INCH, facecolor="none")


def axes(
    figure: Figure,
    *,
    left: float,
    right: float,
    top: float,
    bottom: float,
) -> Axes:
    """Add plain axes, placed in pixels: `left` and `right` from their edges, `top` and `bottom` from the upper edge."""
    width, height = figure.get_size_inches() * _PX_PER_INCH
    frame = figure.add_axes(
        (left / width, 1 - bottom / height, (width - left - right) / width, (bottom - top) / height)
    )
    frame.set_facecolor("none")
    for side in ("top", "right", "left"):
        frame.spines[side].set_visible(False)
    frame.spines["bottom"].set_color(light("axis"))
    frame.tick_params(axis="both", colors=light("muted"), labelsize=SMALL_PX, length=0, pad=5)
    frame.tick_params(axis="x", length=4, color=light("axis"), pad=3)
    frame.set_axisbelow(True)
    frame.yaxis.grid(True, color=light("rule"), linewidth=1)
    return frame


def at_right(frame: Axes, text: str, height: float, *, gap: float, **style: Any) -> None:
    """Write a value beside the axes, at its own height in data, `gap` pixels from them."""
    frame.annotate(
        text,
        xy=(1, height),
        xycoords=("axes fraction", "data"),
        xytext=(gap, 0),
        textcoords="offset points",
        va="center",
        color=light("ink"),
        fontsize=SMALL_PX + 0.5,
        fontweight="bold",
        annotation_clip=False,
        **style,
    )


def legend(figure: Figure, handles: Sequence[Any], names: Sequence[str], columns: int, **style: Any) -> None:
    """Name what marks and colours mean, at the top left of a figure."""
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0,
        ncols=columns,
        frameon=False,
        fontsize=SMALL_PX,
        labelcolor=light("ink"),
        columnspacing=1.6,
        borderpad=0,
        **style,
    )


def title(frame: Axes, text: str) -> None:
    """Name an axis' quantity and unit above its top left corner, where it reads without turning the head."""
    frame.annotate(
        text,
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(0, 9),
        textcoords="offset points",
        color=light("muted"),
        fontsize=SMALL_PX,
        annotation_clip=False,
    )


def x_title(frame: Axes, text: str) -> None:
    """Name the horizontal axis under its right end."""
    frame.set_xlabel(text, color=light("muted"), fontsize=SMALL_PX, loc="right", labelpad=3)


def time_unit(largest_ns: float) -> tuple[str, int]:
    """Return the unit in which a duration has at most four digits before its point, and its length in ns."""
    for unit, length in (("s", NS_PER_S), ("ms", NS_PER_MS), ("µs", NS_PER_US)):
        if largest_ns >= 2 * length:
            return unit, length
    return "ns", 1


def size_unit(largest_bytes: float) -> tuple[str, int]:
    """Return the binary unit that suits an axis up to a size."""
    for unit, length in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if largest_bytes >= 2 * length:
            return unit, length
    return "B", 1


def short(text: str, most: int = 22) -> str:
    """Return foreign words fit for a figure."""
    return one_line(text, most)


def thinned(xs: Sequence[float], ys: Sequence[float], most: int = 1200) -> tuple[list[float], list[float]]:
    """Return a line of at most so many points: of each group in a row the lowest and the highest one are kept."""
    step = max(1, -(-2 * len(xs) // most))
    if step == 1:
        return list(xs), list(ys)
    kept: list[int] = []
    for at in range(0, len(xs), step):
        group = range(at, min(at + step, len(xs)))
        kept += sorted({min(group, key=ys.__getitem__), max(group, key=ys.__getitem__)})
    return [xs[place] for place in kept], [ys[place] for place in kept]


_DROPPED = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>|<defs>\s*</defs>", re.DOTALL
)
_HEAD = re.compile(r"<svg[^>]*?viewBox=\"([^\"]*)\"[^>]*>", re.DOTALL)
_REFERENCE = re.compile(r"(?:url\(#|href=\"#)([^)\"]+)")
_ID = re.compile(r' id="([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{3,}")


def _for_page(text: str, ident: str) -> str:
    text = _HEAD.sub(
        r'<svg viewBox="\1" class="plot" aria-hidden="true" focusable="false">', _DROPPED.sub("", text), count=1
    )
    text = text.replace("xlink:href", "href")
    used = set(_REFERENCE.findall(text))
    text = _ID.sub(lambda found: f' id="{ident}-{found[1]}"' if found[1] in used else "", text)
    text = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{ident}-", text)
    text = _LONG.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)
    text = text.replace("'DejaVu Sans'", "inherit").replace("\n", " ")
    return themed(re.sub(r"\s{2,}", " ", text)).strip()

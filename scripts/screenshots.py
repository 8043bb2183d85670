"""Look at reports in headless Chromium and keep what the README shows: `python -m scripts.screenshots STORE [FOLDER]`.

Takes the newest run of the store for the report of one run, and all of its runs for the comparison. Needs `chromium`
(Debian: apt-get install chromium) and nothing else; no test needs it. Prints for each page whether anything is wider
than the window, which would be a fault of the page.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageColor

from profiler.cli import main as profile
from profiler.report.palette import ROLES
from profiler.store import Store
from scripts.chromium import Browser, browser

_DESKTOP, _PHONE = 1100, 400
_GAP = 12


def main() -> int:
    """Write the pictures."""
    store = Path(sys.argv[1]).absolute()
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/images")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, browser() as tab:
        one, many = Path(work) / "one.html", Path(work) / "many.html"
        _report(store, ["last"], one)
        _report(store, Store(store).run_ids(), many)
        _keep(folder / "report-light.png", _shot(tab, one, _DESKTOP, "h1", "Latency, image by image", dark=False))
        dark = _shot(tab, one, _DESKTOP, "Where the time goes", "Temperature, battery and processor", dark=True)
        _keep(folder / "report-dark.png", dark)
        _keep(folder / "comparison.png", _shot(tab, many, _DESKTOP, "h1", "Comparison", dark=False))
        phone = [_shot(tab, one, _PHONE, "h1", "Distance to the tiers’ limits", dark=dark) for dark in (False, True)]
        _keep(folder / "report-phone.png", _beside(phone))
    return 0


def _report(store: Path, runs: list[str], page: Path) -> None:
    if profile(["report", *runs, "--store", str(store), "-o", str(page)]) != 0:
        sys.exit("no report, no pictures")


def _shot(tab: Browser, page: Path, width: int, first: str, last: str, *, dark: bool) -> Image.Image:
    """Return the page from the card under one heading (or from its top: `h1`) to the end of the card under another."""
    tab.open(page.as_uri(), width=width, height=900, dark=dark)
    wide = tab.run("document.documentElement.scrollWidth")
    print(
        f"{page.name} at {width} px, {'dark' if dark else 'light'}: {'fits' if wide <= width else f'{wide} px wide!'}"
    )
    top = 0 if first == "h1" else _edge(tab, first, "top") - _GAP
    data = tab.screenshot(top=top, height=_edge(tab, last, "bottom") + _GAP - top)
    return Image.open(io.BytesIO(data)).convert("RGB")


def _edge(tab: Browser, heading: str, edge: str) -> float:
    cards = f"[...document.querySelectorAll('section.card')].find(c => c.firstElementChild.textContent === {heading!r})"
    return float(tab.run(f"{cards}.getBoundingClientRect().{edge} + scrollY"))


def _beside(pictures: list[Image.Image]) -> Image.Image:
    sheet = Image.new("RGB", (sum(p.width for p in pictures) + _GAP * (len(pictures) - 1), pictures[0].height), "white")
    left = 0
    for picture in pictures:
        sheet.paste(picture, (left, 0))
        left += picture.width + _GAP
    return sheet


def _keep(path: Path, picture: Image.Image) -> None:
    """Save a picture in 256 colours, so that it stays small: those of both themes, and its own most frequent ones."""
    counted = sorted(picture.getcolors(maxcolors=1 << 24) or [], reverse=True, key=lambda pair: pair[0])
    themes = [ImageColor.getrgb(value)[:3] for colour in ROLES.values() for value in colour]
    chosen = list(dict.fromkeys([*themes, *(colour for _, colour in counted)]))[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([level for colour in chosen for level in colour])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())

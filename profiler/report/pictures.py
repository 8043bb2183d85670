"""The images of a run as they go into a page: inside it, and small enough for it."""

from __future__ import annotations

import base64
import io
import stat
from pathlib import Path
from typing import NamedTuple

from profiler.records.run import ImageFile

_TINY = 128  # pixels a side; smaller images are shown larger, each pixel a square


class Picture(NamedTuple):
    """An image for a page; `data` is a data URI, or null with a reason."""

    role: str
    data: str | None
    reason: str | None
    width: int
    height: int
    shrunk: bool

    @property
    def tiny(self) -> bool:
        """Tell whether it must be enlarged to be seen."""
        return max(self.width, self.height) <= _TINY


def picture(image: ImageFile, folder: Path, largest_side: int) -> Picture:
    """Read an image of a run as PNG, made smaller where a side is longer than `largest_side` pixels."""
    from PIL import Image  # takes a while to import

    try:
        with Image.open(_inside(image.path, folder)) as opened:
            pixels = opened.convert("RGB")
    except _Outside as error:
        return Picture(image.role, None, str(error), 0, 0, False)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        reason = "its file is not there" if isinstance(error, FileNotFoundError) else "its file is no readable image"
        return Picture(image.role, None, reason, 0, 0, False)
    width, height = pixels.size
    shrunk = max(width, height) > largest_side
    if shrunk:
        pixels.thumbnail((largest_side, largest_side))
    stream = io.BytesIO()
    pixels.save(stream, "PNG", optimize=True)
    data = "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
    return Picture(image.role, data, None, width, height, shrunk)


class _Outside(Exception):
    """A record names what is not a plain file in the run's folder."""


def _inside(name: str, folder: Path) -> Path:
    """Return a plain file in the run's folder: opening a pipe would wait without end. Raises _Outside or OSError."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise _Outside("its record names a file outside the run's folder")
    if not stat.S_ISREG(path.stat().st_mode):
        raise _Outside("what its record names is no plain file")
    return path

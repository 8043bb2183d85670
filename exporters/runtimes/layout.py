"""Where a format puts a component's files in a bundle."""

from __future__ import annotations

import re

FOLDER = "components"


def function_path(part: str, function: str, ending: str) -> str:
    """Return the path of one function's file, each name as one segment that is safe everywhere."""
    return f"{FOLDER}/{_segment(part)}/{_segment(function)}.{ending}"


def _segment(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name) or "_"

"""Where a part's files lie in a bundle."""

from __future__ import annotations

import re

FOLDER = "components"


def function_path(part: str, function: str, suffix: str) -> str:
    """Return the path of one function's file or folder, relative to the bundle."""
    return f"{FOLDER}/{file_name(part)}/{file_name(function)}{suffix}"


def file_name(name: str) -> str:
    """Return a name that is safe as one path segment everywhere."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name) or "_"

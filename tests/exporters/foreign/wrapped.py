"""What came of wrapping a graph: its plan's kind of output, or the refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exporters.foreign.wrapping import Wishes, wrap
from profiler.bundle_files import load_manifest, load_plan
from profiler.errors import InputError
from profiler.records.plan import Output


def media_of(folder: Path) -> Any:
    """Return what a bundle's plan ends in."""
    output = load_plan(folder, load_manifest(folder), "generate").body[-1]
    assert isinstance(output, Output)
    return output.media


def refused(path: Path, tmp_path: Path, kind: type[Exception] = InputError, **wishes: Any) -> str:
    """Return what is said of a graph that is refused, on one line; nothing may be left of it."""
    with pytest.raises(kind) as caught:
        wrap(path, Wishes(**wishes), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    return " ".join(str(caught.value).split())

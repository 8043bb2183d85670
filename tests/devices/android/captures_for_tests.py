"""What phones printed, or print by their source: captured texts with identities replaced."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "captures" / "android"


def capture(name: str) -> str:
    """Return one captured text."""
    return (FOLDER / f"{name}.txt").read_text()


def names(prefix: str) -> list[str]:
    """Return the names of the captures that begin so."""
    return sorted(path.stem for path in FOLDER.glob(f"{prefix}*.txt"))

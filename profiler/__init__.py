"""Measure what an image model costs on a device, and judge whether it can ship there."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
_FRAMES = ("load_runs", "load_samples", "load_traces")  # docs/analysis.md


def __getattr__(name: str) -> Any:
    """Load the analysis interface when it is asked for: neither a runner nor `--help` waits for pandas."""
    if name not in _FRAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("profiler.frames"), name)


def __dir__() -> list[str]:
    """Return what is public."""
    return ["__version__", *_FRAMES]

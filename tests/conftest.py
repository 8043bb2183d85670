"""What many tests need: a small bundle, built once, and a store of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.store import Store
from tests.small_bundle import build_small_bundle


@pytest.fixture(scope="session")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of trivial graphs that generates and edits 16×16 images; never written to."""
    return build_small_bundle(tmp_path_factory.mktemp("bundles") / "small")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")

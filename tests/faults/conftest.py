"""A bundle that takes its time, and a desk to measure it at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import own_cache
from tests.faults.hosts import Desk
from tests.small_bundle import build_small_bundle

__all__ = ["own_cache"]


@pytest.fixture(scope="session")
def slow_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose images take tens of milliseconds."""
    return build_small_bundle(tmp_path_factory.mktemp("slow") / "bundle", slow=4)


@pytest.fixture
def desk(small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    """Measure the small bundle into a store of one's own."""
    return Desk(small_bundle, tmp_path / "store", capsys)

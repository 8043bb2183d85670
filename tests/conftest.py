"""What many tests need: a small bundle, built once, and a store of one's own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from profiler.store import Store
from tests.small_bundle import build_small_bundle


def pytest_configure() -> None:
    """Hear of signals that whoever started the tests ignores, as a shell does for what runs in the background.

    A child inherits what is ignored, and a `profile` that a test stops by Ctrl-C would go on for ever.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of trivial graphs that generates and edits 16×16 images; never written to."""
    return build_small_bundle(tmp_path_factory.mktemp("bundles") / "small")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")

"""What many tests need: a small bundle, built once, and a store of one's own."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.store import Store
from tests.small_bundle import build_small_bundle


def pytest_configure() -> None:
    """Hear of signals that whoever started the tests ignores, as a shell does for what runs in the background.

    A child inherits what is ignored, and a `profile` that a test stops by Ctrl-C would go on for ever.
    """
    _keep_off_the_users_phones()
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def _keep_off_the_users_phones() -> None:
    """Let nothing reach an adb server that is not a test's own, nor start one."""
    os.environ["ANDROID_ADB_SERVER_PORT"] = "1"
    os.environ["ADBUTILS_ADB_PATH"] = os.devnull


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look through what is imported for garbage once, not again and again while it grows, nor with every test's own."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of trivial graphs that generates and edits 16×16 images; never written to."""
    return build_small_bundle(tmp_path_factory.mktemp("bundles") / "small")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")

"""Keeps the frameworks' warnings to themselves while an export talks through its own progress."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from functools import partialmethod

from tqdm import tqdm


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show errors only: the rest is about packages, config keys and deprecations that a user cannot act on."""
    with _without_bars(), _errors_only():
        yield


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """Let no tqdm begin: coremltools has one for every list of passes, and no switch for them."""
    begin = tqdm.__init__
    tqdm.__init__ = partialmethod(begin, disable=True)
    try:
        yield
    finally:
        tqdm.__init__ = begin


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    """Hold back warnings: not by the loggers' levels, which a framework that is imported meanwhile sets itself."""
    before = logging.root.manager.disable
    try:
        logging.disable(max(before, logging.WARNING))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)

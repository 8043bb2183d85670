"""Keeps the frameworks' warnings to themselves while an export talks through its own progress."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show errors only: the rest is about packages, config keys and deprecations that a user cannot act on.

    Not by the loggers' levels, which a framework that is imported meanwhile sets itself.
    """
    before = logging.root.manager.disable
    try:
        logging.disable(max(before, logging.WARNING))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)

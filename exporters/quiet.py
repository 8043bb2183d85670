"""Keeps the frameworks' warnings to themselves while an export talks through its own progress."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from functools import partialmethod

from tqdm import tqdm

_LOGGERS = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir", "diffusers", "transformers", "coremltools")


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
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

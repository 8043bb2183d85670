"""Keeps the frameworks' warnings to themselves while an export talks through its own progress."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

_LOGGERS = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir", "diffusers", "transformers", "coremltools")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show errors only: the rest is about packages, config keys and deprecations that a user cannot act on."""
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

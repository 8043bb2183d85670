"""The tokenizer a bundle ships: a pipeline's own, as a file of the tokenizers library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from profiler.errors import InputError


def write_tokenizer(tokenizer: Any, length: int, path: Path) -> None:
    """Write a tokenizer file that pads and truncates to `length` by itself. Raises InputError for slow tokenizers."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(f"tokenizer {type(tokenizer).__name__} has no form that the tokenizers library can read")
    standalone = Tokenizer.from_str(backend.to_str())
    standalone.enable_truncation(length)
    standalone.enable_padding(length=length, pad_id=tokenizer.pad_token_id, pad_token=tokenizer.pad_token)
    standalone.save(str(path))

"""Prompts to token ids with the tokenizers library alone, exactly as a pipeline's own tokenizer does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from profiler.errors import InputError, InvalidRecord
from profiler.records.bundle import PromptForm

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PLAIN = PromptForm()


class Encoded(NamedTuple):
    """Token ids and the mask of those that count, int32 [1, L]; `dropped` counts tokens that did not fit."""

    ids: npt.NDArray[np.int32]
    mask: npt.NDArray[np.int32]
    dropped: int


def encode(tokenizer: Path, form: PromptForm, prompt: str, *, negative: bool = False) -> Encoded:
    """Encode a prompt in its task's form. Raises InvalidRecord for a broken tokenizer, InputError for one too long."""
    text = prompt.lower().strip() if form.lowercase else prompt
    template = form.negative_template if negative else form.template
    return _encode(_read(tokenizer), form, template.replace("{prompt}", text), prompt)


def _encode(tokenizer: Tokenizer, form: PromptForm, text: str, prompt: str) -> Encoded:
    room = min(form.limit or _length(tokenizer), _length(tokenizer))
    tokenizer.enable_truncation(room)
    found = tokenizer.encode(text)
    dropped = _count(tokenizer, text) - room if found.overflowing else 0
    if dropped and not form.cut:
        raise InputError(
            f"the prompt {prompt[:60]!r} is {dropped} tokens too long: the model takes {room} with its template",
            hint="Shorten the prompt.",
        )
    mask = np.array([found.attention_mask], dtype=np.int32)
    mask[:, : form.hidden] = 0
    return Encoded(np.array([found.ids], dtype=np.int32), mask, dropped)


def _length(tokenizer: Tokenizer) -> int:
    return int((tokenizer.padding or {})["length"])


def _count(tokenizer: Tokenizer, text: str) -> int:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return len(tokenizer.encode(text).ids)


def _read(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain exceptions of its own
        raise InvalidRecord(f"{path} is no tokenizer: {error}") from error
    if tokenizer.padding is None or not tokenizer.padding.get("length"):
        raise InvalidRecord(f"{path} does not pad to a length by itself", hint="Export the bundle again.")
    return tokenizer

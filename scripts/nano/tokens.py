"""Tokens: a CLIP byte-level BPE tokenizer whose merges make every word of the vocabulary one token."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer
from transformers import CLIPTokenizer

from scripts.nano.language import vocabulary

BEGIN = "<|startoftext|>"
END = "<|endoftext|>"
MAX_TOKENS = 32
_WORD_END = "</w>"

Pair = tuple[str, str]


def _byte_characters() -> list[str]:
    """List GPT-2's printable stand-ins for the 256 bytes, in byte order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    stand_ins = iter(range(256, 512))
    return [chr(byte if byte in printable else next(stand_ins)) for byte in range(256)]


def _merge(pieces: list[str], ranks: dict[Pair, int]) -> list[str]:
    """Apply byte-pair merges to a word, lowest rank first, as tokenizers do."""
    while pairs := [pair for pair in pairwise(pieces) if pair in ranks]:
        left, right = min(pairs, key=ranks.__getitem__)
        merged: list[str] = []
        for piece in pieces:
            if merged and (merged[-1], piece) == (left, right):
                merged[-1] += piece
            else:
                merged.append(piece)
        pieces = merged
    return pieces


def learn_merges(words: list[str]) -> list[Pair]:
    """Find merges that join each word into one token.

    A word is first split by the merges so far and only then joined from the left, so that a later word can neither
    be torn by an earlier one's merges nor tear it: its own merges rank below all that came before.
    """
    ranks: dict[Pair, int] = {}
    for word in words:
        pieces = _merge([*word[:-1], word[-1] + _WORD_END], ranks)
        while len(pieces) > 1:
            ranks[pieces[0], pieces[1]] = len(ranks)
            pieces = [pieces[0] + pieces[1], *pieces[2:]]
    return list(ranks)


def build_tokenizer() -> CLIPTokenizer:
    """Build the tokenizer; text outside the vocabulary falls back to bytes."""
    merges = learn_merges(vocabulary())
    characters = _byte_characters()
    tokens = [*characters, *(c + _WORD_END for c in characters), *(left + right for left, right in merges)]
    unique = [*dict.fromkeys(tokens), BEGIN, END]
    ids = {token: index for index, token in enumerate(unique)}
    return CLIPTokenizer(vocab=ids, merges=merges, model_max_length=MAX_TOKENS)


def write_standalone(tokenizer: CLIPTokenizer, path: Path) -> None:
    """Write a tokenizer.json which, read by the tokenizers library alone, pads and cuts to 32 as the pipeline does."""
    standalone = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    standalone.enable_truncation(MAX_TOKENS)
    standalone.enable_padding(length=MAX_TOKENS, pad_id=tokenizer.pad_token_id, pad_token=END)
    standalone.save(str(path))

"""Tokenizers for pipelines whose own cannot be had: for random weights, to which words mean nothing.

They have the real ones' classes, vocabulary sizes and special tokens, so that shapes and positions are the real ones';
what stands between are byte pairs learnt from a family's own templates, and names that no text contains.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import CLIPTokenizer, GemmaTokenizer, Qwen2Tokenizer, Qwen2VLImageProcessorPil
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from profiler.errors import InputError
from profiler.records.spec import ModelSpec

_LEARNT = 900
# (words in the vocabulary, special tokens after them): Qwen2 as Qwen3-VL has it, CLIP, Gemma 2.
_QWEN_WORDS = 151643
_QWEN_SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
_CLIP_WORDS, _CLIP_LENGTH = 49408, 77
_GEMMA_WORDS, _GEMMA_SPECIAL = 256000, ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")


def write_tokenizers(spec: ModelSpec, templates: Sequence[str], folder: Path) -> None:
    """Write a stand-in for each tokenizer and processor of a registry entry. Raises InputError for an unknown class."""
    for name, kind in spec.tokenizers.items():
        build = _BUILDERS.get(kind.removesuffix("Fast"))
        if build is None:
            raise InputError(f"{spec.name}: there is no stand-in for a {kind}")
        build(templates).save_pretrained(folder / name)


def _clip(templates: Sequence[str]) -> Any:
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = _named([*characters, *(character + "</w>" for character in characters)], _CLIP_WORDS - 2)
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab=_numbered(tokens), merges=[], model_max_length=_CLIP_LENGTH)


def _qwen(templates: Sequence[str]) -> Any:
    learning = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated")
    learning.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens, merges = _learn(learning, _without(_QWEN_SPECIAL, templates), initial_alphabet=alphabet)
    return Qwen2Tokenizer(
        vocab=_numbered(_named(tokens, _QWEN_WORDS)), merges=merges, extra_special_tokens=list(_QWEN_SPECIAL)
    )


def _gemma(templates: Sequence[str]) -> Any:
    learning = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    learning.normalizer = normalizers.Replace(" ", "▁")
    learning.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    special = [*_GEMMA_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens, merges = _learn(learning, list(templates), special_tokens=special)
    tokenizer = GemmaTokenizer(vocab=_numbered(_named(tokens, _GEMMA_WORDS)), merges=merges)
    begin: Any = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", tokenizer.convert_tokens_to_ids("<bos>"))]
    )
    tokenizer.backend_tokenizer.post_processor = begin
    return tokenizer


def _qwen_pictures(templates: Sequence[str]) -> Any:
    half = [0.5, 0.5, 0.5]
    limits = {"shortest_edge": 65536, "longest_edge": 16777216}
    return Qwen2VLImageProcessorPil(
        patch_size=16, merge_size=2, temporal_patch_size=2, image_mean=half, image_std=half, size=limits
    )


_BUILDERS: dict[str, Callable[[Sequence[str]], Any]] = {
    "CLIPTokenizer": _clip,
    "Qwen2Tokenizer": _qwen,
    "GemmaTokenizer": _gemma,
    "Qwen3VLProcessor": _qwen_pictures,
}


def _learn(learning: Tokenizer, texts: list[str], **options: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """Learn byte pairs; return the tokens in the order of their ids, and the merges."""
    trainer = trainers.BpeTrainer(vocab_size=_LEARNT, show_progress=False, **options)
    learning.train_from_iterator(texts, trainer)
    model = json.loads(learning.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get), [tuple(pair) for pair in model["merges"]]


def _without(special: Sequence[str], texts: Sequence[str]) -> list[str]:
    found = list(texts)
    for token in special:
        found = [text.replace(token, "\n\n") for text in found]
    return found


def _named(tokens: Sequence[str], count: int) -> list[str]:
    """Fill a vocabulary up with names that no text contains."""
    return [*tokens, *(f"<stand-in {number}>" for number in range(len(tokens), count))]


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}

"""Tokenizers for pipelines whose own cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from transformers import CLIPTokenizer, GemmaTokenizer, Qwen2Tokenizer, Qwen2VLImageProcessorPil

from exporters import stand_in
from profiler import catalog
from profiler.errors import InputError

TEMPLATE = "<|im_start|>user\nDescribe the image: {}<|im_end|>\n<|vision_start|><|image_pad|><|vision_end|>"


def written(model: str, folder: Path) -> Path:
    stand_in.write_tokenizers(catalog.model(model), [TEMPLATE], folder)
    return folder


def test_qwens_special_tokens_have_their_real_numbers(tmp_path: Path) -> None:
    tokenizer: Any = Qwen2Tokenizer.from_pretrained(written("dreamlite", tmp_path) / "tokenizer")
    real = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|image_pad|>": 151655, "<|video_pad|>": 151656}
    assert {token: tokenizer.convert_tokens_to_ids(token) for token in real} == real
    assert tokenizer.pad_token_id == 151643
    ids = tokenizer(TEMPLATE.format("ünïcode 漢字")).input_ids
    assert tokenizer.decode(ids) == TEMPLATE.format("ünïcode 漢字")
    assert len(tokenizer(TEMPLATE).input_ids) < len(TEMPLATE) / 3  # its words were learnt


def test_pictures_are_cut_as_qwen3_vl_cuts_them(tmp_path: Path) -> None:
    processor = Qwen2VLImageProcessorPil.from_pretrained(written("dreamlite-mobile", tmp_path) / "processor")
    assert (processor.patch_size, processor.merge_size, processor.temporal_patch_size) == (16, 2, 2)


def test_gemmas_vocabulary_has_its_size_and_begins_every_text(tmp_path: Path) -> None:
    tokenizer: Any = GemmaTokenizer.from_pretrained(written("sana-sprint-0.6b", tmp_path) / "tokenizer")
    assert len(tokenizer) == 256000
    assert (tokenizer.pad_token_id, tokenizer("describe").input_ids[0]) == (0, 2)


def test_clips_has_its_length_and_its_ends(tmp_path: Path) -> None:
    tokenizer: Any = CLIPTokenizer.from_pretrained(written("sd-1.5", tmp_path) / "tokenizer")
    assert (len(tokenizer), tokenizer.model_max_length) == (49408, 77)
    ids = tokenizer("a red square").input_ids
    assert (ids[0], ids[-1]) == (49406, 49407)
    assert tokenizer("a blue square").input_ids != ids


def test_a_class_without_a_stand_in_is_refused(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(catalog.model("sd-1.5"), tokenizers={"tokenizer": "T5Tokenizer"})
    with pytest.raises(InputError, match=r"sd-1\.5: there is no stand-in for a T5Tokenizer"):
        stand_in.write_tokenizers(spec, [], tmp_path)

"""The tokenizer file that a bundle ships, against the pipeline's own tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from exporters.prompts import write_tokenizer
from profiler.errors import InputError
from profiler.prompts import PLAIN, encode
from tests.exporters.small_pipelines import PROMPT_LENGTH, build_tokenizer

PROMPTS = ["", "red", "a red square", "A  Red\tSquare!", "ünïcode 漢字 🦊", "word " * 40, "<|endoftext|> red"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    write_tokenizer(build_tokenizer(), PROMPT_LENGTH, written)
    return written


def stock_ids(prompt: str) -> list[int]:
    encoded = build_tokenizer()(prompt, padding="max_length", max_length=PROMPT_LENGTH, truncation=True)
    return list(encoded.input_ids)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_ids_are_the_pipelines_own(path: Path, prompt: str) -> None:
    ids = encode(path, PLAIN, prompt).ids
    assert ids.shape == (1, PROMPT_LENGTH)
    assert ids.dtype == "int32"
    assert ids[0].tolist() == stock_ids(prompt)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prompt=st.text(max_size=30))
def test_any_text_gives_the_pipelines_own_ids(path: Path, prompt: str) -> None:
    assert encode(path, PLAIN, prompt).ids[0].tolist() == stock_ids(prompt)


def test_the_file_pads_and_cuts_by_itself(path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(path))
    assert len(tokenizer.encode("red").ids) == len(tokenizer.encode("red " * 99).ids) == PROMPT_LENGTH


def test_a_tokenizer_without_a_fast_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="object"):
        write_tokenizer(object(), PROMPT_LENGTH, tmp_path / "tokenizer.json")

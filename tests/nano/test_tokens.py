"""Tokens: one token a word, any text encodes, and the standalone file gives the pipeline's ids."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from scripts.nano.language import vocabulary  # noqa: E402
from scripts.nano.tokens import MAX_TOKENS, build_tokenizer, learn_merges, write_standalone  # noqa: E402

TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(vocabulary()), max_size=40).map(" ".join),
)


@cache
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("tokens") / "tokenizer.json"
    write_standalone(tokenizer(), path)
    return tokenizers.Tokenizer.from_file(str(path))


def pipeline_ids(text: str) -> list[int]:
    ids: list[int] = tokenizer()(text, padding="max_length", max_length=MAX_TOKENS, truncation=True).input_ids
    return ids


def test_every_word_of_the_vocabulary_is_one_token() -> None:
    assert {word: len(tokenizer().tokenize(word)) for word in vocabulary()} == dict.fromkeys(vocabulary(), 1)


def test_later_words_do_not_tear_earlier_ones() -> None:
    assert learn_merges(["red", "create"])[:2] == [("r", "e"), ("re", "d</w>")]


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_the_standalone_file_gives_the_same_ids(standalone: Any, text: str) -> None:
    assert standalone.encode(text).ids == pipeline_ids(text)


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_any_text_encodes_to_32_ids_between_begin_and_end(text: str) -> None:
    ids = pipeline_ids(text)
    assert len(ids) == MAX_TOKENS
    assert ids[0] == tokenizer().bos_token_id
    assert tokenizer().eos_token_id in ids


def test_the_empty_prompt_is_begin_then_end() -> None:
    bos, eos = tokenizer().bos_token_id, tokenizer().eos_token_id
    assert pipeline_ids("") == [bos] + [eos] * (MAX_TOKENS - 1)


def test_case_and_spacing_do_not_matter() -> None:
    assert pipeline_ids("A  Red\tstar") == pipeline_ids("a red star")


def test_no_template_is_cut() -> None:
    from random import Random

    from scripts.nano.reading import sample_sentence

    rng = Random(0)
    texts = [sample_sentence(rng, "train").text for _ in range(1500)]
    assert max(len(ids) for ids in tokenizer()(texts).input_ids) <= MAX_TOKENS

"""Coded weights in ExecuTorch programs: stored as they are held, decoded no more than is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("executorch")

import torch
from torch import Tensor, nn
from torch.nn import functional

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize.schemes import Applied, Scheme, apply
from exporters.runtimes import executorch
from exporters.runtimes.executorch_coded import CodedForms
from profiler.records.bundle import Component
from profiler.records.recipe import EncoderScheme
from tests.exporters.runtimes.test_executorch import recipe, relative

WORDS, WIDTH, INNER, LAYERS = 5000, 128, 256, 4
SCHEMES: tuple[EncoderScheme, ...] = ("fp16", "int8", "nf4")
# What a program is besides its weights.
PROGRAM_BYTES = 60_000


class Encoder(nn.Module):
    """An embedding, layers with norms, and the embedding again as what words are scored by."""

    def __init__(self, *, scored: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH, bias=False))
            for _ in range(LAYERS)
        )
        self.score = nn.Linear(WIDTH, WORDS, bias=False) if scored else None
        if self.score:
            self.score.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        states = self.words(ids)
        for layer in self.layers:
            states = states + layer(states)
        return self.score(states) if self.score else states


class Encoded(NamedTuple):
    part: Part
    applied: Applied
    component: Component
    folder: Path

    @property
    def file_bytes(self) -> int:
        return (self.folder / self.component.files[0]).stat().st_size


def encoder_part(module: nn.Module) -> Part:
    ids = (torch.arange(9, dtype=torch.int32)[None] * 611) % WORDS
    graph = Graph(module=module.eval().requires_grad_(False), inputs={"ids": ids}, outputs=("states",))
    return Part(name="text_encoder", graphs={"forward": graph}, encodes_text=True)


@pytest.fixture(scope="module", params=SCHEMES)
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Encoded:
    return encoded(request.param, tmp_path_factory.mktemp(request.param), scored=False)


def encoded(scheme: EncoderScheme, folder: Path, *, scored: bool) -> Encoded:
    torch.manual_seed(0)
    part = encoder_part(Encoder(scored=scored))
    applied = apply(part.modules, Scheme(name=scheme))
    component = executorch.export_part(part, folder, recipe(text_encoder=scheme), Stages())
    return Encoded(part, applied, component, folder)


def arena_bytes(path: Path) -> int:
    """Return the memory that a program plans for values between its operators and delegates."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    (plan,) = deserialize_pte_binary(path.read_bytes()).program.execution_plan
    return sum(plan.non_const_buffer_sizes)


def test_a_program_is_its_codes_and_computes_what_the_module_does(plain: Encoded) -> None:
    assert plain.component.precision == plain.applied.scheme.name
    assert relative(plain.part, plain.component, plain.folder) < 1e-6
    assert plain.file_bytes < plain.applied.ideal_bytes + PROGRAM_BYTES


def test_no_more_is_decoded_at_a_time_than_a_layer_and_the_rows_looked_up(plain: Encoded) -> None:
    both_of_a_layer = 2 * 4 * WIDTH * INNER
    limit = 1.5 * both_of_a_layer + 100_000
    assert arena_bytes(plain.folder / plain.component.files[0]) < limit
    assert limit < min(4 * WORDS * WIDTH, LAYERS * both_of_a_layer)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_weight_that_words_and_a_layer_share_is_stored_once(scheme: EncoderScheme, tmp_path: Path) -> None:
    found = encoded(scheme, tmp_path, scored=True)
    assert found.applied.tied == {"score.weight": "words.weight"}
    assert found.file_bytes < found.applied.ideal_bytes + PROGRAM_BYTES
    assert relative(found.part, found.component, tmp_path) < 1e-6


def test_an_odd_width_and_a_weight_that_no_layer_takes_are_decoded_right(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Embedding(WORDS, 36), nn.Linear(64, 64)

        def forward(self, ids: Tensor) -> Tensor:
            return functional.pad(self.first(ids), (0, 28)) @ self.second.weight

    torch.manual_seed(0)
    part = encoder_part(Odd())
    assert apply(part.modules, Scheme(name="nf4")).fallen_back == ("first.weight",)
    component = executorch.export_part(part, tmp_path, recipe(text_encoder="nf4"), Stages())
    assert relative(part, component, tmp_path) < 1e-6


def test_kept_layers_are_halves_and_the_rest_is_coded(tmp_path: Path) -> None:
    torch.manual_seed(0)
    part = encoder_part(Encoder(scored=False))
    applied = apply(part.modules, Scheme(name="int8", kept=("words.weight",), rest="fp16"))
    component = executorch.export_part(part, tmp_path, recipe(text_encoder="int8"), Stages())
    size = (tmp_path / component.files[0]).stat().st_size
    assert 2 * WORDS * WIDTH < size < applied.ideal_bytes + PROGRAM_BYTES
    assert relative(part, component, tmp_path) < 1e-6


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_forms_are_the_layers_and_end_with_their_context(scheme: EncoderScheme) -> None:
    torch.manual_seed(0)
    module = Encoder(scored=True).eval()
    apply([module], Scheme(name=scheme))
    ids = torch.tensor([[3, 4999, 0]], dtype=torch.int32)
    expected: Any = module(ids)
    with CodedForms(module):
        found = module(ids)
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(module(ids), expected)

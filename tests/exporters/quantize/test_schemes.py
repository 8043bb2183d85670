"""Applying a scheme to a network."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exporters.quantize import int8, nf4
from exporters.quantize.held import DECOMPOSITIONS, HeldHalf, HeldInt8, HeldNf4, count_weights
from exporters.quantize.schemes import Scheme, apply, check_kept
from profiler.errors import InputError, ModelError
from profiler.records.recipe import EncoderScheme

ALL: tuple[EncoderScheme, ...] = ("fp16", "int8", "nf4")
IDS = torch.tensor([[1, 5, 9, 2]])


class Words(nn.Module):
    """An embedding, a norm, a layer whose rows are whole blocks, one whose are not, and tied logits."""

    def __init__(self, *, ties: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(20, 64)
        self.norm = nn.LayerNorm(64)
        self.wide = nn.Linear(64, 48)
        self.narrow = nn.Linear(48, 64)
        self.logits = nn.Linear(64, 20, bias=False)
        if ties:
            self.logits.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        states: Tensor = self.logits(self.narrow(torch.relu(self.wide(self.norm(self.words(ids))))))
        return states


def words(*, ties: bool = False) -> Words:
    network = Words(ties=ties).eval()
    network.requires_grad_(False)
    return network


def test_nf4_codes_whole_blocks_and_falls_back_to_int8_elsewhere() -> None:
    network = words()
    applied = apply([network], Scheme(name="nf4"))
    kinds = {name: type(held) for name, held in applied.coded.items()}
    assert kinds == {
        "words.weight": HeldNf4,
        "wide.weight": HeldNf4,
        "narrow.weight": HeldInt8,
        "logits.weight": HeldNf4,
    }
    assert applied.fallen_back == ("narrow.weight",)


@pytest.mark.parametrize(("scheme", "kind"), [("fp16", HeldHalf), ("int8", HeldInt8)])
def test_other_schemes_code_all_layers_alike(scheme: EncoderScheme, kind: type) -> None:
    applied = apply([words()], Scheme(name=scheme))
    assert {type(held) for held in applied.coded.values()} == {kind}
    assert len(applied.coded) == 4


@pytest.mark.parametrize("scheme", ALL)
def test_the_network_computes_with_the_decoded_weights(scheme: EncoderScheme) -> None:
    expected = words()
    with torch.no_grad():
        for layer in (expected.words, expected.wide, expected.narrow, expected.logits):
            weight = layer.weight
            if scheme == "fp16":
                weight.copy_(weight.half())
            elif scheme == "nf4" and weight.shape[1] % 64 == 0:
                weight.copy_(nf4.decode(nf4.encode(weight)))
            else:
                weight.copy_(int8.decode(int8.encode(weight)))
    network = words()
    apply([network], Scheme(name=scheme))
    assert torch.equal(network(IDS), expected(IDS))
    assert not torch.equal(network(IDS), words()(IDS))


@pytest.mark.parametrize("scheme", ALL)
def test_norms_and_biases_stay(scheme: EncoderScheme) -> None:
    network = words()
    apply([network], Scheme(name=scheme))
    left = dict(network.named_parameters())
    assert set(left) == {"norm.weight", "norm.bias", "wide.bias", "narrow.bias"}
    assert {weight.dtype for weight in left.values()} == {torch.float32}


@pytest.mark.parametrize("pattern", ["wide.*", "wide.weight", "*wide*", "weight"])
def test_a_pattern_keeps_what_it_matches(pattern: str) -> None:
    applied = apply([words()], Scheme(name="int8", kept=(pattern,)))
    assert "wide.weight" in applied.kept
    assert "wide.weight" not in applied.coded


def test_what_is_kept_is_as_precise_as_the_rest() -> None:
    applied = apply([words()], Scheme(name="nf4", kept=("wide.*",), rest="fp16"))
    assert isinstance(applied.coded["wide.weight"], HeldHalf)
    assert applied.coverage == pytest.approx((20 * 64 + 64 * 48 + 20 * 64) / applied.weights)


def test_a_pattern_that_matches_nothing_is_the_users_mistake() -> None:
    with pytest.raises(InputError, match="no weight that can be quantized matches 'norm") as caught:
        check_kept([words()], ("wide.*", "norm.*"))
    assert "words.weight" in str(caught.value)


@pytest.mark.parametrize("scheme", ALL)
def test_a_tied_weight_is_coded_once(scheme: EncoderScheme) -> None:
    network = words(ties=True)
    applied = apply([network], Scheme(name=scheme))
    assert applied.tied == {"logits.weight": "words.weight"}
    assert applied.saved_bytes == applied.coded["words.weight"].size_bytes
    assert network.words.held_weight is network.logits.held_weight
    assert count_weights([network]) == applied.weights == 20 * 64 + 2 * 64 + 64 * 48 * 2 + 48 + 64


def test_a_pattern_may_name_a_tied_weight_by_either_name() -> None:
    applied = apply([words(ties=True)], Scheme(name="int8", kept=("logits.*",)))
    assert applied.kept == ("words.weight",)


def test_bytes_and_coverage_are_counted() -> None:
    applied = apply([words()], Scheme(name="nf4"))
    blocks, rest = 20 * 64 * 2 + 64 * 48, 2 * 64 + 48 + 64
    assert applied.ideal_bytes == blocks // 2 + blocks // 64 * 4 + 64 * 48 + 64 * 4 + rest * 4
    assert applied.coverage == pytest.approx((blocks + 64 * 48) / (blocks + 64 * 48 + rest))


def test_a_network_used_by_two_functions_is_coded_once() -> None:
    network = words()
    assert len(apply([network, nn.Sequential(network)], Scheme(name="int8")).coded) == 4


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("name", ["wide.weight", "norm.bias"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_undefined_weights_are_named(scheme: EncoderScheme, name: str, bad: float) -> None:
    network = words()
    network.get_parameter(name).view(-1)[3] = bad
    with pytest.raises(ModelError, match=f"{name} holds NaN"):
        apply([network], Scheme(name=scheme))


def test_weights_beyond_half_precision_are_named() -> None:
    network = words()
    network.get_parameter("wide.weight").view(-1)[3] = 1e5
    with pytest.raises(ModelError, match=r"wide\.weight cannot be stored as fp16: weights are beyond"):
        apply([network], Scheme(name="fp16"))


@pytest.mark.parametrize("scheme", ALL)
def test_a_trace_keeps_a_decoding_as_one_node_and_can_replace_it(scheme: EncoderScheme) -> None:
    network = words()
    applied = apply([network], Scheme(name=scheme))
    traced = torch.export.export(network, (IDS,))
    decoded = [node for node in traced.graph.nodes if "profiler" in str(node.target)]
    assert len(decoded) == len(applied.coded)
    plain = traced.run_decompositions(DECOMPOSITIONS)
    assert not [node for node in plain.graph.nodes if "profiler" in str(node.target)]
    torch.testing.assert_close(plain.module()(IDS), network(IDS), rtol=1e-6, atol=1e-6)

"""Weights from files and from seeds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import diffusers
import pytest
import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import CLIPTextModel, Gemma2Config, Gemma2Model

from exporters.networks import Networks
from exporters.pipeline import export
from exporters.weights import RandomWeights, StoredWeights, Weights, draw, stored_dtype, weights_of
from profiler.errors import InputError, ModelError
from tests.exporters.small_pipelines import save_pipeline, small_recipe, spec_of

UNET = "unet/diffusion_pytorch_model.safetensors"


def broken(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder)
    return folder


def test_stored_weights_are_mapped_in_their_own_type_and_filled_as_float32(tmp_path: Path) -> None:
    source = save_pipeline(tmp_path / "source")
    halves = {name: value.half() for name, value in load_file(source / UNET).items()}
    save_file(halves, source / UNET, metadata={"format": "pt"})
    networks = Networks(source)
    unet = networks.module("unet")
    assert {weight.dtype for weight in unet.parameters()} == {torch.float16}
    networks.fill(unet)
    for name, weight in unet.named_parameters():
        assert torch.equal(weight, halves[name].float())


def test_deferred_layers_read_their_weights_when_they_run(tmp_path: Path) -> None:
    source = save_pipeline(tmp_path / "source")
    whole, lazy = Networks(source), Networks(source)
    whole.fill(whole.module("text_encoder"))
    lazy.defer(lazy.module("text_encoder"))
    ids = torch.arange(8)[None]
    assert torch.equal(whole.module("text_encoder")(ids)[0], lazy.module("text_encoder")(ids)[0])
    assert not [layer for layer in lazy.module("text_encoder").modules() if "weight" in layer._parameters
                and isinstance(layer, nn.Linear | nn.Embedding)]  # fmt: skip


def test_a_seed_draws_the_same_weights_whatever_was_drawn_before(generate_source: Path) -> None:
    first, second = (Networks(generate_source, RandomWeights(3)) for _ in range(2))
    second.fill(second.module("vae"))
    for networks in (first, second):
        networks.fill(networks.module("unet"))
    ours, theirs = (dict(networks.module("unet").named_parameters()) for networks in (first, second))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    other = Networks(generate_source, RandomWeights(4))
    other.fill(other.module("unet"))
    assert not torch.equal(other.module("unet").get_parameter("conv_in.weight"), ours["conv_in.weight"])


def test_norms_pass_on_what_they_are_given_and_matrices_keep_its_size() -> None:
    assert draw("n.weight", nn.LayerNorm(8), (8,), 0).tolist() == [1.0] * 8
    assert draw("n.bias", nn.LayerNorm(8), (8,), 0).tolist() == [0.0] * 8

    class Gemma2RMSNorm(nn.Module):
        pass

    assert draw("n.weight", Gemma2RMSNorm(), (8,), 0).tolist() == [0.0] * 8
    weight = draw("l.weight", nn.Linear(400, 300), (300, 400), 0)
    assert weight.std().item() == pytest.approx(1 / 20, rel=0.02)


@pytest.mark.slow
def test_a_bundle_of_random_weights_says_so(generate_source: Path, tmp_path: Path) -> None:
    first, second = (
        export(spec_of(generate_source), small_recipe(), tmp_path / name, weights="random:5") for name in ("a", "b")
    )
    assert first.source.weights_sha256 == "random:5"
    assert first.files == second.files


def test_truncated_weights_are_named_with_what_to_do(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    (folder / UNET).write_bytes((folder / UNET).read_bytes()[:-100])
    with pytest.raises(InputError, match=r"is no whole safetensors file") as caught:
        Networks(folder).module("unet")
    assert "Download it again" in str(caught.value)


def test_an_unknown_type_is_named(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    weights = load_file(folder / UNET)
    weights["conv_in.weight"] = weights["conv_in.weight"].to(torch.float8_e4m3fn)
    save_file(weights, folder / UNET, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"weight conv_in\.weight is F8_E4M3; F32, F16 and BF16 are known"):
        stored_dtype(folder / "unet")


def test_missing_weights_are_named_and_never_made_up(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    weights = load_file(folder / UNET)
    del weights["conv_out.bias"]
    save_file(weights, folder / UNET, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"cannot load the UNet2DConditionModel .*conv_out\.bias"):
        Networks(folder).module("unet")


def test_a_configuration_of_another_size_is_named(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    path = folder / "unet" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "cross_attention_dim": 48}))
    with pytest.raises(InputError, match="cannot load the UNet2DConditionModel"):
        Networks(folder).module("unet")


def test_a_tokenizer_that_is_not_there_is_named(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    shutil.rmtree(folder / "tokenizer")
    with pytest.raises(InputError, match=r"cannot load the CLIPTokenizer in .*tokenizer: no such folder"):
        Networks(folder).setting("tokenizer")


def test_names_choose_the_source() -> None:
    assert isinstance(weights_of(""), StoredWeights)
    chosen = weights_of("random:7")
    assert isinstance(chosen, RandomWeights)
    assert chosen.seed == 7


def test_empty_networks_take_no_memory_but_their_buffers(generate_source: Path) -> None:
    networks = Networks(generate_source, RandomWeights(0))
    encoder, unet = networks.module("text_encoder"), networks.module("unet")
    assert isinstance(encoder, CLIPTextModel)
    assert isinstance(unet, UNet2DConditionModel)
    assert all(weight.is_meta for network in (encoder, unet) for weight in network.parameters())
    assert not any(buffer.is_meta for network in (encoder, unet) for buffer in network.buffers())


@pytest.mark.parametrize("weights", [StoredWeights(), RandomWeights(0)], ids=["stored", "random"])
def test_a_network_that_is_kept_in_bfloat16_computes_its_buffers_in_float32(tmp_path: Path, weights: Weights) -> None:
    sizes = {"hidden_size": 40, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = Gemma2Config(vocab_size=32, num_hidden_layers=1, head_dim=8, **sizes)
    Gemma2Model(config).bfloat16().save_pretrained(tmp_path / "text_encoder")
    (tmp_path / "model_index.json").write_text(json.dumps({"text_encoder": ["transformers", "Gemma2Model"]}))
    buffers = dict(Networks(tmp_path, weights).module("text_encoder").named_buffers())
    assert {buffer.dtype for buffer in buffers.values()} == {torch.float32}
    assert buffers["embed_tokens.embed_scale"] == torch.tensor(40.0).sqrt()


class Standardized(diffusers.ModelMixin, diffusers.ConfigMixin):  # type: ignore[misc]  # neither is typed
    """A network with a buffer that its file holds."""

    config_name = "config.json"

    @diffusers.configuration_utils.register_to_config
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("mean", torch.zeros(width))


def test_a_buffer_that_is_stored_in_halves_keeps_its_values(tmp_path: Path) -> None:
    saved = Standardized()
    saved.mean.copy_(torch.tensor([0.1, -2.0, 3.0]))
    saved.bfloat16().save_pretrained(tmp_path)
    opened = StoredWeights().open(tmp_path, Standardized, {})
    assert opened.mean.dtype == torch.float32
    assert torch.equal(opened.mean, saved.mean.float())


def test_weights_of_whole_numbers_are_refused_and_positions_are_not(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    weights = load_file(folder / UNET)
    save_file({**weights, "positions": torch.arange(4)}, folder / UNET, metadata={"format": "pt"})
    assert stored_dtype(folder / "unet") == torch.float32
    weights["conv_in.weight"] = weights["conv_in.weight"].to(torch.int8)
    save_file(weights, folder / UNET, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"weight conv_in\.weight is I8"):
        Networks(folder).module("unet")


def test_a_text_encoder_of_another_size_names_a_weight_and_both_shapes(generate_source: Path, tmp_path: Path) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    path = folder / "text_encoder" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "vocab_size": 500}))
    with pytest.raises(InputError, match=r"token_embedding\.weight \(\[516, 32\], not \[500, 32\]\)"):
        Networks(folder).module("text_encoder")


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("stored", [torch.float32, torch.float16])
def test_undefined_weights_are_named_when_they_are_read(
    generate_source: Path, tmp_path: Path, value: float, stored: torch.dtype
) -> None:
    folder = broken(generate_source, tmp_path / "broken")
    weights = {name: weight.to(stored) for name, weight in load_file(folder / UNET).items()}
    weights["conv_in.weight"].view(-1)[5] = value
    save_file(weights, folder / UNET, metadata={"format": "pt"})
    networks = Networks(folder)
    with pytest.raises(ModelError, match=r"weight unet\.conv_in\.weight holds NaN or infinity"):
        networks.fill(networks.module("unet"))

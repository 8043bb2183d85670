"""Stable Diffusion pipelines taken apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionInstructPix2PixPipeline
from PIL import Image

from exporters.families import stable_diffusion as family
from exporters.networks import Networks
from profiler.errors import InputError
from tests.exporters.small_pipelines import SIDE, edited, save_pipeline, small_recipe


def test_a_generation_pipeline_has_no_image_encoder(generate_source: Path) -> None:
    model = family.load(Networks(generate_source), small_recipe())
    assert list(model.parts) == ["text_encoder", "denoiser", "decoder"]
    assert model.tasks == ("generate",)
    assert not model.constants


def test_an_edit_pipeline_edits_and_generates(edit_source: Path) -> None:
    model = family.load(Networks(edit_source), small_recipe())
    assert set(model.parts) == {"text_encoder", "denoiser", "decoder", "image_encoder"}
    assert model.tasks == ("generate", "edit")
    assert set(model.constants) == {"blank_latents", "zero_latents"}


def test_boundaries_are_float32_and_int32(edit_source: Path) -> None:
    model = family.load(Networks(edit_source), small_recipe())
    for part in model.parts.values():
        for graph in part.graphs.values():
            assert {value.dtype for value in graph.inputs.values()} <= {torch.float32, torch.int32}
            assert {value.dtype for value in graph.run()} == {torch.float32}


@pytest.mark.parametrize("tiny", [True, False], ids=["AutoencoderTiny", "AutoencoderKL"])
def test_the_image_encoder_is_the_stock_pipelines_and_unscaled(tmp_path: Path, tiny: bool) -> None:
    folder = save_pipeline(tmp_path / "edit", "edit", tiny_autoencoder=tiny)
    stock = StableDiffusionInstructPix2PixPipeline.from_pretrained(folder, safety_checker=None)
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    image = stock.image_processor.preprocess(Image.fromarray(pixels))
    with torch.no_grad():
        expected = stock.prepare_image_latents(image, 1, 1, torch.float32, "cpu", False)
        module = family.load(Networks(folder), small_recipe()).parts["image_encoder"].graphs["encode"].module
        found = module(torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32)))
    torch.testing.assert_close(found, expected)


def test_parameters_of_the_two_halves_are_counted_apart(edit_source: Path) -> None:
    model = family.load(Networks(edit_source), small_recipe())
    stock = StableDiffusionInstructPix2PixPipeline.from_pretrained(edit_source, safety_checker=None)
    total = sum(weight.numel() for weight in stock.vae.parameters())
    assert model.parts["image_encoder"].parameters + model.parts["decoder"].parameters == total


def test_another_pipeline_class_is_refused_by_name(generate_source: Path, tmp_path: Path) -> None:
    folder = edited(
        generate_source,
        tmp_path / "other",
        "model_index.json",
        lambda index: index.update(_class_name="StableDiffusionXLPipeline"),
    )
    with pytest.raises(InputError, match="StableDiffusionXLPipeline; supported are StableDiffusionPipeline, "):
        family.load(Networks(folder), small_recipe())


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a diffusers pipeline"):
        family.load(Networks(tmp_path), small_recipe())


def test_code_from_elsewhere_is_never_loaded(generate_source: Path, tmp_path: Path) -> None:
    folder = edited(
        generate_source, tmp_path / "remote", "model_index.json", lambda index: index.update(unet=["my_unet", "MyUNet"])
    )
    with pytest.raises(InputError, match="unet comes from 'my_unet'"):
        family.load(Networks(folder), small_recipe())


def test_a_text_encoder_with_an_attention_mask_is_refused(generate_source: Path, tmp_path: Path) -> None:
    folder = edited(
        generate_source,
        tmp_path / "masked",
        "text_encoder/config.json",
        lambda config: config.update(use_attention_mask=True),
    )
    with pytest.raises(InputError, match="use_attention_mask"):
        family.load(Networks(folder), small_recipe())


def test_a_unet_with_a_guidance_embedding_is_refused(generate_source: Path, tmp_path: Path) -> None:
    folder = edited(
        generate_source, tmp_path / "lcm", "unet/config.json", lambda config: config.update(time_cond_proj_dim=8)
    )
    with pytest.raises(InputError):
        family.load(Networks(folder), small_recipe())


def test_broken_weights_are_an_input_error(generate_source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(generate_source, folder)
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(InputError, match="no whole safetensors file"):
        family.load(Networks(folder), small_recipe())


def test_a_size_that_the_autoencoder_cannot_make_is_refused(generate_source: Path) -> None:
    with pytest.raises(InputError, match="30×32 is not a multiple of 8"):
        family.load(Networks(generate_source), small_recipe(height=30))


def test_the_same_seed_builds_the_same_pipeline(tmp_path: Path) -> None:
    first, second = (save_pipeline(tmp_path / name, seed=4) for name in ("first", "second"))
    weights = "unet/diffusion_pytorch_model.safetensors"
    assert (first / weights).read_bytes() == (second / weights).read_bytes()


def test_a_broken_index_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{")
    with pytest.raises(InputError, match="not a JSON file"):
        family.load(Networks(tmp_path), small_recipe())


def test_prompts_longer_than_the_text_encoder_takes_are_refused(generate_source: Path, tmp_path: Path) -> None:
    folder = edited(
        generate_source,
        tmp_path / "long",
        "tokenizer/tokenizer_config.json",
        lambda config: config.update(model_max_length=77),
    )
    with pytest.raises(InputError, match="pads to 77 tokens, the text encoder takes 12"):
        family.load(Networks(folder), small_recipe())

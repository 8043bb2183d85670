"""Qwen3-VL's towers as graphs, against transformers' own model."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from exporters.families.qwen3_vl_graphs import LanguageModel, RmsNorm, TokenEmbedding, VisionEncoder
from exporters.verify import difference
from tests.exporters.small_dreamlite import DEEP, IMAGE_TOKENS, SIDE, build_pipeline

LENGTH = 160
# float32 in another order; measured were 4e-7 to 3e-6.
CLOSE = 2e-5


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return build_pipeline("mobile")


def off(found: torch.Tensor, expected: torch.Tensor) -> float:
    return difference(found.detach().numpy(), expected.detach().numpy()).relative


def padded(ids: torch.Tensor) -> torch.Tensor:
    """Pad token ids [1, n] with arbitrary ones: whatever padding is, nothing may see it."""
    after = torch.arange(LENGTH - ids.shape[1])[None] % 200
    return torch.cat([ids, after], dim=1).to(torch.int32)


def test_a_text_alone_is_encoded_as_the_model_does(pipeline: Any) -> None:
    model = pipeline.text_encoder
    ids = pipeline.tokenizer("a red cat on a blue chair, seen from far away", return_tensors="pt").input_ids
    embedded = TokenEmbedding(model.model.language_model.embed_tokens)(padded(ids))
    positions = torch.arange(LENGTH, dtype=torch.int32).repeat(3, 1)
    nothing = torch.zeros(DEEP, IMAGE_TOKENS, embedded.shape[2])
    found = LanguageModel(model.model.language_model, LENGTH, 3)(embedded, positions, nothing)
    with torch.no_grad():
        expected = model(input_ids=ids, output_hidden_states=True).hidden_states[-1]
    assert off(found[:, : ids.shape[1]], expected) < CLOSE


def test_a_text_with_a_picture_is_encoded_as_the_model_does(pipeline: Any) -> None:
    model, processor = pipeline.text_encoder, pipeline.processor
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    picture = pipeline.image_processor.resize(Image.fromarray(pixels), height=512, width=512)
    taken = processor(text=["see <|image_pad|> this: make it red"], images=[picture], return_tensors="pt")
    start = int((taken["input_ids"][0] == processor.image_token_id).nonzero()[0, 0])
    source = torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32))
    settings = processor.image_processor
    vision = VisionEncoder(
        model.model.visual, (SIDE, SIDE), 512, settings.rescale_factor, settings.image_mean, settings.image_std
    )
    vision.settle()
    with torch.no_grad():
        expected = model(**taken, output_hidden_states=True)
        features = model.get_image_features(taken["pixel_values"], taken["image_grid_thw"], return_dict=True)
        positions, _ = model.model.get_rope_index(
            padded(taken["input_ids"]),
            torch.nn.functional.pad(taken["mm_token_type_ids"], (0, LENGTH - taken["input_ids"].shape[1])),
            taken["image_grid_thw"],
        )
        image_embeds, visual = vision(source)
        embedded = model.model.language_model.embed_tokens(padded(taken["input_ids"]))
        embedded[:, start : start + IMAGE_TOKENS] = image_embeds
        found = LanguageModel(model.model.language_model, LENGTH, start)(embedded, positions[:, 0].int(), visual)
    assert off(image_embeds, features.pooler_output[0]) < CLOSE
    assert off(visual, torch.stack([each[0] for each in features.deepstack_features])) < CLOSE
    count = taken["input_ids"].shape[1]
    assert off(found[:, :count], expected.hidden_states[-1]) < CLOSE


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_norm_is_the_models(pipeline: Any, scale: float) -> None:
    norm = pipeline.text_encoder.model.language_model.norm
    states = torch.randn(1, 7, norm.weight.numel(), generator=torch.Generator().manual_seed(0)) * scale
    torch.testing.assert_close(RmsNorm(norm)(states), norm(states), rtol=1e-5, atol=1e-6)
    assert not RmsNorm(norm)(states * 0).any()


@torch.no_grad()
def test_the_norm_survives_half_precision_where_the_models_does_not(pipeline: Any) -> None:
    norm = pipeline.text_encoder.model.language_model.norm
    states = torch.randn(1, 7, norm.weight.numel(), generator=torch.Generator().manual_seed(0))
    states[..., 3] *= 2e4  # one feature far above all others, as Qwen3 has
    narrow = copy.deepcopy(RmsNorm(norm)).half()
    torch.testing.assert_close(narrow(states.half()).float(), norm(states), rtol=1e-2, atol=1e-2)
    assert not torch.isfinite(states.half().square()).all()

"""Qwen3-VL's towers as graphs, against transformers' own model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from exporters.families.qwen3_vl_graphs import LanguageModel, TokenEmbedding, VisionEncoder, rms_norm
from tests.exporters.small_dreamlite import DEEP, IMAGE_TOKENS, SIDE, build_pipeline

LENGTH = 160


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return build_pipeline("mobile")


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
    torch.testing.assert_close(found[:, : ids.shape[1]], expected, rtol=1e-4, atol=1e-5)


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
    torch.testing.assert_close(image_embeds, features.pooler_output[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        visual, torch.stack([each[0] for each in features.deepstack_features]), rtol=1e-4, atol=1e-5
    )
    count = taken["input_ids"].shape[1]
    torch.testing.assert_close(found[:, :count], expected.hidden_states[-1], rtol=1e-4, atol=1e-5)


def test_the_norm_is_the_models(pipeline: Any) -> None:
    norm = pipeline.text_encoder.model.language_model.norm
    for scale in (1e-3, 1.0, 1e4):
        states = torch.randn(1, 7, norm.weight.numel()) * scale
        torch.testing.assert_close(rms_norm(states, norm), norm(states), rtol=1e-5, atol=1e-6)
    assert torch.equal(rms_norm(torch.zeros(1, 1, 64), norm), torch.zeros(1, 1, 64))

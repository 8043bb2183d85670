"""DreamLite's components: modules over a pipeline's networks, whose weights need not be there yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from exporters.families.dreamlite_graphs import Denoiser, NoPicture, ShiftedDecoder, WithPicture
from exporters.families.qwen3_vl_graphs import LanguageModel, TokenEmbedding, VisionEncoder
from exporters.families.stable_diffusion_graphs import ImageEncoder
from exporters.parts import Filler, Graph, Part

# What the pipelines bring a picture to before the text encoder sees it.
PICTURE_SIDE = 512


class Layout(NamedTuple):
    """The shapes that all components agree on, and where image tokens are in an edit's template.

    `image` and `latents` are [C, H, W]; `position_ids` are an edit's, int32 [3, L].
    """

    image: tuple[int, int, int]
    latents: tuple[int, int, int]
    length: int
    image_start: int
    image_tokens: int
    hidden: int
    position_ids: Tensor


class _Settling:
    """Fills the vision tower, then lets it settle on its picture's size."""

    def __init__(self, filler: Filler, encoder: VisionEncoder) -> None:
        self._filler, self._encoder = filler, encoder

    @property
    def random(self) -> bool:
        """Tell whether weights are drawn from a seed."""
        return self._filler.random

    def fill(self, *modules: nn.Module) -> None:
        """Read weights as float32."""
        self._filler.fill(*modules)
        self._encoder.settle()

    def defer(self, *modules: nn.Module) -> None:
        """Read the small ones, and those that settling needs."""
        self._filler.defer(*modules)
        self._encoder.settle()


def parts_of(pipeline: Any, layout: Layout, filler: Filler) -> dict[str, Part]:
    """Return the components by name."""
    return {
        part.name: part for part in (*_text_parts(pipeline, layout, filler), *_image_parts(pipeline, layout, filler))
    }


def _text_parts(pipeline: Any, layout: Layout, filler: Filler) -> Iterator[Part]:
    towers = pipeline.text_encoder.model
    width = towers.config.text_config.hidden_size
    features = len(towers.visual.deepstack_visual_indexes)
    embeddings, picture = _normal(1, layout.length, width), _normal(layout.image_tokens, width)
    visual = _normal(features, layout.image_tokens, width)

    ids = torch.arange(layout.length, dtype=torch.int32)[None] % towers.config.text_config.vocab_size
    embed = _graph(TokenEmbedding(towers.language_model.embed_tokens), {"input_ids": ids}, "inputs_embeds")
    yield Part(name="token_embedding", graphs={"embed": embed}, encodes_text=True, filler=filler)

    seen = {"inputs_embeds": embeddings, "position_ids": layout.position_ids, "visual": visual}
    language = LanguageModel(towers.language_model, layout.length, layout.image_start)
    encode = _graph(language, seen, "text_states")
    yield Part(name="text_encoder", graphs={"encode": encode}, encodes_text=True, filler=filler)

    merged = {"inputs_embeds": embeddings, "image_embeds": picture}
    text_only = _graph(NoPicture(features, layout.image_tokens), {"inputs_embeds": embeddings}, "visual")
    with_image = _graph(WithPicture(layout.image_start), merged, "merged")
    yield Part(name="compose", graphs={"text_only": text_only, "with_image": with_image})

    vision = _vision(towers.visual, pipeline.processor.image_processor, layout)
    look = _graph(vision, {"source_image": _picture(layout)}, "image_embeds", "visual")
    yield Part(name="vision_encoder", graphs={"encode": look}, encodes_text=True, filler=_Settling(filler, vision))


def _vision(tower: Any, settings: Any, layout: Layout) -> VisionEncoder:
    return VisionEncoder(
        tower,
        layout.image[1:],
        PICTURE_SIDE,
        settings.rescale_factor if settings.do_rescale else 1.0,
        settings.image_mean if settings.do_normalize else [0.0] * 3,
        settings.image_std if settings.do_normalize else [1.0] * 3,
    )


def _image_parts(pipeline: Any, layout: Layout, filler: Filler) -> Iterator[Part]:
    latents, shape = _normal(1, *layout.latents), layout.latents
    seen = {"latents": latents, "timestep": torch.tensor([500.0]), "source_latents": _normal(1, *shape) * 0.5}
    width = pipeline.text_encoder.model.config.text_config.hidden_size
    mask = (torch.arange(layout.length, dtype=torch.int32)[None] >= layout.hidden).to(torch.int32)
    text = {"text_states": _normal(1, layout.length, width), "text_mask": mask}
    unet = _graph(Denoiser(pipeline.unet, *layout.image[1:]), {**seen, **text}, "prediction")
    yield Part(name="denoiser", graphs={"predict": unet}, filler=filler)
    encode = _graph(ImageEncoder(pipeline.vae), {"source_image": _picture(layout)}, "source_latents")
    yield Part(name="image_encoder", graphs={"encode": encode}, filler=filler)
    decode = _graph(ShiftedDecoder(pipeline.vae), {"latents": latents}, "image")
    yield Part(name="decoder", graphs={"decode": decode}, filler=filler)


def _graph(module: nn.Module, inputs: dict[str, Tensor], *outputs: str) -> Graph:
    return Graph(module=module.eval(), inputs=inputs, outputs=outputs)


def _picture(layout: Layout) -> Tensor:
    return _normal(1, *layout.image).mul(64).add(128).clamp(0, 255).round()


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))

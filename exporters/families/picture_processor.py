"""Qwen3-VL's processor for texts and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import Qwen2VLImageProcessorPil, Qwen3VLProcessor


class PictureProcessor(Qwen3VLProcessor):  # type: ignore[misc]
    """Qwen3-VL's processor without its part for videos, which alone needs torchvision."""

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        super().__init__(image_processor, tokenizer)


def load_processor(folder: Path, tokenizer: Any) -> PictureProcessor:
    """Read the picture settings in a pipeline's processor folder."""
    return PictureProcessor(Qwen2VLImageProcessorPil.from_pretrained(folder, local_files_only=True), tokenizer)

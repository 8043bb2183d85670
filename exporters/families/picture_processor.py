"""Qwen3-VL's processor for texts and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import Qwen2VLImageProcessorPil, Qwen3VLProcessor

from exporters.networks import LOAD_ERRORS
from profiler.errors import InputError, first_line


class PictureProcessor(Qwen3VLProcessor):  # type: ignore[misc]
    """Qwen3-VL's processor without its part for videos, which alone needs torchvision."""

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        super().__init__(image_processor, tokenizer)


def load_processor(folder: Path, tokenizer: Any) -> PictureProcessor:
    """Read the picture settings in a pipeline's processor folder. Raises InputError."""
    try:
        settings = Qwen2VLImageProcessorPil.from_pretrained(folder, local_files_only=True)
    except LOAD_ERRORS as error:
        raise InputError(f"cannot load the picture processor in {folder}: {first_line(error)}") from error
    return PictureProcessor(settings, tokenizer)

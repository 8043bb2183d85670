"""Sheet: a contact sheet of held-out prompts and edits, for the eye that rules cannot replace."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw
from diffusers import StableDiffusionInstructPix2PixPipeline

from scripts.nano.drawing import Image, blank_image, draw
from scripts.nano.referee import judge_edit, judge_sentence
from scripts.nano.sampling import load_pipeline, sample_images
from scripts.nano.score import EDIT, GENERATE, sample_edit_cases, sample_prompts

ZOOM, COLUMNS, CAPTION = 2, 6, 44
Cell = tuple[list[Image], str, bool]


def _wrap(text: str, width: int = 38) -> str:
    lines = [""]
    for word in text.split():
        lines = [*lines, word] if len(lines[-1]) + len(word) > width else [*lines[:-1], f"{lines[-1]} {word}".strip()]
    return "\n".join(lines)


def _paint_cell(cell: Cell) -> PIL.Image.Image:
    images, text, right = cell
    strip = PIL.Image.fromarray(np.concatenate(images, axis=1))
    strip = strip.resize((strip.width * ZOOM, strip.height * ZOOM), PIL.Image.Resampling.NEAREST)
    tile = PIL.Image.new("RGB", (64 * 2 * ZOOM + 8, strip.height + CAPTION), "white")
    tile.paste(strip, (0, 0))
    PIL.ImageDraw.Draw(tile).text((2, strip.height + 2), _wrap(text), fill="black" if right else "red")
    return tile


def _generations(pipeline: StableDiffusionInstructPix2PixPipeline, seed: int, count: int) -> list[Cell]:
    cases = [case for figures in (1, 2) for case in sample_prompts(seed, count, figures, "held_out")]
    sentences = [sentence for _, sentence in cases]
    texts = [sentence.text for sentence in sentences]
    images = sample_images(pipeline, texts, [blank_image()] * len(texts), GENERATE, seed)
    return [([image], s.text, judge_sentence(s, image).right) for image, s in zip(images, sentences, strict=True)]


def _edits(pipeline: StableDiffusionInstructPix2PixPipeline, seed: int, per_op: int) -> list[Cell]:
    cases = sample_edit_cases(seed, per_op, "held_out")
    sources = [draw(edit.source) for edit, _ in cases]
    images = sample_images(pipeline, [s.text for _, s in cases], sources, EDIT, seed)
    judged = [judge_edit(edit, s, image).right for (edit, s), image in zip(cases, images, strict=True)]
    return [([a, b], s.text, ok) for a, b, (_, s), ok in zip(sources, images, cases, judged, strict=True)]


def paint_sheet(folder: Path, seed: int) -> PIL.Image.Image:
    """Paint samples with their sentences; those that the judge finds wrong are captioned in red."""
    pipeline = load_pipeline(folder)
    tiles = [_paint_cell(cell) for cell in (*_generations(pipeline, seed, 12), *_edits(pipeline, seed, 6))]
    width, height = tiles[0].size
    rows = -(-len(tiles) // COLUMNS)
    sheet = PIL.Image.new("RGB", (COLUMNS * width, rows * height), "white")
    for index, tile in enumerate(tiles):
        sheet.paste(tile, (index % COLUMNS * width, index // COLUMNS * height))
    return sheet


def main() -> None:
    """Write the sheet to a file."""
    parser = argparse.ArgumentParser(prog="python -m scripts.nano.sheet", description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("exporters/models/nano"))
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    paint_sheet(arguments.folder, arguments.seed).save(arguments.output)


if __name__ == "__main__":
    main()

"""Train: one command that runs the seeded stages in order, resuming from their checkpoints, and exports the result."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import torch

from scripts.nano.autoencoder import AutoencoderStage, DecoderStage
from scripts.nano.checkpoint import load_modules
from scripts.nano.diffusion import DiffusionStage
from scripts.nano.export import assemble_pipeline, export_pipeline
from scripts.nano.networks import Reader, build_autoencoder, build_text_encoder, build_unet
from scripts.nano.pool import load_pool
from scripts.nano.reading import CLASS_COUNTS, SLOT_COUNT, ReadingStage
from scripts.nano.stages import Settings, run_stage
from scripts.nano.tokens import build_tokenizer

AUTOENCODER = Settings(steps=3500, batch=16, learning_rate=1.2e-3)
DECODER = Settings(steps=1000, batch=16, learning_rate=6e-4)
TEXT = Settings(steps=2500, batch=64, learning_rate=1e-3)
DIFFUSION = Settings(
    steps=26_000, restarts=(5500, 9300, 14_300), batch=32, learning_rate=7e-4, ema_decay=0.999, checkpoint_every=250
)
POOL_SCENES, POOL_EDITS = 24_000, 36_000
FOLDER = Path("exporters/models/nano")


def train_autoencoder(work: Path, settings: Settings) -> None:
    """Train the autoencoder stage."""
    torch.manual_seed(settings.seed)
    run_stage(AutoencoderStage(build_autoencoder(), settings), work / "autoencoder.safetensors")


def train_decoder(work: Path, settings: Settings) -> None:
    """Train the decoder stage on top of the autoencoder's checkpoint."""
    autoencoder = build_autoencoder()
    load_modules(work / "autoencoder.safetensors", {"autoencoder": autoencoder})
    run_stage(DecoderStage(autoencoder, settings), work / "decoder.safetensors")


def train_text(work: Path, settings: Settings) -> None:
    """Train the reading stage."""
    torch.manual_seed(settings.seed)
    tokenizer = build_tokenizer()
    stage = ReadingStage(tokenizer, build_text_encoder(tokenizer), Reader(SLOT_COUNT, CLASS_COUNTS), settings)
    run_stage(stage, work / "text.safetensors")


def train_diffusion(work: Path, settings: Settings, scene_count: int, edit_count: int) -> None:
    """Train the diffusion stage on top of the two others' checkpoints."""
    torch.manual_seed(settings.seed)
    tokenizer = build_tokenizer()
    autoencoder, encoder, unet = build_autoencoder(), build_text_encoder(tokenizer), build_unet()
    reader = Reader(SLOT_COUNT, CLASS_COUNTS)
    load_modules(work / "autoencoder.safetensors", {"autoencoder": autoencoder})
    load_modules(work / "text.safetensors", {"text_encoder": encoder, "reader": reader})
    pool = load_pool(work / "pool.safetensors", autoencoder.eval(), settings.seed, scene_count, edit_count)
    stage = DiffusionStage(tokenizer, encoder, reader, unet, pool, settings)
    run_stage(stage, work / "diffusion.safetensors")


def _run(stage: str, work: Path, folder: Path) -> None:
    commands: dict[str, Callable[[], None]] = {
        "autoencoder": lambda: train_autoencoder(work, AUTOENCODER),
        "decoder": lambda: train_decoder(work, DECODER),
        "text": lambda: train_text(work, TEXT),
        "diffusion": lambda: train_diffusion(work, DIFFUSION, POOL_SCENES, POOL_EDITS),
        "export": lambda: export_pipeline(assemble_pipeline(work), folder),
    }
    for name in commands if stage == "all" else (stage,):
        commands[name]()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.nano.train", description=__doc__)
    parser.add_argument("stage", choices=("autoencoder", "decoder", "text", "diffusion", "export", "all"))
    parser.add_argument("--work", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder the model is exported to")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Run the chosen stage, or all of them."""
    arguments = _parse()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(arguments.threads)
    _run(arguments.stage, arguments.work, arguments.folder)


if __name__ == "__main__":
    main()

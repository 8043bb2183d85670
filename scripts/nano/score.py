"""Score: attributes right on held-out prompts and edits through the stock pipeline, to scores.json and the card."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean
from typing import Any

import diffusers
import numpy as np
import torch
from diffusers import StableDiffusionInstructPix2PixPipeline

from scripts.nano.card import write_card
from scripts.nano.checkpoint import read_progress
from scripts.nano.drawing import Image, blank_image, draw
from scripts.nano.edits import EDIT_OPS, Edit, sample_edit
from scripts.nano.judge import Finding, compare, look, mention_all
from scripts.nano.language import Sentence, describe_edit, describe_scene
from scripts.nano.networks import count_parameters
from scripts.nano.referee import EditFinding, judge_edit, judge_sentence
from scripts.nano.sampling import Sampling, load_pipeline, sample_images
from scripts.nano.scenes import Scene, Split, sample_scene

log = logging.getLogger(__name__)

Json = dict[str, Any]
GENERATE = Sampling(steps=8, text_guidance=3.0, image_guidance=1.0)
EDIT = Sampling(steps=8, text_guidance=3.0, image_guidance=1.0)
STAGES = ("autoencoder", "decoder", "text", "diffusion")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is scored."""

    seed: int
    prompts: int
    edits_per_op: int
    split: Split
    generate: Sampling
    edit: Sampling


def rate(hits: list[bool]) -> Json:
    """Give a share with its count and Wilson's 95 % interval (Wilson, 1927)."""
    n, share = len(hits), fmean(hits) if hits else 0.0
    if not n:
        return {"share": None, "n": 0, "interval_95": None}
    z = NormalDist().inv_cdf(0.975)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return {
        "share": round(share, 4),
        "n": n,
        "interval_95": [round(max(0.0, middle - reach), 4), round(min(1.0, middle + reach), 4)],
    }


def rate_findings(findings: list[Finding]) -> Json:
    """Give the share of images with everything right, and the share right per kind of attribute where it was asked."""
    kinds = ("count", "shape", "colour", "size", "place", "background")
    values = {kind: [getattr(finding, kind) for finding in findings] for kind in kinds}
    asked = {kind: [value for value in found if value is not None] for kind, found in values.items()}
    return {"right": rate([f.right for f in findings]), "per_attribute": {k: rate(v) for k, v in asked.items()}}


def sample_prompts(seed: int, count: int, figures: int, split: Split) -> list[tuple[Scene, Sentence]]:
    """Draw scenes of one split and a prompt for each."""
    rng = Random(f"{seed}/score/{figures}")
    scenes = [sample_scene(rng, figures, split) for _ in range(count)]
    return [(scene, describe_scene(rng, scene)) for scene in scenes]


def score_prompts(pipeline: StableDiffusionInstructPix2PixPipeline, plan: Plan, figures: int) -> Json:
    """Score generation on prompts of so many figures."""
    cases = sample_prompts(plan.seed, plan.prompts, figures, plan.split)
    texts = [sentence.text for _, sentence in cases]
    images = sample_images(pipeline, texts, [blank_image()] * len(texts), plan.generate, plan.seed + figures * 100_000)
    sentences = [sentence for _, sentence in cases]
    findings = [judge_sentence(s, image) for s, image in zip(sentences, images, strict=True)]
    full = [f for f, s in zip(findings, sentences, strict=True) if s.background and _names_all(s)]
    return {**rate_findings(findings), "right_where_all_is_named": rate([finding.right for finding in full])}


def _names_all(sentence: Sentence) -> bool:
    return all(None not in vars(mention).values() for mention in sentence.mentions)


def sample_edit_cases(seed: int, per_op: int, split: Split) -> list[tuple[Edit, Sentence]]:
    """Draw edits of one split and an instruction for each, every kind equally often."""
    rng = Random(f"{seed}/score/edits")
    edits = [sample_edit(rng, op, split) for op in EDIT_OPS for _ in range(per_op)]
    return [(edit, describe_edit(rng, edit)) for edit in edits]


def _rate_edits(findings: list[EditFinding]) -> Json:
    errors = [f.unchanged_error for f in findings if f.unchanged_error == f.unchanged_error]
    return {
        "right": rate([finding.right for finding in findings]),
        "done": rate([finding.done for finding in findings]),
        "preserved": rate([finding.preserved for finding in findings]),
        "unchanged_error_levels_mean": round(fmean(errors), 2) if errors else None,
    }


def _rate_by_op(cases: list[tuple[Edit, Sentence]], images: list[Image]) -> Json:
    findings = [judge_edit(edit, sentence, image) for (edit, sentence), image in zip(cases, images, strict=True)]
    ops = [edit.op for edit, _ in cases]
    by_op = {op: [f for f, is_ in zip(findings, ops, strict=True) if is_ == op] for op in EDIT_OPS}
    return {**_rate_edits(findings), "per_op": {op: _rate_edits(found) for op, found in by_op.items()}}


def score_edits(pipeline: StableDiffusionInstructPix2PixPipeline, plan: Plan) -> Json:
    """Score editing, beside what returning the source unchanged would score."""
    cases = sample_edit_cases(plan.seed, plan.edits_per_op, plan.split)
    sources = [draw(edit.source) for edit, _ in cases]
    images = sample_images(pipeline, [s.text for _, s in cases], sources, plan.edit, plan.seed + 900_000)
    return {**_rate_by_op(cases, images), "right_if_source_is_returned": _rate_by_op(cases, sources)["right"]}


@torch.no_grad()
def score_autoencoder(pipeline: StableDiffusionInstructPix2PixPipeline, plan: Plan) -> Json:
    """Score held-out scenes after encoding and decoding: the ceiling of everything else."""
    rng = Random(f"{plan.seed}/score/autoencoder")
    scenes = [sample_scene(rng, 1 + index % 2, plan.split) for index in range(plan.prompts)]
    truth = np.stack([draw(scene) for scene in scenes])
    inputs = pipeline.image_processor.preprocess(list(truth.astype(np.float32) / 255))
    outputs = pipeline.vae.decode(pipeline.vae.encode(inputs).latents).sample
    images = (pipeline.image_processor.postprocess(outputs, output_type="np") * 255).round().astype(np.uint8)
    mentions = [tuple(mention_all(figure) for figure in scene.figures) for scene in scenes]
    findings = [compare(look(i), m, s.background) for i, m, s in zip(images, mentions, scenes, strict=True)]
    error = float(np.abs(images.astype(float) - truth).mean())
    return {"right": rate([finding.right for finding in findings]), "error_levels_mean": round(error, 2)}


def score(folder: Path, plan: Plan) -> Json:
    """Score an exported folder."""
    pipeline = load_pipeline(folder)
    parts: dict[str, Callable[[], Json]] = {
        "autoencoder": lambda: score_autoencoder(pipeline, plan),
        "generate_one_figure": lambda: score_prompts(pipeline, plan, 1),
        "generate_two_figures": lambda: score_prompts(pipeline, plan, 2),
        "edit": lambda: score_edits(pipeline, plan),
    }
    scores: Json = {}
    for name, part in parts.items():
        scores[name] = part()
        log.info("%s %s", name, json.dumps(scores[name]["right"]))
    return {
        "schema_version": 1,
        "plan": {**vars(plan), "generate": vars(plan.generate), "edit": vars(plan.edit)},
        "scores": scores,
        "parameters": {name: count_parameters(getattr(pipeline, name)) for name in ("text_encoder", "unet", "vae")},
        "vocabulary": len(pipeline.tokenizer),
        "flow_shift": pipeline.scheduler.config.flow_shift,
        "versions": {"torch": torch.__version__, "diffusers": diffusers.__version__},
    }


def training_record(work: Path) -> Json:
    """Read steps and wall time of each stage from its checkpoint."""
    progress = {name: read_progress(work / f"{name}.safetensors") for name in STAGES}
    return {name: {"steps": p.step, "train_seconds": round(p.train_seconds)} for name, p in progress.items()}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.nano.score", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("exporters/models/nano"))
    parser.add_argument("--work", type=Path, required=True, help="folder of the training checkpoints")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--prompts", type=int, default=500, help="number of prompts per figure count")
    parser.add_argument("--edits-per-op", type=int, default=60)
    parser.add_argument("--split", choices=("train", "held_out"), default="held_out")
    parser.add_argument("--text-guidance", type=float, default=GENERATE.text_guidance)
    parser.add_argument("--edit-text-guidance", type=float, default=EDIT.text_guidance)
    parser.add_argument("--edit-image-guidance", type=float, default=EDIT.image_guidance)
    parser.add_argument("--print-only", action="store_true", help="for tuning: print the scores, write nothing")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _plan_of(arguments: argparse.Namespace) -> Plan:
    return Plan(
        seed=arguments.seed,
        prompts=arguments.prompts,
        edits_per_op=arguments.edits_per_op,
        split=arguments.split,
        generate=Sampling(steps=8, text_guidance=arguments.text_guidance, image_guidance=1.0),
        edit=Sampling(
            steps=8, text_guidance=arguments.edit_text_guidance, image_guidance=arguments.edit_image_guidance
        ),
    )


def main() -> None:
    """Score the folder and write the scores and the card into it, or only print them."""
    arguments = _parse()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(arguments.threads)
    result = score(arguments.folder, _plan_of(arguments))
    result["training"] = training_record(arguments.work)
    if arguments.print_only:
        print(json.dumps(result["scores"]))
        return
    (arguments.folder / "scores.json").write_text(json.dumps(result, indent=2) + "\n")
    write_card(arguments.folder, result, result["vocabulary"])


if __name__ == "__main__":
    main()

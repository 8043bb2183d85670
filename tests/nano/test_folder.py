"""The shipped folder: small, safe, loadable by the stock pipeline, able to do what its card claims."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")
tokenizers = pytest.importorskip("tokenizers")

from scripts.nano.card import folder_bytes, render_card  # noqa: E402
from scripts.nano.networks import count_parameters  # noqa: E402
from scripts.nano.sampling import Sampling, load_pipeline  # noqa: E402
from scripts.nano.score import Plan, score_edits, score_prompts  # noqa: E402

FOLDER = Path(__file__).parents[2] / "exporters/models/nano"


@cache
def pipeline() -> Any:
    return load_pipeline(FOLDER)


def stored() -> dict[str, Any]:
    scores: dict[str, Any] = json.loads((FOLDER / "scores.json").read_text())
    return scores


def small_plan() -> Plan:
    """Score a little, with the samplings that the card's scores were measured with."""
    plan = stored()["plan"]
    return Plan(
        seed=1,
        prompts=20,
        edits_per_op=3,
        split="held_out",
        generate=Sampling(**plan["generate"]),
        edit=Sampling(**plan["edit"]),
    )


def test_it_is_small_and_holds_nothing_that_could_run_code() -> None:
    suffixes = {path.suffix for path in FOLDER.rglob("*") if path.is_file()}
    assert suffixes == {".safetensors", ".json", ".txt", ".md"}
    assert folder_bytes(FOLDER) <= 12_000_000


def test_its_index_names_the_stock_pipeline_and_no_safety_checker() -> None:
    index = json.loads((FOLDER / "model_index.json").read_text())
    assert index["_class_name"] == "StableDiffusionInstructPix2PixPipeline"
    assert index["safety_checker"] == index["feature_extractor"] == [None, None]
    assert index["requires_safety_checker"] is False


def test_its_standalone_tokenizer_gives_the_pipelines_ids() -> None:
    standalone = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer/tokenizer.json"))
    for text in ("", "a large red star at the top left on a white background", "Größe 你好!", "word " * 50):
        ids = pipeline().tokenizer(text, padding="max_length", max_length=32, truncation=True).input_ids
        assert standalone.encode(text).ids == ids


def test_its_card_is_rendered_from_its_scores() -> None:
    result = stored()
    card = (FOLDER / "README.md").read_text()
    rendered = render_card(result, folder_bytes(FOLDER), result["vocabulary"])
    without_size = [line for line in rendered.splitlines() if " MB " not in line]
    assert [line for line in card.splitlines() if " MB " not in line] == without_size


def test_its_scores_count_its_own_parameters() -> None:
    counted = {name: count_parameters(getattr(pipeline(), name)) for name in ("text_encoder", "unet", "vae")}
    assert stored()["parameters"] == counted


def claimed(part: str) -> float:
    """Allow a small sample to fall short of the card by chance."""
    share: float = stored()["scores"][part]["right"]["share"]
    return share - 0.3


def test_it_draws_about_as_well_as_its_card_claims() -> None:
    assert score_prompts(pipeline(), small_plan(), 1)["right"]["share"] >= claimed("generate_one_figure")


def test_it_edits_about_as_well_as_its_card_claims() -> None:
    assert score_edits(pipeline(), small_plan())["right"]["share"] >= claimed("edit")

"""Training: every stage runs, resumes exactly, and the export loads into the stock pipeline."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from scripts.nano import networks, train  # noqa: E402
from scripts.nano.autoencoder import AutoencoderStage, to_tensor  # noqa: E402
from scripts.nano.checkpoint import read_progress  # noqa: E402
from scripts.nano.diffusion import drop_conditions, sample_times  # noqa: E402
from scripts.nano.drawing import blank_image  # noqa: E402
from scripts.nano.export import assemble_pipeline, export_pipeline  # noqa: E402
from scripts.nano.language import Mention, Sentence  # noqa: E402
from scripts.nano.reading import CLASS_COUNTS, FIELDS, SLOT_COUNT, meaning_of  # noqa: E402
from scripts.nano.sampling import Sampling, load_pipeline, sample_images  # noqa: E402
from scripts.nano.stages import Settings, draw_for, learning_rate_at, run_stage  # noqa: E402

TINY = Settings(steps=2, batch=2, learning_rate=1e-3, checkpoint_every=1, log_every=1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train all stages for two steps and export, in one work folder."""
    work = tmp_path_factory.mktemp("nano")
    train.train_autoencoder(work, TINY)
    train.train_decoder(work, TINY)
    train.train_text(work, TINY)
    train.train_diffusion(work, TINY, scene_count=4, edit_count=6)
    export_pipeline(assemble_pipeline(work), work / "folder")
    return work


def test_every_stage_reaches_its_last_step(trained: Path) -> None:
    names = ("autoencoder", "decoder", "text", "diffusion")
    assert [read_progress(trained / f"{name}.safetensors").step for name in names] == [2, 2, 2, 2]


def test_the_export_is_small_and_holds_safetensors_only(trained: Path) -> None:
    files = [path for path in (trained / "folder").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 12_000_000
    assert {path.suffix for path in files} == {".safetensors", ".json", ".txt"}


def test_the_stock_pipeline_samples_from_the_export_the_same_image_twice(trained: Path) -> None:
    pipeline = load_pipeline(trained / "folder")
    sampling = Sampling(steps=2, text_guidance=3.0, image_guidance=1.0)
    first, second = (sample_images(pipeline, ["a red star"], [blank_image()], sampling, seed=5) for _ in range(2))
    assert first[0].shape == (64, 64, 3)
    assert (first[0] == second[0]).all()


def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path: Path) -> None:
    def final_weights(path: Path, *steps_per_run: int) -> Any:
        for steps in steps_per_run:
            torch.manual_seed(0)
            autoencoder = networks.build_autoencoder(width=8)
            # The schedule must not depend on where the run is broken: no decay.
            settings = Settings(steps=steps, batch=2, learning_rate=1e-3, decay_share=0.0, warmup_steps=1)
            stage = AutoencoderStage(autoencoder, settings)
            stage.normalise_at = 3
            run_stage(stage, path)
        return torch.cat([parameter.detach().flatten() for parameter in autoencoder.parameters()])

    unbroken = final_weights(tmp_path / "unbroken.safetensors", 4)
    resumed = final_weights(tmp_path / "resumed.safetensors", 2, 4)
    assert torch.equal(unbroken, resumed)


def test_a_step_draws_the_same_whenever_it_is_run() -> None:
    first, second = draw_for(0, "text", 7), draw_for(0, "text", 7)
    assert first.rng.random() == second.rng.random()
    assert draw_for(0, "text", 8).rng.random() != first.rng.random()


def test_the_learning_rate_warms_up_stays_and_decays() -> None:
    settings = Settings(steps=1000, batch=1, learning_rate=1.0)
    rates = [learning_rate_at(settings, step) for step in (0, 99, 500, 850, 999)]
    assert rates == pytest.approx([0.01, 1.0, 1.0, 0.5, 0.02])


def test_a_restarted_learning_rate_decays_twice() -> None:
    settings = Settings(steps=3000, restarts=(1000,), batch=1, learning_rate=1.0)
    rates = [learning_rate_at(settings, step) for step in (500, 999, 1000, 2000, 2999)]
    assert rates == pytest.approx([1.0, 0.02, 0.01, 1.0, 0.02])


def test_noise_levels_lie_in_zero_to_one_and_reach_both_ends() -> None:
    times = sample_times(4000, torch.Generator().manual_seed(0), mean=0.0)
    assert 0 <= times.min() < 0.02
    assert 0.98 < times.max() <= 1


def test_dropping_conditions_keeps_the_blank_apart_from_nothing() -> None:
    texts, sources = drop_conditions(Random(0), ["a star"] * 2000, torch.ones(2000, 1))
    empty = torch.tensor([text == "" for text in texts])
    zeros = sources[:, 0] == 0
    assert 0.12 < empty.float().mean() < 0.18
    assert 0.03 < (empty & zeros).float().mean() < 0.07
    assert 0 < (~empty & zeros).float().mean() < 0.04


def test_a_meaning_puts_figures_at_their_places_and_the_rest_in_order() -> None:
    sentence = Sentence(text="", op="generate", mentions=(Mention(shape="star", place="top"), Mention(shape="cross")))
    slots = meaning_of(sentence)
    assert slots.shape == (SLOT_COUNT, len(CLASS_COUNTS))
    assert slots[1, 0] == 1 + FIELDS["shape"].index("star")
    assert slots[9, 0] == 1 + FIELDS["shape"].index("cross")
    assert slots[-1, 5] == 1 + FIELDS["op"].index("generate")
    assert int((slots > 0).sum()) == 4


def test_images_become_tensors_of_minus_one_to_one() -> None:
    assert to_tensor([blank_image()]).mean().item() == pytest.approx(127 / 127.5 - 1)

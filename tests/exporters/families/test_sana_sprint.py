"""SANA-Sprint pipelines taken apart, beside the pipeline itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import SanaSprintPipeline
from torch import Tensor

from exporters.architectures import write_configs
from exporters.families import sana_sprint as family
from exporters.networks import Networks
from exporters.parts import Model, ReferenceInputs
from exporters.prompts import write_tokenizer
from exporters.weights import RandomWeights
from profiler import catalog
from profiler.errors import InputError
from profiler.prompts import encode
from profiler.records.spec import TaskDefaults
from tests.exporters.small_pipelines import edited, small_recipe
from tests.exporters.small_sana import SIDE, SLIDING_WINDOW, build_gemma_tokenizer, save_sana

PROMPT = "  A Red square, ünïcode 猫 "


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sana(tmp_path_factory.mktemp("source") / "sana")


@pytest.fixture(scope="module")
def model(source: Path) -> Model:
    return family.load(Networks(source), small_recipe())


@pytest.fixture(scope="module")
def stock(source: Path) -> Any:
    pipeline = SanaSprintPipeline.from_pretrained(source, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


@pytest.fixture(scope="module")
def words(model: Model, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensor, Tensor]:
    """Encode the prompt as a job does."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    write_tokenizer(model.tokenizer, model.prompt_length, path)
    found = encode(path, model.prompts["generate"], PROMPT)
    return torch.from_numpy(found.ids), torch.from_numpy(found.mask)


def run(model: Model, part: str, *inputs: Tensor) -> tuple[Tensor, ...]:
    (graph,) = model.parts[part].graphs.values()
    with torch.no_grad():
        found = graph.module(*inputs)
    return found if isinstance(found, tuple) else (found,)


def settings(**options: Any) -> TaskDefaults:
    return TaskDefaults(**{"prompt": PROMPT, "steps": 2, "text_guidance": 4.5, "seed": 0, **options})


def stock_states(stock: Any) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        states, mask = stock.encode_prompt(PROMPT, complex_human_instruction=family.INSTRUCTION.split("\n"))
    return states, mask


def test_boundaries_are_float32_and_int32(model: Model) -> None:
    assert list(model.parts) == ["text_encoder", "denoiser", "decoder"]
    for part in model.parts.values():
        for graph in part.graphs.values():
            assert {value.dtype for value in graph.inputs.values()} <= {torch.float32, torch.int32}
            assert {value.dtype for value in graph.run()} == {torch.float32}


def test_tokens_are_the_pipelines_with_its_instruction_and_the_prompt_in_small_letters(
    stock: Any, words: tuple[Tensor, Tensor]
) -> None:
    (text,) = stock._text_preprocessing(PROMPT)
    stock_states(stock)  # only then does the pipeline's tokenizer pad on the right
    expected = stock.tokenizer(
        family.INSTRUCTION + text, padding="max_length", max_length=words[0].shape[1], truncation=True
    )
    assert words[0].tolist() == [expected.input_ids]
    assert words[1].tolist() == [expected.attention_mask]
    assert 0 < words[1].sum() < words[1].shape[1]


def test_states_of_the_prompt_are_the_pipelines_though_no_padding_was_masked(
    model: Model, stock: Any, words: tuple[Tensor, Tensor]
) -> None:
    expected, mask = stock_states(stock)
    states, found_mask = run(model, "text_encoder", *words)
    assert states.shape == expected.shape == (1, family.TEXT_LENGTH, 64)
    assert torch.equal(found_mask, mask.float())
    torch.testing.assert_close(states[mask.bool()], expected[mask.bool()])
    assert words[1].sum() > SLIDING_WINDOW  # so that half of the layers do not see all of it


def test_states_of_padding_reach_no_prediction(model: Model, words: tuple[Tensor, Tensor]) -> None:
    states, mask = run(model, "text_encoder", *words)
    others = torch.where(mask.bool()[..., None], states, states.flip(1) * 3)
    latents, timestep, _, _, guidance = (model.parts["denoiser"].graphs["predict"].inputs[name] for name in _PORTS)
    found = [run(model, "denoiser", latents, timestep, given, mask, guidance)[0] for given in (states, others)]
    assert torch.equal(*found)
    assert not torch.equal(found[0], run(model, "denoiser", latents, timestep, states * 2, mask, guidance)[0])


_PORTS = ("latents", "timestep", "text_states", "text_mask", "guidance")


def test_the_decoder_is_the_pipelines_and_ends_in_255(model: Model, stock: Any) -> None:
    latents = torch.randn(1, *model.latents, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        decoded = stock.vae.decode(latents / stock.vae.config.scaling_factor, return_dict=False)[0]
        expected = stock.image_processor.postprocess(decoded, output_type="pt") * 255
    torch.testing.assert_close(run(model, "decoder", latents)[0], expected)
    assert sum(each.numel() for each in stock.vae.decoder.parameters()) == model.parts["decoder"].parameters


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_the_loop_is_the_pipelines(model: Model, stock: Any, words: tuple[Tensor, Tensor], steps: int) -> None:
    noise = torch.randn(1, *model.latents, generator=torch.Generator().manual_seed(1))
    expected = stock(
        PROMPT,
        num_inference_steps=steps,
        intermediate_timesteps=1.3 if steps == 2 else None,
        guidance_scale=3.0,
        height=SIDE,
        width=SIDE,
        use_resolution_binning=False,
        latents=noise,
        generator=torch.Generator().manual_seed(2),
        output_type="latent",
    ).images
    states, mask = run(model, "text_encoder", *words)
    scheduler, random = model.schedulers(steps), torch.Generator().manual_seed(2)
    (guidance,) = model.condition("generate", settings(text_guidance=3.0)).constants.values()
    latents = noise * scheduler.init_noise_sigma
    for timestep in scheduler.timesteps:
        seen = scheduler.scale_model_input(latents, timestep)
        (output,) = run(model, "denoiser", seen, timestep[None], states, mask, torch.tensor(guidance.values))
        (latents,) = scheduler.step(output, timestep, latents, generator=random)
    torch.testing.assert_close(latents, expected)


def test_the_reference_notes_what_the_scheduler_drew(model: Model) -> None:
    noise = np.random.default_rng(0).standard_normal((1, *model.latents), dtype=np.float32)
    found = model.run_reference(ReferenceInputs(task="generate", settings=settings(), noise=noise, source_image=None))
    assert found.image.shape == (1, 3, SIDE, SIDE)
    assert found.image.std() > 10
    assert found.step_noise.shape == (2, *model.latents)
    assert found.step_noise.std(axis=(1, 2, 3)) == pytest.approx([1, 1], abs=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"negative_prompt": "blur"}, "negative prompt"), ({"image_guidance": 1.5}, "sees no source image")],
)
def test_what_the_pipeline_does_not_have_is_refused(model: Model, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.condition("generate", settings(**options))


def test_the_registered_models_parts_are_as_large_as_published(tmp_path: Path) -> None:
    write_configs(catalog.model("sana-sprint-0.6b"), tmp_path)
    build_gemma_tokenizer().save_pretrained(tmp_path / "tokenizer")
    model = family.load(Networks(tmp_path, RandomWeights(0)), small_recipe(height=1024, width=1024))
    assert {name: part.parameters for name, part in model.parts.items()} == {
        "text_encoder": 2_614_341_888,
        "denoiser": 593_501_216,
        "decoder": 159_223_171,
    }
    assert model.latents == (32, 32, 32)


def test_a_size_that_the_autoencoder_cannot_make_is_refused(source: Path) -> None:
    with pytest.raises(InputError, match="30×32 is not a multiple of 4"):
        family.load(Networks(source), small_recipe(height=30))


def test_a_transformer_without_embedded_guidance_is_refused(tmp_path: Path) -> None:
    folder = save_sana(tmp_path / "sana", guidance_embeds=False)
    with pytest.raises(InputError, match="without guidance_embeds"):
        family.load(Networks(folder), small_recipe())


def test_another_scheduler_is_refused_by_name(source: Path, tmp_path: Path) -> None:
    def change(index: dict[str, Any]) -> None:
        index["scheduler"] = ["diffusers", "DPMSolverMultistepScheduler"]

    folder = edited(source, tmp_path / "other", "model_index.json", change)
    with pytest.raises(InputError, match="scheduler is a DPMSolverMultistepScheduler; supported is SCMScheduler"):
        family.load(Networks(folder), small_recipe())


def test_prompts_longer_than_the_text_encoder_takes_are_refused(source: Path, tmp_path: Path) -> None:
    folder = edited(
        source, tmp_path / "short", "text_encoder/config.json", lambda config: config.update(max_position_embeddings=77)
    )
    with pytest.raises(InputError, match="tokens, the text encoder takes 77"):
        family.load(Networks(folder), small_recipe())


def test_another_pipeline_is_refused(source: Path, tmp_path: Path) -> None:
    folder = edited(
        source, tmp_path / "pag", "model_index.json", lambda index: index.update(_class_name="SanaPipeline")
    )
    with pytest.raises(InputError, match="holds a SanaPipeline; supported are SanaSprintPipeline"):
        family.load(Networks(folder), small_recipe())

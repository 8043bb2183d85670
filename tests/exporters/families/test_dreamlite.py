"""DreamLite pipelines taken apart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from exporters.architectures import write_configs
from exporters.default_inputs import draw_test_picture
from exporters.families import dreamlite as family
from exporters.families.dreamlite_conditioning import edit_branches, generate_branches
from exporters.networks import Networks
from exporters.parts import Model, ReferenceInputs
from exporters.prompts import write_tokenizer
from exporters.schedules import tabulate
from exporters.verify import difference
from exporters.weights import RandomWeights
from profiler import catalog
from profiler.errors import InputError
from profiler.prompts import Encoded, encode
from profiler.records.plan import Constant, Guidance
from profiler.records.recipe import recipe_of
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults
from tests.exporters.rescheduled import changed
from tests.exporters.small_dreamlite import IMAGE_TOKENS, SIDE, Kind, build_tokenizer, image_processor, save_pipeline
from tests.exporters.small_pipelines import edited

EDIT = TaskDefaults(prompt="a hat", steps=3, text_guidance=2.5, image_guidance=1.4, negative_prompt="blue", seed=4)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Path]:
    root = tmp_path_factory.mktemp("dreamlite")
    return {"base": save_pipeline(root / "base", "base"), "mobile": save_pipeline(root / "mobile", "mobile")}


@pytest.fixture(scope="module")
def base(sources: dict[Kind, Path]) -> Model:
    return loaded(sources["base"])


@pytest.fixture(scope="module")
def mobile(sources: dict[Kind, Path]) -> Model:
    return loaded(sources["mobile"])


def loaded(folder: Path, side: int = SIDE) -> Model:
    model = family.load(Networks(folder), recipe_of(side, side))
    for part in model.parts.values():
        part.fill(recipe_of(side, side))
    return model


def pipeline_of(model: Model) -> Any:
    """Return the stock pipeline behind a model's reference."""
    return model.run_reference.args[0]  # type: ignore[attr-defined]


def test_a_pipeline_has_its_towers_apart_and_arithmetic_between_them(mobile: Model) -> None:
    weighted = {name for name, part in mobile.parts.items() if part.parameters}
    assert set(mobile.parts) - weighted == {"compose"}
    assert weighted == {
        *("token_embedding", "text_encoder", "vision_encoder", "denoiser", "image_encoder", "decoder"),
    }
    assert {name for name, part in mobile.parts.items() if part.encodes_text} == {
        *("token_embedding", "text_encoder", "vision_encoder"),
    }
    assert mobile.tasks == ("generate", "edit")


def test_boundaries_are_float32_and_int32_of_few_axes(mobile: Model) -> None:
    for part in mobile.parts.values():
        for graph in part.graphs.values():
            results = graph.run()
            assert {value.dtype for value in graph.inputs.values()} <= {torch.float32, torch.int32}
            assert {value.dtype for value in results} == {torch.float32}
            assert len(results) == len(graph.outputs)
            assert max(value.dim() for value in (*graph.inputs.values(), *results)) <= 5


def test_weights_are_counted_once_and_nothing_but_the_head_is_left_out(mobile: Model) -> None:
    pipeline = pipeline_of(mobile)
    towers = pipeline.text_encoder.model
    count = sum(weight.numel() for weight in towers.language_model.parameters())
    assert mobile.parts["token_embedding"].parameters + mobile.parts["text_encoder"].parameters == count
    unet = sum(weight.numel() for weight in pipeline.unet.parameters())
    assert mobile.parts["denoiser"].parameters == unet
    vae = sum(weight.numel() for weight in pipeline.vae.parameters())
    assert mobile.parts["image_encoder"].parameters + mobile.parts["decoder"].parameters == vae


def test_the_registered_models_parts_are_as_large_as_published(tmp_path: Path) -> None:
    write_configs(catalog.model("dreamlite"), tmp_path)
    build_tokenizer().save_pretrained(tmp_path / "tokenizer")
    image_processor(16).save_pretrained(tmp_path / "processor")
    model = family.load(Networks(tmp_path, RandomWeights(0)), recipe_of(1024, 1024))
    assert {name: part.parameters for name, part in model.parts.items()} == {
        "token_embedding": 311_164_928,
        "text_encoder": 1_409_410_048,
        "compose": 0,
        "vision_encoder": 406_957_056,
        "denoiser": 389_968_388,
        "image_encoder": 1_222_532,
        "decoder": 1_222_531,
    }
    assert model.latents == (4, 128, 128)
    assert model.parts["text_encoder"].graphs["encode"].inputs["visual"].shape == (3, 256, 2048)


def words(model: Model, folder: Path, task: Task, prompt: str, *, negative: bool = False) -> Encoded:
    path = folder / "tokenizer.json"
    write_tokenizer(model.tokenizer, model.prompt_length, path)
    return encode(path, model.prompts[task], prompt, negative=negative)


@pytest.mark.parametrize("negative", [False, True], ids=["prompt", "negative"])
def test_a_prompt_becomes_the_tokens_that_the_pipeline_encodes(base: Model, tmp_path: Path, negative: bool) -> None:
    seen = asked_of(pipeline_of(base), "a red cat", "blue", None)
    found = words(base, tmp_path, "generate", "blue" if negative else "a red cat", negative=negative)
    count = int(seen["attention_mask"][0 if negative else -1].sum())
    assert found.ids[0, :count].tolist() == seen["input_ids"][0 if negative else -1, :count].tolist()
    assert found.mask.sum() == count - 34
    assert not found.mask[0, :34].any()


def test_an_edits_prompt_has_its_picture_expanded_as_the_pipeline_does(base: Model, tmp_path: Path) -> None:
    picture = Image.fromarray(draw_test_picture(SIDE, SIDE))
    seen = asked_of(pipeline_of(base), "a hat", "blue", picture)
    for row, (prompt, negative) in enumerate([("blue", True), ("blue", True), ("a hat", False)]):
        found = words(base, tmp_path, "edit", prompt, negative=negative)
        count = int(seen["attention_mask"][row].sum())
        assert found.ids[0, :count].tolist() == seen["input_ids"][row, :count].tolist()
        assert found.mask.sum() == count - 64
    assert int((found.ids == pipeline_of(base).processor.image_token_id).sum()) == IMAGE_TOKENS


def asked_of(pipeline: Any, prompt: str, negative: str, picture: Any) -> dict[str, Any]:
    """Return what the pipeline's text encoder is called with."""
    told: dict[str, Any] = {}
    handle = pipeline.text_encoder.register_forward_pre_hook(
        lambda module, args, kwargs: told.update(kwargs), with_kwargs=True
    )
    try:
        pipeline(prompt, negative, picture, SIDE, SIDE, num_inference_steps=1, output_type="latent")
    finally:
        handle.remove()
    return told


def test_a_long_prompt_is_cut_where_the_pipeline_cuts_it(base: Model, tmp_path: Path) -> None:
    prompt = "zq" * 300
    seen = asked_of(pipeline_of(base), prompt, "", None)["input_ids"][-1]
    found = words(base, tmp_path, "generate", prompt)
    assert len(seen) == 234
    assert found.ids[0, :234].tolist() == seen.tolist()
    assert found.mask.sum() == 200
    assert found.dropped > 0


def test_an_instruction_that_does_not_fit_is_refused(base: Model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too long: the model takes 448"):
        words(base, tmp_path, "edit", "zq" * 300)


def test_positions_are_the_models_own(base: Model) -> None:
    pipeline = pipeline_of(base)
    picture = Image.fromarray(draw_test_picture(SIDE, SIDE))
    seen = asked_of(pipeline, "a hat", "", picture)
    expected, _ = pipeline.text_encoder.model.get_rope_index(
        seen["input_ids"], seen["mm_token_type_ids"], seen["image_grid_thw"], attention_mask=seen["attention_mask"]
    )
    found = positions(base.condition("edit", EDIT).constants["position_ids"])
    count = int(seen["attention_mask"][-1].sum())
    assert found[:, :count].tolist() == expected[:, -1, :count].tolist()
    alone = positions(base.condition("generate", changed(EDIT, image_guidance=None)).constants["position_ids"])
    assert alone.tolist() == [list(range(family.LENGTH))] * 3


def positions(constant: Constant) -> np.ndarray[Any, Any]:
    assert constant.dtype == "int32"
    return np.array(constant.values, dtype=np.int64).reshape(constant.shape)


def test_a_masked_text_is_to_the_denoiser_as_one_that_was_cut(mobile: Model) -> None:
    pipeline, denoiser = pipeline_of(mobile), mobile.parts["denoiser"].graphs["predict"]
    latents, timestep, source, states, _ = denoiser.inputs.values()
    mask = torch.zeros(1, family.LENGTH, dtype=torch.int32)
    mask[:, 34:60] = 1
    with torch.no_grad():
        found = denoiser.module(latents, timestep, source, states, mask)
        expected = pipeline.unet(
            torch.cat([latents, source], dim=3),
            timestep=timestep,
            encoder_hidden_states=states[:, 34:60],
            encoder_attention_mask=torch.ones(1, 26, dtype=torch.int64),
            added_cond_kwargs={"time_ids": torch.tensor([[SIDE, SIDE]], dtype=torch.float32)},
            return_dict=False,
        )[0]
    torch.testing.assert_close(found, expected[..., : latents.shape[3]], rtol=1e-4, atol=1e-5)


def test_the_picture_is_encoded_and_decoded_as_the_pipeline_does(mobile: Model) -> None:
    pipeline = pipeline_of(mobile)
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    image = pipeline.image_processor.preprocess(Image.fromarray(pixels), SIDE, SIDE)
    encoder, decoder = (mobile.parts[name].graphs for name in ("image_encoder", "decoder"))
    with torch.no_grad():
        latents = pipeline.prepare_image_latents(image, torch.float32, torch.device("cpu"))
        found = encoder["encode"].module(torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32)))
        torch.testing.assert_close(found, latents)
        config = pipeline.vae.config
        decoded = pipeline.vae.decode(latents / config.scaling_factor + config.shift_factor).sample
        expected = pipeline.image_processor.postprocess(decoded, output_type="pt") * 255
        torch.testing.assert_close(decoder["decode"].module(latents), expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("steps", [1, 4, 28])
def test_the_schedule_is_the_pipelines(mobile: Model, steps: int) -> None:
    pipeline = pipeline_of(mobile)
    pipeline("a", height=SIDE, width=SIDE, num_inference_steps=steps, output_type="latent")
    schedule = tabulate(mobile.scheduler, mobile.schedulers, [steps], ()).by_steps[steps]
    np.testing.assert_allclose(schedule.timesteps, pipeline.scheduler.timesteps.numpy(), rtol=1e-6)
    sigmas = pipeline.scheduler.sigmas.numpy()
    np.testing.assert_allclose(schedule.coefficients, np.stack([np.ones(steps), np.diff(sigmas)], 1), atol=1e-5)


def test_guidance_is_a_sum_of_predictions() -> None:
    found = {branch.name: branch.weight for branch in edit_branches(Guidance(text=3.5, image=1.5))}
    assert found == {"text": 3.5, "image": -2.0, "blank": -0.5}
    assert {branch.name: branch.weight for branch in generate_branches(Guidance(text=3.5))} == {
        "text": 3.5,
        "negative": -2.5,
    }


def test_what_weighs_nothing_is_not_predicted(base: Model) -> None:
    assert [branch.name for branch in edit_branches(Guidance(text=2.5))] == ["text", "image"]
    assert [branch.name for branch in edit_branches(Guidance(text=1.0, image=1.0))] == ["text"]
    assert [branch.name for branch in generate_branches(Guidance(text=1.0))] == ["text"]
    alone = base.condition("generate", changed(EDIT, text_guidance=1.0, image_guidance=None))
    assert [port.name for port in alone.inputs] == ["prompt_ids", "prompt_mask"]


def test_guidance_that_a_pipeline_does_not_know_is_refused(base: Model, mobile: Model) -> None:
    with pytest.raises(InputError, match="generation sees no source image"):
        base.condition("generate", EDIT)
    for settings in (changed(EDIT, image_guidance=1.0), changed(EDIT, text_guidance=1.0)):
        with pytest.raises(InputError, match="distilled to need none"):
            mobile.condition("edit", settings)
    assert len(mobile.condition("edit", changed(EDIT, text_guidance=1.0, image_guidance=1.0)).branches) == 1


def test_components_are_called_one_after_the_other(base: Model) -> None:
    order = [call.component for call in base.condition("edit", EDIT).calls]
    assert order == sorted(order, key=order.index)
    assert list(dict.fromkeys(order)) == [
        *("vision_encoder", "image_encoder", "token_embedding", "compose", "text_encoder"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "a red cat"},
        {"negative_prompt": "red"},
        {"text_guidance": 2.6},
        {"image_guidance": 1.5},
        {"steps": 4},
        {"seed": 5},
        {"picture": 1},
    ],
    ids=str,
)
def test_the_small_pipeline_shows_what_a_comparison_must_notice(base: Model, change: dict[str, Any]) -> None:
    before = reference(base, EDIT, 0)
    after = reference(
        base, changed(EDIT, **{k: v for k, v in change.items() if k != "picture"}), change.get("picture", 0)
    )
    assert difference(after, before).relative > 2e-3


def reference(model: Model, settings: TaskDefaults, shift: int) -> np.ndarray[Any, Any]:
    noise = np.random.default_rng(settings.seed).standard_normal((1, 4, SIDE // 8, SIDE // 8), dtype=np.float32)
    picture = np.roll(draw_test_picture(SIDE, SIDE), 9 * shift, axis=1)
    inputs = ReferenceInputs(task="edit", settings=settings, noise=noise, source_image=picture)
    return model.run_reference(inputs).image


def test_the_reference_leaves_the_pipeline_as_it_was(mobile: Model) -> None:
    pipeline = pipeline_of(mobile)
    reference(mobile, changed(EDIT, text_guidance=1.0, image_guidance=None), 0)
    assert "prepare_latents" not in vars(pipeline)
    assert "encode_prompt" not in vars(pipeline)


def test_another_pipeline_class_is_refused_by_name(sources: dict[Kind, Path], tmp_path: Path) -> None:
    folder = edited(
        sources["mobile"],
        tmp_path / "other",
        "model_index.json",
        lambda index: index.update(_class_name="FluxPipeline"),
    )
    with pytest.raises(InputError, match="FluxPipeline; supported are DreamLitePipeline and DreamLiteMobilePipeline"):
        family.defaults_of(folder)


def test_a_size_that_the_pipeline_would_round_is_refused(sources: dict[Kind, Path]) -> None:
    with pytest.raises(InputError, match="72×64 is not a multiple of 16"):
        family.load(Networks(sources["mobile"]), recipe_of(72, 64))


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("unet/config.json", {"in_channels": 8}, "takes 8 channels, its pipeline feeds 4"),
        ("processor/preprocessor_config.json", {"merge_size": 1}, "cuts other patches"),
        (
            "processor/preprocessor_config.json",
            {"size": {"shortest_edge": 65536, "longest_edge": 65536}},
            r"resizes pictures to \(256, 256\)",
        ),
    ],
    ids=["channels", "patches", "size"],
)
def test_a_pipeline_that_cannot_be_expressed_is_refused(
    sources: dict[Kind, Path], tmp_path: Path, file: str, change: dict[str, Any], message: str
) -> None:
    folder = edited(sources["mobile"], tmp_path / "odd", file, lambda config: config.update(change))
    with pytest.raises(InputError, match=message):
        family.load(Networks(folder, RandomWeights(0)), recipe_of(SIDE, SIDE))


def test_a_missing_processor_is_an_input_error(sources: dict[Kind, Path], tmp_path: Path) -> None:
    shutil.copytree(sources["mobile"], tmp_path / "half")
    shutil.rmtree(tmp_path / "half" / "processor")
    with pytest.raises(InputError, match="cannot load the picture processor in"):
        family.load(Networks(tmp_path / "half"), recipe_of(SIDE, SIDE))

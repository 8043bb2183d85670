from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from safetensors.numpy import load, save_file

from profiler import codec
from profiler.bundle_files import load_manifest, sha256_of
from profiler.errors import InputError, InvalidRecord, MissingSource
from profiler.inputs import JobInputs, Wishes, job_inputs, noise_for, plan_for, read_image, write_inputs
from profiler.records.plan import Plan, Schedules
from profiler.records.record import Task
from tests.records_for_tests import make_plan, port
from tests.small_bundle import MOST_STEPS, SIDE, STEPS, WORDS, build_small_bundle


def inputs_of(folder: Path, *, task: Task = "generate", **wishes: object) -> JobInputs:
    wished = Wishes(**wishes)  # type: ignore[arg-type]
    bundle = load_manifest(folder)
    return job_inputs(folder, bundle, plan_for(folder, bundle, task, wished.steps), wished)


def tensors_of(inputs: JobInputs) -> dict[str, npt.NDArray[np.generic]]:
    return load(inputs.data)


def changed(folder: Path, *, task: Task = "generate", **wishes: object) -> set[str]:
    """Return the tensors that differ from the bundle's own."""
    before = tensors_of(inputs_of(folder, task=task))
    after = tensors_of(inputs_of(folder, task=task, **wishes))
    assert before.keys() == after.keys()
    return {name for name in after if not np.array_equal(before[name], after[name])}


def save_picture(path: Path, side: int = 40, mode: str = "RGB") -> Path:
    picture = np.zeros((side, side, 3), np.uint8)
    picture[:, : side // 2] = (10, 200, 30)
    Image.fromarray(picture).convert(mode).save(path)
    return path


def test_without_wishes_the_inputs_are_the_bundles_own(small_bundle: Path) -> None:
    inputs = inputs_of(small_bundle)
    assert (inputs.prompt, inputs.negative_prompt, inputs.seed) == ("a red circle", "", 0)
    assert (inputs.source_image, inputs.source_png) == (None, None)
    assert set(tensors_of(inputs)) == {"prompt_ids", "noise"}


def test_the_same_wishes_give_the_same_bytes(small_bundle: Path) -> None:
    first, second = (inputs_of(small_bundle, prompt="a blue square", seed=7) for _ in range(2))
    assert first.data == second.data
    assert first.sha256 == second.sha256


def test_another_prompt_changes_the_token_ids_and_nothing_else(small_bundle: Path) -> None:
    assert changed(small_bundle, prompt="a blue square") == {"prompt_ids"}
    ids = tensors_of(inputs_of(small_bundle, prompt="blue zebra"))["prompt_ids"]
    assert ids.dtype == np.int32
    assert ids.tolist() == [[WORDS.index("blue"), WORDS.index("[UNK]"), 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("prompt", ["", "a " * 500, "[bold]red[/bold]", "日本語 🙂", "a\nred\tcircle"])
def test_any_words_fit_the_prompts_length(small_bundle: Path, prompt: str) -> None:
    inputs = inputs_of(small_bundle, prompt=prompt)
    assert inputs.prompt == prompt
    assert tensors_of(inputs)["prompt_ids"].shape == (1, 8)


def test_a_prompt_that_is_cut_is_said_to_be(small_bundle: Path) -> None:
    assert inputs_of(small_bundle, prompt="red").notes == ()
    (note,) = inputs_of(small_bundle, prompt="red " * 500).notes
    assert note.startswith("only the first ")


def test_a_prompt_that_is_no_text_is_refused(small_bundle: Path) -> None:
    with pytest.raises(InputError, match="not valid UTF-8"):
        inputs_of(small_bundle, prompt="a\udcff")


def test_another_seed_changes_the_noise_and_nothing_else(small_bundle: Path) -> None:
    assert changed(small_bundle, seed=1) == {"noise"}
    assert changed(small_bundle, seed=0) == set()


def test_noise_is_standard_normal_and_seeded() -> None:
    plan = make_plan(inputs=(port("noise", 1, 4, 64, 64),))
    noise = noise_for(plan, 3)["noise"]
    assert noise.dtype == np.float32
    assert abs(noise.mean()) < 0.05
    assert abs(noise.std() - 1) < 0.05
    assert np.array_equal(noise, noise_for(plan, 3)["noise"])
    assert not np.array_equal(noise, noise_for(plan, 4)["noise"])


def test_noise_of_each_step_is_drawn_after_the_first_and_does_not_change_it() -> None:
    one, many = make_plan(), make_plan(inputs=(*make_plan().inputs, port("step_noise", 3, 4, 8, 8)))
    assert np.array_equal(noise_for(one, 0)["noise"], noise_for(many, 0)["noise"])
    assert noise_for(many, 0)["step_noise"].shape == (3, 4, 8, 8)


@pytest.mark.parametrize("steps", [1, MOST_STEPS])
def test_a_plan_takes_the_schedule_of_another_step_count(small_bundle: Path, steps: int) -> None:
    bundle = load_manifest(small_bundle)
    plan = plan_for(small_bundle, bundle, "generate", steps)
    assert plan.steps == steps
    assert plan.constants["timesteps"].shape == (steps, 1)
    assert plan.body == plan_for(small_bundle, bundle, "generate", None).body


def test_the_plans_own_step_count_leaves_it_as_it_is(small_bundle: Path) -> None:
    bundle = load_manifest(small_bundle)
    own = plan_for(small_bundle, bundle, "generate", None)
    assert plan_for(small_bundle, bundle, "generate", STEPS) == own


@pytest.mark.parametrize("steps", [MOST_STEPS + 1, 1000])
def test_an_unknown_step_count_names_those_that_are_known(small_bundle: Path, steps: int) -> None:
    with pytest.raises(InputError, match=f"no schedule for {steps} steps") as caught:
        plan_for(small_bundle, load_manifest(small_bundle), "generate", steps)
    assert f"It has 1 to {MOST_STEPS} steps." in str(caught.value)


def test_known_step_counts_with_gaps_are_listed_one_by_one(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle")
    path = folder / "generate.schedules.json"
    schedules = codec.read(path, Schedules)
    few = {steps: schedules.constants_by_steps[steps] for steps in (1, 2, 4)}
    path.write_bytes(codec.encode(replace(schedules, constants_by_steps=few)))
    with pytest.raises(InputError, match="It has 1, 2, 4 steps"):
        plan_for(folder, load_manifest(folder), "generate", 3)


def test_step_noise_has_a_row_for_each_round_of_another_step_count(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle")
    path = folder / "generate.json"
    plan = codec.read(path, Plan)
    path.write_bytes(codec.encode(replace(plan, inputs=(*plan.inputs, port("step_noise", STEPS, 4, 4, 4)))))
    noise = tensors_of(inputs_of(folder, steps=6))["step_noise"]
    assert noise.shape == (6, 4, 4, 4)


def test_a_broken_plan_is_found_before_anything_starts(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle", fault="unknown_component")
    with pytest.raises(InvalidRecord, match="no component 'upscaler'"):
        plan_for(folder, load_manifest(folder), "generate", None)


def test_a_task_that_the_bundle_cannot_do_names_those_it_can(small_bundle: Path) -> None:
    bundle = load_manifest(small_bundle)
    generate_only = replace(bundle, tasks={"generate": bundle.tasks["generate"]})
    with pytest.raises(InputError, match="small cannot edit; it can generate"):
        plan_for(small_bundle, generate_only, "edit", None)


def test_an_edit_comes_with_the_bundles_own_picture(small_bundle: Path) -> None:
    inputs = inputs_of(small_bundle, task="edit")
    assert inputs.source_image == "the bundle's own"
    assert inputs.source_png is not None
    assert inputs.source_png.startswith(b"\x89PNG")


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK"])
def test_a_picture_of_any_mode_and_size_is_fitted_to_the_model(small_bundle: Path, tmp_path: Path, mode: str) -> None:
    path = save_picture(tmp_path / ("picture.tiff" if mode == "CMYK" else "picture.png"), mode=mode)
    inputs = inputs_of(small_bundle, task="edit", image=path)
    source = tensors_of(inputs)["source_image"]
    assert (source.shape, source.dtype) == ((1, 3, SIDE, SIDE), np.float32)
    assert 0 <= source.min() < source.max() <= 255
    assert inputs.source_image == path.name


def test_another_picture_changes_the_source_and_nothing_else(small_bundle: Path, tmp_path: Path) -> None:
    path = save_picture(tmp_path / "picture.png")
    assert changed(small_bundle, task="edit", image=path) == {"source_image"}


def test_a_picture_for_a_task_without_one_is_refused(small_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="takes no source image") as caught:
        inputs_of(small_bundle, image=save_picture(tmp_path / "picture.png"))
    assert "--task edit" in str(caught.value)


def test_a_picture_that_is_not_there_is_missing(small_bundle: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "none.png", tmp_path):
        with pytest.raises(MissingSource, match="no image at"):
            inputs_of(small_bundle, task="edit", image=path)


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"just words", b"\x89PNG\r\n\x1a\n" + b"\0" * 50])
def test_a_file_that_is_no_picture_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"picture\.png is not an image that can be read"):
        read_image(path, port("source_image", 1, 3, SIDE, SIDE))


def test_a_picture_cut_short_is_named(tmp_path: Path) -> None:
    path = save_picture(tmp_path / "picture.png", side=200)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match="is not an image that can be read"):
        read_image(path, port("source_image", 1, 3, SIDE, SIDE))


def test_a_picture_that_was_taken_on_its_side_is_turned_upright(tmp_path: Path) -> None:
    picture = Image.new("RGB", (40, 20))
    picture.paste((255, 255, 255), (0, 0, 20, 20))
    exif = picture.getexif()
    exif[0x0112] = 6  # the top row is the right side
    picture.save(tmp_path / "picture.png", exif=exif)
    source = read_image(tmp_path / "picture.png", port("source_image", 1, 3, 8, 8))
    assert (source[0, 0, :3] > 200).all()
    assert (source[0, 0, -3:] < 50).all()


def test_sixteen_bits_of_grey_keep_their_shades(tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), 40_000, np.uint16)).save(tmp_path / "picture.png")
    source = read_image(tmp_path / "picture.png", port("source_image", 1, 3, 8, 8))
    assert (source == 40_000 // 256).all()


def test_numbers_without_a_known_range_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), 0.5, np.float32)).save(tmp_path / "picture.tiff")
    with pytest.raises(InputError, match="without a known range"):
        read_image(tmp_path / "picture.tiff", port("source_image", 1, 3, 8, 8))


def test_a_picture_with_a_text_too_large_to_unpack_is_named(tmp_path: Path) -> None:
    about = PngInfo()
    about.add_text("comment", "a" * 5_000_000, zip=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "picture.png", pnginfo=about)
    with pytest.raises(InputError, match="is not an image that can be read"):
        read_image(tmp_path / "picture.png", port("source_image", 1, 3, 8, 8))


def test_a_plan_for_another_task_is_refused(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle")
    bundle = load_manifest(folder)
    tasks = {**bundle.tasks, "generate": replace(bundle.tasks["generate"], plan=bundle.tasks["edit"].plan)}
    with pytest.raises(InvalidRecord, match="says that it is for 'edit'"):
        plan_for(folder, replace(bundle, tasks=tasks), "generate", None)


def test_files_of_another_kind_are_named(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle")
    bundle = load_manifest(folder)
    (folder / bundle.tasks["generate"].defaults.path).write_bytes(b"{}" * 50)
    with pytest.raises(InvalidRecord, match="is no safetensors file"):
        inputs_of(folder)
    (folder / bundle.prompt_encoding.tokenizer).write_text("{}")
    with pytest.raises(InvalidRecord, match="is no tokenizer"):
        inputs_of(folder, task="edit", prompt="a blue square")


def test_a_bundle_that_lacks_an_input_of_its_plan_says_which(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle")
    save_file({"prompt_ids": np.zeros((1, 8), np.int32)}, folder / "generate.safetensors")
    with pytest.raises(InputError, match=r"'noise' must be float32\[1, 4, 4, 4\], the bundle gives nothing"):
        inputs_of(folder)


def test_an_input_of_another_shape_says_both(tmp_path: Path) -> None:
    folder = build_small_bundle(tmp_path / "bundle")
    shutil.copyfile(folder / "edit.safetensors", folder / "generate.safetensors")
    wrong = {"prompt_ids": np.zeros((1, 9), np.int32), "noise": np.zeros((1, 4, 4, 4), np.float32)}
    save_file(wrong, folder / "generate.safetensors")
    with pytest.raises(InputError, match=r"int32\[1, 8\], the bundle gives int32\[1, 9\]"):
        inputs_of(folder)


def test_inputs_are_written_as_the_file_that_the_job_names(small_bundle: Path, tmp_path: Path) -> None:
    inputs = inputs_of(small_bundle)
    file = write_inputs(inputs, tmp_path / "inputs.safetensors")
    assert file.path == "inputs.safetensors"
    assert file.sha256 == inputs.sha256 == sha256_of(tmp_path / file.path)

"""The export as a whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from diffusers import DDIMScheduler
from safetensors.numpy import load_file

from exporters.pipeline import export
from profiler import bundle_files
from profiler.errors import BeyondTolerance, InputError, UnknownName
from profiler.records.spec import ModelSpec
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from profiler.runner.interpreter import Interpreter
from tests.exporters.conftest import Exported
from tests.exporters.small_pipelines import SIDE, save_pipeline, sd_scheduler, small_recipe, spec_of


def renamed(spec: ModelSpec, family: str) -> ModelSpec:
    fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return ModelSpec(**{**fields, "family": family})


def test_the_manifest_on_disk_is_the_returned_record(edit_bundle: Exported) -> None:
    assert bundle_files.load_manifest(edit_bundle.folder) == edit_bundle.bundle


def test_every_component_and_task_was_verified(edit_bundle: Exported) -> None:
    verification = edit_bundle.bundle.verification
    assert set(verification.components) == set(edit_bundle.bundle.components)
    assert set(verification.images) == {"generate", "edit"}
    assert max(found.relative for found in verification.components.values()) < 1e-5
    assert max(found.float_image.relative for found in verification.images.values()) < 2e-5
    assert "StableDiffusionInstructPix2PixPipeline" in verification.reference


def test_both_tasks_share_their_components(edit_bundle: Exported) -> None:
    assert set(edit_bundle.bundle.components) == {"text_encoder", "image_encoder", "denoiser", "decoder", "guide_step"}
    graphs = [entry.path for entry in edit_bundle.bundle.files if entry.path.endswith(".onnx")]
    assert len([path for path in graphs if "guide_step" not in path]) == 4


def test_no_graph_holds_a_path_of_this_machine(edit_bundle: Exported) -> None:
    for path in edit_bundle.folder.rglob("*.onnx"):
        data = path.read_bytes()
        assert b"site-packages" not in data
        assert os.fsencode(edit_bundle.source) not in data


def test_the_shipped_defaults_make_an_image(edit_bundle: Exported) -> None:
    plan = bundle_files.load_plan(edit_bundle.folder, edit_bundle.bundle, "edit")
    engine = OnnxRuntimeEngine(threads=1)
    interpreter = Interpreter(plan, edit_bundle.bundle.components, edit_bundle.folder, engine)
    interpreter.prepare()
    image = interpreter.run(load_file(edit_bundle.folder / edit_bundle.bundle.tasks["edit"].defaults.path))
    assert image.pixels.shape == (SIDE, SIDE, 3)
    assert image.pixels.std() > 1


def test_a_plan_may_take_the_constants_of_another_step_count(edit_bundle: Exported) -> None:
    plan = bundle_files.load_plan(edit_bundle.folder, edit_bundle.bundle, "edit")
    schedules = bundle_files.load_schedules(edit_bundle.folder, edit_bundle.bundle, "edit")
    assert set(schedules.constants_by_steps) == set(range(1, 51))
    own = schedules.constants_by_steps[plan.steps]
    assert {name: plan.constants[name] for name in own} == own


def test_progress_counts_up_to_the_end(edit_bundle: Exported) -> None:
    done = [done for _, done, _ in edit_bundle.progress]
    assert done == list(range(len(done)))
    assert edit_bundle.progress[-1] == ("done", done[-1], done[-1])
    assert {total for _, _, total in edit_bundle.progress[2:]} == {done[-1]}


def test_a_breach_of_tolerance_leaves_nothing_behind(generate_source: Path, tmp_path: Path) -> None:
    with pytest.raises(BeyondTolerance):
        export(spec_of(generate_source), small_recipe(relative_tolerance=1e-12), tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_that_no_plan_can_express_leaves_nothing_behind(tmp_path: Path) -> None:
    source = save_pipeline(
        tmp_path / "source", scheduler=sd_scheduler(DDIMScheduler, clip_sample=False, thresholding=True)
    )
    with pytest.raises(InputError, match="not linear"):
        export(spec_of(source), small_recipe(), tmp_path / "out" / "bundle")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_existing_destination_is_left_alone(generate_source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "bundle"
    destination.mkdir()
    (destination / "mine").write_text("keep")
    with pytest.raises(InputError, match="never overwritten"):
        export(spec_of(generate_source), small_recipe(), destination)
    assert (destination / "mine").read_text() == "keep"


@pytest.mark.parametrize("destination", [".", "..", "/"])
def test_a_destination_that_cannot_be_new_is_refused(generate_source: Path, destination: str) -> None:
    with pytest.raises(InputError, match="never overwritten"):
        export(spec_of(generate_source), small_recipe(), Path(destination))


def test_a_task_that_the_pipeline_cannot_do_is_refused(generate_source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="small cannot edit; its pipeline can generate"):
        export(spec_of(generate_source, "edit"), small_recipe(), tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_family_is_named(generate_source: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="stable_difusion"):
        export(renamed(spec_of(generate_source), "stable_difusion"), small_recipe(), tmp_path / "bundle")


def test_pickled_weights_stop_an_export_before_anything_is_loaded(generate_source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(generate_source, folder)
    for weights in folder.glob("*/*.safetensors"):
        weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(InputError, match="never opened"):
        export(spec_of(folder), small_recipe(), tmp_path / "out" / "bundle")
    assert list((tmp_path / "out").iterdir()) == []

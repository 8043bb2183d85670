"""Plans as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.plans import components_of, load_around_use
from profiler import bundle_files
from profiler.plan_rules import check_plan
from profiler.records.plan import Call, Load, Loop, Output, Plan, Unload
from tests.exporters.conftest import Exported

RESIDENT = ("text_encoder", "image_encoder", "guide_step", "denoiser", "decoder")


def plan_of(exported: Exported, task: str) -> Plan:
    return bundle_files.load_plan(exported.folder, exported.bundle, task)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", ["generate", "edit"])
def test_an_edit_models_plans_obey_the_rules_of_plans(edit_bundle: Exported, task: str) -> None:
    plan = plan_of(edit_bundle, task)
    assert plan.constants_file == "constants.safetensors"
    check_plan(plan, edit_bundle.bundle.components, ("blank_latents", "zero_latents"))


def test_a_generation_plan_needs_no_constants_file(generate_bundle: Exported) -> None:
    plan = plan_of(generate_bundle, "generate")
    assert plan.constants_file is None
    check_plan(plan, generate_bundle.bundle.components)


def test_a_resident_plan_loads_before_and_not_within_an_image(edit_bundle: Exported) -> None:
    plan = plan_of(edit_bundle, "edit")
    assert sorted(load.component for load in plan.prepare) == sorted(RESIDENT)
    assert not [step for step in plan.body if isinstance(step, Load | Unload)]


def test_generation_does_not_reach_the_image_encoder(edit_bundle: Exported) -> None:
    plan = plan_of(edit_bundle, "generate")
    assert "image_encoder" not in {load.component for load in plan.prepare}
    assert "image_encoder" not in {name for step in plan.body for name in components_of(step)}


@pytest.mark.parametrize(("task", "branches"), [("generate", 2), ("edit", 3)])
def test_a_round_calls_the_denoiser_once_per_branch_that_counts(
    edit_bundle: Exported, task: str, branches: int
) -> None:
    (loop,) = (step for step in plan_of(edit_bundle, task).body if isinstance(step, Loop))
    calls = [step for step in loop.body if isinstance(step, Call)]
    assert [call.function for call in calls] == ["predict"] * branches + [f"guide_{branches}"]


def test_stages_have_the_documented_names(edit_bundle: Exported) -> None:
    stages = [step.stage for step in plan_of(edit_bundle, "edit").body if isinstance(step, Call | Loop | Output)]
    assert list(dict.fromkeys(stages)) == ["text_encoder", "image_encoder", "denoiser", "decoder"]


def test_loading_around_use_holds_each_component_just_as_long_as_needed(edit_bundle: Exported) -> None:
    body = load_around_use(plan_of(edit_bundle, "edit").body)
    loaded: set[str] = set()
    for step in body:
        match step:
            case Load():
                assert step.component not in loaded
                loaded.add(step.component)
            case Unload():
                loaded.remove(step.component)
            case _:
                assert set(components_of(step)) <= loaded
                assert loaded <= {"text_encoder"} or "text_encoder" not in loaded
    assert not loaded
    assert isinstance(body[-1], Output)


def test_all_files_of_the_manifest_exist_and_match(edit_bundle: Exported) -> None:
    bundle_files.check_files(edit_bundle.folder, bundle_files.load_manifest(edit_bundle.folder))
    listed = {entry.path for entry in edit_bundle.bundle.files} | {bundle_files.MANIFEST}
    there = {path.relative_to(edit_bundle.folder).as_posix() for path in _files(edit_bundle.folder)}
    assert listed == there


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]

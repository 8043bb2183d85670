"""Plans as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.plans import components_of, load_around_use, reached_files
from profiler import bundle_files
from profiler.records.bundle import Bundle
from profiler.records.plan import Call, Free, Load, Loop, Output, Plan, PlanStep, Unload
from tests.exporters.conftest import Exported

RESIDENT = ("text_encoder", "image_encoder", "guide_step", "denoiser", "decoder")


def plan_of(exported: Exported, task: str) -> Plan:
    return bundle_files.load_plan(exported.folder, exported.bundle, task)  # type: ignore[arg-type]


def unknown_values(plan: Plan, bundle: Bundle, constants: set[str]) -> list[str]:
    """Walk a plan and list each value that is read before anything gives it, and each port that is not bound."""
    known = {port.name for port in plan.inputs} | set(plan.constants) | constants
    found: list[str] = []

    def walk(step: PlanStep | Call | Free) -> None:
        match step:
            case Call():
                function = bundle.components[step.component].functions[step.function]
                found.extend(name for name in step.bind.values() if name not in known)
                found.extend(port.name for port in function.inputs if port.name not in step.bind)
                found.extend(port for port in step.emit if port not in {port.name for port in function.outputs})
                known.update(step.emit.values())
            case Loop():
                assert isinstance(step.over, dict)
                found.extend(name for name in (*step.over.values(), *step.carry.values()) if name not in known)
                known.update(step.over, step.carry)
                for inner in step.body:
                    walk(inner)
            case Output():
                found.extend([] if step.value in known else [step.value])
            case _:
                pass

    for step in plan.body:
        walk(step)
    return found


@pytest.mark.parametrize("task", ["generate", "edit"])
def test_every_value_of_an_edit_models_plans_is_known_when_it_is_read(edit_bundle: Exported, task: str) -> None:
    plan = plan_of(edit_bundle, task)
    assert unknown_values(plan, edit_bundle.bundle, {"blank_latents", "zero_latents"}) == []


def test_every_value_of_a_generation_plan_is_known_when_it_is_read(generate_bundle: Exported) -> None:
    plan = plan_of(generate_bundle, "generate")
    assert plan.constants_file is None
    assert unknown_values(plan, generate_bundle.bundle, set()) == []


def test_a_resident_plan_loads_before_and_not_within_an_image(edit_bundle: Exported) -> None:
    plan = plan_of(edit_bundle, "edit")
    assert sorted(load.component for load in plan.prepare) == sorted(RESIDENT)
    assert not [step for step in plan.body if isinstance(step, Load | Unload)]


def test_generation_does_not_reach_the_image_encoder(edit_bundle: Exported) -> None:
    plan = plan_of(edit_bundle, "generate")
    assert "image_encoder" not in {load.component for load in plan.prepare}
    reached = reached_files(plan, edit_bundle.bundle.components)
    assert "constants.safetensors" in reached
    assert not [path for path in reached if "image_encoder" in path]


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

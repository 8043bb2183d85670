"""The nano bundle that ships is what its source, exported again, gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from profiler import catalog
from profiler.bundle_files import check_files, load_manifest, load_plan, load_schedules
from profiler.records.bundle import Bundle
from profiler.records.record import Task
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from profiler.runner.interpreter import Image, Interpreter

TASKS: tuple[Task, ...] = ("generate", "edit")


@pytest.fixture(scope="module")
def shipped() -> Path:
    folder = catalog.shipped_bundle(catalog.model("nano"))
    assert folder is not None, "exporters/bundles/nano is part of the project; renew it: make nano-bundle"
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    from profiler.exporting import ANY, export

    folder = tmp_path_factory.mktemp("nano") / "bundle"
    export("nano", folder, ANY, lambda stage, done, total: None)
    return folder


def test_every_file_is_the_one_its_manifest_names(shipped: Path) -> None:
    check_files(shipped, load_manifest(shipped))


def test_it_was_verified_within_its_tolerance_for_both_tasks(shipped: Path) -> None:
    bundle = load_manifest(shipped)
    assert set(bundle.verification.images) == set(TASKS)
    for difference in bundle.verification.images.values():
        assert difference.float_image.relative <= bundle.recipe.relative_tolerance
        assert difference.uint8_max_levels <= 1
        assert difference.uint8_changed_share <= 0.01


@pytest.mark.export
@pytest.mark.slow
def test_exporting_again_gives_the_same_weights_ports_and_plans(shipped: Path, fresh: Path) -> None:
    old, new = load_manifest(shipped), load_manifest(fresh)
    assert old.source == new.source, "nano was trained anew; renew its bundle: make nano-bundle"
    assert old.recipe == new.recipe
    assert {name: part.functions for name, part in old.components.items()} == {
        name: part.functions for name, part in new.components.items()
    }
    for task in TASKS:
        assert load_plan(shipped, old, task) == load_plan(fresh, new, task)
        assert load_schedules(shipped, old, task) == load_schedules(fresh, new, task)
    if old.tools == new.tools:
        assert _graph_hashes(old) == _graph_hashes(new)


@pytest.mark.export
@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_exporting_again_gives_the_same_image(shipped: Path, fresh: Path, task: Task) -> None:
    old, new = _image(shipped, task), _image(fresh, task)
    assert np.abs(old.pixels.astype(int) - new.pixels.astype(int)).max() <= 1


def _graph_hashes(bundle: Bundle) -> dict[str, str]:
    return {entry.path: entry.sha256 for entry in bundle.files if entry.path.startswith("components/")}


def _image(folder: Path, task: Task) -> Image:
    bundle = load_manifest(folder)
    plan = load_plan(folder, bundle, task)
    interpreter = Interpreter(plan, bundle.components, folder, OnnxRuntimeEngine(threads=1))
    interpreter.prepare()
    return interpreter.run(load_file(str(folder / bundle.tasks[task].defaults.path)))

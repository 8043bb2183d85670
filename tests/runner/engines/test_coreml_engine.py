"""Core ML packages in the runner, with what stands in for the two calls of coremltools that only macOS has."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from profiler import codec
from profiler.bundle_files import MANIFEST
from profiler.errors import InputError, InvalidRecord
from profiler.records.bundle import Component, Function, Link
from profiler.records.plan import Port
from profiler.records.recipe import ComputeUnit
from profiler.runner.engines.coreml_engine import CoremlEngine, Predict
from profiler.runner.engines.coreml_package import AUTHOR, DATA, FORMAT
from profiler.runner.engines.engine import EngineFailure
from tests.records_for_tests import make_bundle

LATENTS = Port(name="latents", dtype="float32", shape=(1, 2))
IDS = Port(name="ids", dtype="int32", shape=(1,))
BETWEEN = Port(name="between", dtype="float32", shape=(1, 2))
FOUND = Port(name="found", dtype="float32", shape=(1, 2))


class Models:
    """Opens models that add what they are given, as half precision, and notes what they are asked for."""

    def __init__(self, outputs: Mapping[str, str] | None = None) -> None:
        self.opened: list[tuple[str, str]] = []
        self.given: list[dict[str, Any]] = []
        self._outputs = outputs or {"predict.mlpackage": "found"}

    def __call__(self, path: str, unit: str) -> Predict:
        self.opened.append((Path(path).name, unit))
        output = self._outputs[Path(path).name]

        def predict(feeds: dict[str, Any]) -> dict[str, Any]:
            self.given.append(feeds)
            total: Any = sum(feeds.values())
            return {output: np.asarray(total, np.float16)}

        return predict


def write_package(folder: Path, path: str = f"{AUTHOR}/model.mlmodel") -> None:
    (folder / DATA / AUTHOR).mkdir(parents=True)
    (folder / DATA / AUTHOR / "model.mlmodel").write_bytes(b"model")
    item = {"author": AUTHOR, "description": "", "name": "model.mlmodel", "path": path}
    manifest = {"fileFormatVersion": FORMAT, "itemInfoEntries": {"1": item}, "rootModelIdentifier": "1"}
    (folder / "Manifest.json").write_text(json.dumps(manifest))


def bundle_folder(folder: Path, unit: ComputeUnit = "cpu_gpu", *packages: str) -> Path:
    bundle = make_bundle()
    recipe = replace(bundle.recipe, runtime="coreml", compute_unit=unit)
    (folder / MANIFEST).write_bytes(codec.encode(replace(bundle, recipe=recipe)))
    for name in packages or ("predict.mlpackage",):
        write_package(folder / name)
    return folder


def component(*chain: Link) -> Component:
    function = Function(path="predict.mlpackage", inputs=(LATENTS, IDS), outputs=(FOUND,), chain=chain)
    return Component(functions={"predict": function}, files=(), parameters=1, precision="fp16")


def engine(models: Models) -> CoremlEngine:
    return CoremlEngine(system="Darwin", open_model=models)


def feeds() -> dict[str, Any]:
    return {"latents": np.array([[1.0, 2.0]], np.float32), "ids": np.array([3], np.int32), "more": np.zeros(1)}


@pytest.mark.parametrize(("unit", "name"), [("cpu", "CPU_ONLY"), ("cpu_gpu", "CPU_AND_GPU"), ("all", "ALL")])
def test_a_package_is_loaded_on_the_recipes_unit_and_before_it_is_called(
    unit: ComputeUnit, name: str, tmp_path: Path
) -> None:
    models = Models()
    call = engine(models).load("denoiser", component(), bundle_folder(tmp_path, unit))["predict"]
    assert (models.opened, models.given) == ([("predict.mlpackage", name)], [])
    (found,) = call(feeds())
    assert (found.dtype, found.tolist()) == (np.dtype(np.float32), [[4.0, 5.0]])
    assert {port: value.dtype.name for port, value in models.given[0].items()} == {"latents": "float32", "ids": "int32"}


def test_packages_of_a_function_run_one_after_the_other(tmp_path: Path) -> None:
    chain = (
        Link(path="predict_1.mlpackage", inputs=(LATENTS,), outputs=(BETWEEN,)),
        Link(path="predict_2.mlpackage", inputs=(BETWEEN, IDS), outputs=(FOUND,)),
    )
    models = Models({"predict_1.mlpackage": "between", "predict_2.mlpackage": "found"})
    folder = bundle_folder(tmp_path, "all", *models._outputs)
    (found,) = engine(models).load("denoiser", component(*chain), folder)["predict"](feeds())
    assert found.tolist() == [[4.0, 5.0]]
    assert [set(each) for each in models.given] == [{"latents"}, {"between", "ids"}]


def test_a_package_that_leads_outside_is_never_opened(tmp_path: Path) -> None:
    models = Models()
    folder = bundle_folder(tmp_path, "all", "another.mlpackage")
    write_package(folder / "predict.mlpackage", f"../../another.mlpackage/{DATA}/{AUTHOR}/model.mlmodel")
    with pytest.raises(InvalidRecord):
        engine(models).load("denoiser", component(), folder)
    assert models.opened == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [(RuntimeError("Error compiling model"), "load_failed"), (RuntimeError("std::bad_alloc"), "out_of_memory")],
)
def test_what_the_framework_refuses_is_a_failure_of_the_component(
    error: Exception, reason: str, tmp_path: Path
) -> None:
    def refuse(path: str, unit: str) -> Predict:
        raise error

    with pytest.raises(EngineFailure, match=f"denoiser: {error}") as caught:
        CoremlEngine(system="Darwin", open_model=refuse).load("denoiser", component(), bundle_folder(tmp_path))
    assert (caught.value.reason, caught.value.component) == (reason, "denoiser")


def test_outputs_that_are_not_the_manifests_are_a_failure(tmp_path: Path) -> None:
    models = Models({"predict.mlpackage": "something"})
    call = engine(models).load("denoiser", component(), bundle_folder(tmp_path))["predict"]
    with pytest.raises(EngineFailure, match="found") as caught:
        call(feeds())
    assert caught.value.reason == "inference_failed"


def test_elsewhere_it_refuses_and_names_macos() -> None:
    with pytest.raises(InputError, match=f"this machine has {platform.system()} on .*, not macOS"):
        CoremlEngine(system="Linux", open_model=Models())


def test_threads_are_not_for_the_host_to_choose() -> None:
    with pytest.raises(InputError, match="Core ML decides itself how many threads"):
        CoremlEngine(threads=2, system="Darwin", open_model=Models())
    pytest.importorskip("coremltools")
    assert engine(Models()).version == "9.0"


@pytest.mark.skipif(platform.system() == "Darwin", reason="there the framework itself answers")
def test_a_model_that_the_framework_did_not_take_is_not_called(tmp_path: Path) -> None:
    pytest.importorskip("coremltools")
    from profiler.runner.engines.coreml_engine import core_ml
    from tests.exporters.mil_programs import Builder, save

    package = save(tmp_path / "small.mlpackage", {"x": (1, 4)}, lambda x: Builder.relu(x=x))
    with pytest.raises(RuntimeError, match="not loaded or compiled with the Core ML Framework"):
        core_ml()(str(package), "CPU_ONLY")

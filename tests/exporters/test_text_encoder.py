"""Bundles whose text encoder has a scheme: made, verified against the same weights, and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors
from safetensors.torch import save_file

from exporters.pipeline import export
from profiler import bundle_files
from profiler.errors import InputError, ModelError
from profiler.records.bundle import Bundle
from profiler.records.recipe import EncoderScheme, Precision, Recipe, recipe_of
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from profiler.runner.interpreter import Interpreter
from tests.exporters.conftest import Exported
from tests.exporters.small_pipelines import SIDE, Kind, save_pipeline, small_recipe, spec_of

CASES: tuple[tuple[Kind, Precision, EncoderScheme], ...] = (
    ("edit", "fp32", "int8"),
    ("edit", "fp32", "nf4"),
    ("edit", "fp16", "fp16"),
    ("generate", "fp32", "fp16"),
    ("generate", "fp16", "nf4"),
)


def made(source: Path, folder: Path, kind: Kind, recipe: Recipe) -> Bundle:
    tasks: tuple[Kind, ...] = ("generate", "edit") if kind == "edit" else ("generate",)
    return export(spec_of(source, *tasks, edit={"image_guidance": 1.5}), recipe, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "precision", "scheme"), CASES)
def test_a_bundle_of_each_scheme_is_verified_and_runs(
    kind: Kind, precision: Precision, scheme: EncoderScheme, tmp_path: Path
) -> None:
    recipe = recipe_of(SIDE, SIDE, precision=precision, text_encoder=scheme)
    bundle = made(save_pipeline(tmp_path / "source", kind), tmp_path / "bundle", kind, recipe)
    assert bundle == bundle_files.load_manifest(tmp_path / "bundle")
    encoder, done = bundle.components["text_encoder"], bundle.components["text_encoder"].quantization
    assert encoder.precision == scheme
    assert done is not None
    assert done.coverage > 0.95
    assert done.from_fp32 is not None
    assert 0 < done.from_fp32.relative < 0.5
    assert bundle.verification.components["text_encoder"].relative < (1e-3 if scheme == "fp16" else 1e-6)
    assert f"the same {scheme} weights" in bundle.verification.reference
    for task, image in bundle.verification.images.items():
        assert image.float_image.relative < (1e-2 if "fp16" in (precision, scheme) else 1e-5)
        plan = bundle_files.load_plan(tmp_path / "bundle", bundle, task)
        interpreter = Interpreter(plan, bundle.components, tmp_path / "bundle", OnnxRuntimeEngine(threads=1))
        interpreter.prepare()
        run = interpreter.run(load_file(tmp_path / "bundle" / bundle.tasks[task].defaults.path))
        assert np.isfinite(run.float_image).all()
        assert run.pixels.std() > 1


def test_rows_that_are_no_whole_blocks_and_kept_layers_are_recorded(generate_source: Path, tmp_path: Path) -> None:
    recipe = small_recipe(text_encoder="nf4", kept=("*layers.0.mlp.*",))
    done = made(generate_source, tmp_path / "bundle", "generate", recipe).components["text_encoder"].quantization
    assert done is not None
    assert len(done.kept) == 2
    assert all("layers.0.mlp" in name for name in done.kept)
    assert any("q_proj" in name for name in done.fallen_back)  # 32 wide
    assert not any("fc2" in name for name in done.fallen_back)  # 64 wide
    assert (done.block, done.absmax_dtype) == (64, "float32")
    assert done.file_bytes > done.ideal_bytes


def test_an_unquantized_bundle_says_nothing_of_schemes(generate_bundle: Exported) -> None:
    bundle = generate_bundle.bundle
    assert {component.quantization for component in bundle.components.values()} == {None}


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (small_recipe(text_encoder="int8", kept=("nothing.*",)), "no weight that can be quantized matches"),
        (small_recipe(kept=("*",)), "layers can be kept only where"),
    ],
)
def test_a_pattern_without_an_effect_leaves_nothing_behind(
    recipe: Recipe, message: str, generate_source: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        made(generate_source, tmp_path / "bundle", "generate", recipe)
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_undefined_weights_are_named_and_leave_nothing_behind(bad: float, tmp_path: Path) -> None:
    source = save_pipeline(tmp_path / "source")
    path = source / "text_encoder" / "model.safetensors"
    weights = load_tensors(path)
    name = next(name for name in weights if name.endswith("layers.1.mlp.fc1.weight"))
    weights[name].view(-1)[7] = bad
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"layers\.1\.mlp\.fc1\.weight holds NaN or infinity"):
        made(source, tmp_path / "bundle", "generate", small_recipe(text_encoder="nf4"))
    assert not (tmp_path / "bundle").exists()


def test_a_runtime_without_the_scheme_is_refused_before_anything_is_loaded() -> None:
    from exporters.runtimes import Runtime, check_expresses

    plain = Runtime(export_part=None, engine=None, tools=())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="bundles have no text-encoder scheme nf4"):
        check_expresses(small_recipe(text_encoder="nf4"), plain)
    with pytest.raises(InputError, match="bundles have no precision fp16"):
        check_expresses(small_recipe(precision="fp16"), plain)

"""A whole bundle for Core ML, run through the interpreter for both tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("coremltools")

from exporters.pipeline import export
from profiler.bundle_files import check_files, check_names, load_manifest, load_plan
from profiler.records.recipe import recipe_of
from profiler.session import bundle_use
from tests.exporters.conftest import Exported
from tests.exporters.small_pipelines import SIDE, spec_of


@pytest.fixture(scope="module")
def coreml_bundle(edit_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Export the InstructPix2Pix pipeline as Core ML is exported by default."""
    told: list[tuple[str, int, int]] = []
    folder = tmp_path_factory.mktemp("coreml") / "bundle"
    spec = spec_of(edit_source, "generate", "edit", edit={"image_guidance": 1.5})
    recipe = recipe_of(SIDE, SIDE, runtime="coreml")
    bundle = export(spec, recipe, folder, progress=lambda *stage: told.append(stage))
    return Exported(edit_source, folder, bundle, told)


def test_both_images_are_within_the_tolerance_of_fp16_and_not_within_that_of_fp32(coreml_bundle: Exported) -> None:
    verification = coreml_bundle.bundle.verification
    assert set(verification.components) == set(coreml_bundle.bundle.components)
    assert set(verification.images) == {"generate", "edit"}
    for found in verification.images.values():
        assert 1e-3 < found.float_image.relative < coreml_bundle.bundle.recipe.relative_tolerance
        assert found.uint8_max_levels == 1


def test_the_manifest_tells_that_no_apple_device_was_asked(coreml_bundle: Exported) -> None:
    verification = coreml_bundle.bundle.verification
    assert verification.engine is not None
    assert verification.engine.startswith("mil-interpreter ")
    assert verification.not_run is not None
    assert "Apple devices only" in verification.not_run
    assert coreml_bundle.bundle.tools["coremltools"] == "9.0"


def test_the_encoder_is_int8_the_networks_fp16_and_the_scheduler_exact(coreml_bundle: Exported) -> None:
    components = coreml_bundle.bundle.components
    assert {name: each.precision for name, each in components.items()} == {
        "text_encoder": "int8",
        "denoiser": "fp16",
        "decoder": "fp16",
        "image_encoder": "fp16",
        "guide_step": "fp32",
    }
    assert coreml_bundle.bundle.verification.components["guide_step"].relative < 1e-6


def test_packages_are_folders_whose_files_are_checked_and_counted(coreml_bundle: Exported) -> None:
    folder, bundle = coreml_bundle.folder, load_manifest(coreml_bundle.folder)
    check_names(folder, bundle)
    check_files(folder, bundle)
    for component in bundle.components.values():
        assert all((folder / function.path).is_dir() for function in component.functions.values())
    use = bundle_use(bundle, "0" * 64, load_plan(folder, bundle, "edit"))
    packages = sum(path.stat().st_size for path in (folder / "components").rglob("*") if path.is_file())
    assert sum(use.size_by_component.values()) == packages


def test_every_file_can_be_read_by_all(coreml_bundle: Exported) -> None:
    for path in coreml_bundle.folder.rglob("*.mlmodel"):
        assert path.stat().st_mode & 0o044 == 0o044

"""A whole bundle of ExecuTorch programs, of the smallest pipeline that has all parts: lowering is slow."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("executorch")

from diffusers import StableDiffusionPipeline, UNet2DConditionModel

from exporters.pipeline import export
from profiler import bundle_files
from profiler.catalog import device_profile
from profiler.clock import RealClock
from profiler.devices.local import LocalDevice
from profiler.records.bundle import Bundle
from profiler.records.recipe import recipe_of
from profiler.session import measure
from profiler.store import Store
from tests.exporters.small_pipelines import LATENT_CHANNELS, SIDE, save_pipeline, small_recipe, spec_of
from tests.small_bundle import make_order

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_pipeline(tmp_path_factory.mktemp("source") / "smallest", encoder_layers=1)
    pipeline = StableDiffusionPipeline.from_pretrained(folder, local_files_only=True)
    pipeline.unet = UNet2DConditionModel(
        sample_size=SIDE // 8,
        in_channels=LATENT_CHANNELS,
        out_channels=LATENT_CHANNELS,
        block_out_channels=(16,),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D",),
        up_block_types=("UpBlock2D",),
        mid_block_type=None,
        cross_attention_dim=32,
        attention_head_dim=4,
        norm_num_groups=8,
    )
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


@pytest.fixture(scope="module")
def bundle(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Path]:
    folder = tmp_path_factory.mktemp("bundle") / "smallest"
    return export(spec_of(source, text_guidance=1.0), small_recipe(runtime="executorch"), folder), folder


def test_the_image_is_the_stock_pipelines(bundle: tuple[Bundle, Path]) -> None:
    made, folder = bundle
    (found,) = made.verification.images.values()
    assert found.float_image.relative < 2e-5
    assert found.uint8_max_levels <= 1
    assert {Path(path).suffix for part in made.components.values() for path in part.files} == {".pte"}
    assert {"executorch", "torchao"} <= set(made.tools)
    assert bundle_files.load_manifest(folder) == made


def test_halves_are_verified_within_their_tolerance(source: Path, tmp_path: Path) -> None:
    recipe = recipe_of(SIDE, SIDE, runtime="executorch", precision="fp16")
    made = export(spec_of(source, text_guidance=1.0), recipe, tmp_path / "halves")
    (found,) = made.verification.images.values()
    assert 1e-5 < found.float_image.relative < recipe.relative_tolerance
    assert {name: part.precision for name, part in made.components.items()} == {
        "text_encoder": "fp16",
        "denoiser": "fp16",
        "decoder": "fp16",
        "guide_step": "fp32",
    }


def test_a_bundle_that_nothing_here_runs_says_so_and_has_no_numbers(source: Path, tmp_path: Path) -> None:
    recipe = recipe_of(SIDE, SIDE, runtime="executorch", backend="vulkan")
    made = export(spec_of(source, text_guidance=1.0), recipe, tmp_path / "vulkan")
    checked = made.verification
    assert (checked.components, checked.images, checked.engine) == ({}, {}, None)
    assert checked.not_run is not None
    assert "does not run programs for its vulkan backend" in checked.not_run
    assert bundle_files.load_manifest(tmp_path / "vulkan").recipe.backend == "vulkan"


def test_it_is_measured_on_this_machine(bundle: tuple[Bundle, Path], store: Store) -> None:
    _, folder = bundle
    device = LocalDevice(device_profile("local"), RealClock())
    run = measure(make_order(folder), device, store, RealClock(), lambda state: None)
    assert (run.outcome, run.reason) == ("completed", None)
    assert run.engine is not None
    assert run.engine.startswith("executorch ")
    assert {"text_encoder", "denoiser", "decoder"} <= set(run.processes[0].load_ns_by_component)

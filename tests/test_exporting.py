from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler import catalog
from profiler.bundle_files import load_manifest
from profiler.errors import InputError, UnknownName
from profiler.exporting import ANY, EXTRA_PACKAGES, Wanted, bundle_for, is_ready, missing_packages, ready_bundle
from profiler.records.recipe import Recipe
from profiler.records.spec import ModelSpec

# An interpreter whose own finder does not find the extra is how an installation without it looks to the product.
_WITHOUT_EXTRA = """
import sys
from importlib.machinery import PathFinder

class WithoutExtra(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in {packages!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutExtra
from profiler.cli import main
sys.exit(main(sys.argv[1:]))
"""


def nobody(stage: str, done: int, total: int) -> None:
    raise AssertionError("nothing is exported here")


def without_extra(*arguments: str) -> subprocess.CompletedProcess[str]:
    return without(*EXTRA_PACKAGES, arguments=arguments)


def without(*packages: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    code = _WITHOUT_EXTRA.format(packages=set(packages))
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("typed", "meant"), [("nanno", "nano"), ("sd-turbbo", "sd-turbo")])
def test_an_unknown_model_says_which_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean {meant}"):
        bundle_for(typed, nobody)


@pytest.mark.parametrize("name", ["zzz", "x" * 300, "~nobody-of-this-name", "nano\n", "[bold]", "🙂", " "])
def test_a_word_that_is_no_model_is_unknown_whatever_it_looks_like(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown model"):
        is_ready(name)


def test_a_bundle_folder_is_ready_and_nothing_is_exported(small_bundle: Path) -> None:
    assert ready_bundle(str(small_bundle)) == small_bundle
    assert is_ready(str(small_bundle))
    assert bundle_for(str(small_bundle), nobody) == small_bundle


def test_a_folder_without_a_bundle_is_not_ready(tmp_path: Path) -> None:
    assert ready_bundle(str(tmp_path)) is None


def test_a_model_that_ships_is_ready() -> None:
    shipped = catalog.shipped_bundle(catalog.model("nano"))
    if shipped is None:
        pytest.skip("nano's bundle is not in this checkout")
    assert bundle_for("nano", nobody) == shipped


@pytest.mark.parametrize(
    "wanted",
    [Wanted(text_encoder="nf4"), Wanted(precision="fp16"), Wanted(kept=("*",)), Wanted(runtime="coreml")],
)
def test_a_bundle_that_ships_is_not_taken_for_another_recipe(wanted: Wanted) -> None:
    assert ready_bundle("nano", wanted) is None


def test_a_bundle_that_ships_is_taken_where_its_own_recipe_is_asked_for() -> None:
    wanted = Wanted(runtime="onnx", precision="fp32", text_encoder="fp32", load_policy="resident")
    assert ready_bundle("nano", wanted) == ready_bundle("nano") is not None


def test_a_bundle_folder_made_by_another_recipe_is_refused(small_bundle: Path) -> None:
    with pytest.raises(InputError, match="was not made with text encoder nf4"):
        ready_bundle(str(small_bundle), Wanted(text_encoder="nf4"))
    with pytest.raises(InputError, match=r"was not made with kept \*\.0\.\*, x"):
        ready_bundle(str(small_bundle), Wanted(kept=("*.0.*", "x")))


def test_a_bundle_folder_made_as_asked_is_ready(small_bundle: Path) -> None:
    recipe = load_manifest(small_bundle).recipe
    wanted = Wanted(runtime=recipe.runtime, precision=recipe.precision, text_encoder=recipe.text_encoder)
    assert ready_bundle(str(small_bundle), wanted) == small_bundle


def test_the_text_encoder_is_as_precise_as_the_rest_unless_told_otherwise() -> None:
    spec = catalog.model("nano")
    assert Wanted(precision="fp16").recipe(spec).text_encoder == "fp16"
    assert Wanted(precision="fp16", text_encoder="nf4").recipe(spec).text_encoder == "nf4"
    assert Wanted().recipe(spec) == Recipe(height=spec.height, width=spec.width)


@pytest.mark.parametrize("wanted", [Wanted(precision="fp16"), Wanted(text_encoder="fp16")])
def test_half_precision_has_a_tolerance_of_its_own(wanted: Wanted) -> None:
    exact = Recipe(height=64, width=64)
    assert wanted.recipe(catalog.model("nano")).relative_tolerance > exact.relative_tolerance
    assert Wanted(text_encoder="nf4").recipe(catalog.model("nano")).relative_tolerance == exact.relative_tolerance


def test_the_packages_of_the_extra_are_those_in_the_project_file() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    listed = {line.split("=")[0].strip("<>~! ") for line in project["project"]["optional-dependencies"]["export"]}
    assert set(EXTRA_PACKAGES) <= listed


def test_a_model_to_export_names_the_extra_that_is_missing() -> None:
    ended = without_extra("export", "--model", "sd-turbo")
    assert ended.returncode == 2
    assert "exporting sd-turbo needs packages that are not installed" in ended.stderr
    assert "pip install 'ondevice-profiler[export]'" in ended.stderr
    assert ended.stdout == ""


def test_an_unknown_model_is_told_before_the_missing_extra() -> None:
    ended = without_extra("export", "--model", "sd-turbbo")
    assert ended.returncode == 2
    assert "Did you mean sd-turbo" in ended.stderr
    assert "packages" not in ended.stderr


def test_a_ready_bundle_needs_no_extra(small_bundle: Path, tmp_path: Path) -> None:
    ended = without_extra("--model", str(small_bundle), "--dry-run", "--store", str(tmp_path / "store"))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_missing_packages_are_a_part_of_the_extra() -> None:
    assert set(missing_packages()) <= set(EXTRA_PACKAGES)


def test_a_bundle_folder_for_another_runtime_is_refused(small_bundle: Path) -> None:
    assert ready_bundle(str(small_bundle), Wanted(runtime="onnx")) == small_bundle
    with pytest.raises(InputError, match="was not made with runtime executorch"):
        ready_bundle(str(small_bundle), Wanted(runtime="executorch"))


def test_a_shipped_bundle_for_another_runtime_is_passed_over() -> None:
    shipped = catalog.shipped_bundle(catalog.model("nano"))
    assert ready_bundle("nano", Wanted(runtime="onnx")) == shipped
    assert ready_bundle("nano", Wanted(runtime="executorch")) is None


def test_a_runtime_without_its_toolchain_names_its_extra() -> None:
    ended = without("executorch", arguments=("export", "--model", "nano", "--runtime", "executorch"))
    assert ended.returncode == 2
    assert "exporting nano for executorch needs packages that are not installed" in ended.stderr
    assert "pip install 'ondevice-profiler[executorch]'" in ended.stderr


@pytest.mark.parametrize("name", ["path/to/bundle", "./bundle", "/none/bundle", "~/none"])
def test_a_path_to_no_folder_asks_for_no_packages(name: str) -> None:
    ended = without("torch", arguments=("--model", name))
    assert ended.returncode == 2
    assert f"{name!r} is no folder here" in ended.stderr
    assert "Install" not in ended.stderr


@pytest.mark.parametrize(
    ("package", "file", "extra"),
    [("onnx", "net.onnx", "export"), ("executorch", "net.pte", "executorch"), ("coremltools", "n.mlpackage", "export")],
)
def test_wrapping_a_graph_names_the_extra_that_is_missing(package: str, file: str, extra: str) -> None:
    ended = without(package, arguments=("export", "--file", file, "--out", "nowhere"))
    assert ended.returncode == 2
    assert f"wrapping {file} needs packages that are not installed" in ended.stderr
    assert f"pip install 'ondevice-profiler[{extra}]'" in ended.stderr


@pytest.mark.parametrize(
    ("said", "made"),
    [
        (Wanted(runtime="coreml"), ("fp16", "nf4", "cpu_gpu")),
        (Wanted(runtime="coreml", text_encoder="int8"), ("fp16", "int8", "all")),
        (Wanted(), ("fp16", "int8", "cpu")),
        (Wanted(precision="fp32"), ("fp32", "fp32", "cpu")),
        (Wanted(runtime="executorch"), ("fp32", "int8", "cpu")),
    ],
)
def test_a_models_default_recipe_is_taken_as_far_as_nothing_else_was_said(
    said: Wanted, made: tuple[str, str, str]
) -> None:
    spec = catalog.model("dreamlite")
    recipe = said.recipe(spec)
    assert (recipe.precision, recipe.text_encoder, recipe.compute_unit) == made
    is_default = made[:2] == (spec.recipes[recipe.runtime].precision, spec.recipes[recipe.runtime].text_encoder)
    assert (said.default_of(spec) is not None) == is_default


@pytest.mark.parametrize(
    "weights", ["random", "random:", "random:-1", "random:x", "zeros", "random:1.5", "random:٣", "random:" + 20 * "9"]
)
def test_weights_that_are_no_seed_are_refused(weights: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"unknown weights .*\n.*random:0"):
        bundle_for("dreamlite", nobody, Wanted(weights=weights))


def test_a_bundle_of_other_weights_is_not_taken_for_random_ones(small_bundle: Path) -> None:
    with pytest.raises(InputError, match="was not made with weights random:0"):
        ready_bundle(str(small_bundle), Wanted(weights="random:0"))


def test_a_licence_is_told_before_anything_is_fetched() -> None:
    pytest.importorskip("torch")
    told: list[ModelSpec] = []

    def declines(spec: ModelSpec) -> None:  # so that nothing is ever fetched here, whatever the network
        told.append(spec)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bundle_for("dreamlite", nobody, ANY, declines)
    assert [spec.licence.name for spec in told] == ["CC-BY-NC-4.0"]

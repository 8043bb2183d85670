"""A family, a runtime and an engine of an outside package: exported with, and measured in a real runner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")

from profiler.bundle_files import load_manifest
from tests.cli.conftest import COMMAND, LEAST
from tests.toy_plugin.installing import FAMILIES, RUNTIMES, install, install_toy

_SAVE = "import sys, pathlib; from ontoy.family import save; save(pathlib.Path(sys.argv[1]))"
_ENTRY = """
name = "toy"
title = "Toy"
family = "{family}"
repo = "weights"
embedded = true
height = 8
width = 8
licence = {{ name = "MIT", commercial_use = "allowed" }}

[tasks.generate]
prompt = "a red circle"
steps = 3
text_guidance = 1.0
"""


class Site:
    """An environment that plug-ins are installed in."""

    def __init__(self, root: Path) -> None:
        self.root, self.packages = root, root / "site"

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.packages), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(self.root / "cache"), "COLUMNS": "300"}
        return subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment, cwd=self.root)

    def profile(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python(*COMMAND, *arguments)

    def model(self, family: str = "toy_family") -> Path:
        entry = self.root / f"{family}.toml"
        entry.write_text(_ENTRY.format(family=family))
        return entry


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The toy plug-in, and a model of its family."""
    found = Site(tmp_path_factory.mktemp("plugins"))
    install_toy(found.packages)
    assert found.python(sys.executable, "-c", _SAVE, str(found.root / "weights")).returncode == 0
    return found


@pytest.fixture(scope="module")
def toy_bundle(site: Site) -> Path:
    """A bundle of the toy's family, in the toy's format."""
    made = site.profile("export", "--model", str(site.model()), "--runtime", "toy", "--out", "toy-bundle", "--json")
    assert made.returncode == 0, made.stderr
    return site.root / "toy-bundle"


def test_a_family_of_a_plug_in_is_exported_for_the_products_runtime_and_measured(site: Site) -> None:
    made = site.profile("export", "--model", str(site.model()), "--out", "onnx-bundle", "--json")
    assert made.returncode == 0, made.stderr
    bundle = load_manifest(site.root / "onnx-bundle")
    assert (bundle.model, bundle.recipe.runtime, bundle.source.repo) == ("toy", "onnx", "local:weights")
    assert bundle.verification.images["generate"].float_image.relative < 1e-4
    ended = site.profile("--bundle", "onnx-bundle", "--store", "store", "--prompt", "a circle", "--json", *LEAST)
    assert ended.returncode == 0, ended.stderr


def test_a_runtime_of_a_plug_in_is_exported_for_and_measured_in_a_runner(site: Site, toy_bundle: Path) -> None:
    bundle = load_manifest(toy_bundle)
    assert bundle.recipe.runtime == "toy"
    assert bundle.verification.engine == "toy 1.2"
    assert bundle.tools["ontoy"] == "1.0"
    assert all(path.endswith(".pt2") for component in bundle.components.values() for path in component.files)
    ended = site.profile("--bundle", "toy-bundle", "--store", "store", "--json", *LEAST)
    assert ended.returncode == 0, ended.stderr
    summary: dict[str, Any] = json.loads(ended.stdout)
    assert (summary["outcome"], summary["engine"]) == ("completed", "toy 1.0")
    assert [artifact["role"] for artifact in summary["artifacts"]] == ["output"]


def test_a_bundle_for_a_runtime_that_is_not_installed_is_refused_with_what_is(toy_bundle: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "--bundle", str(toy_bundle), "--dry-run"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "unknown runtime 'toy'" in ended.stderr
    assert "Known: executorch, onnx" in " ".join(ended.stderr.split())


def test_help_and_models_name_plug_ins_without_importing_them(tmp_path: Path) -> None:
    other = Site(tmp_path)
    install(
        other.packages, "loud", {RUNTIMES: {"shout": "loud:X"}, FAMILIES: {"song": "loud"}}, code="raise SystemError"
    )
    for arguments in (["--help"], ["export", "--help"]):
        told = other.profile(*arguments)
        assert "onnx|executorch|coreml|shout" in told.stdout
    listed = other.profile("models").stdout
    assert "runtime shout, of the package loud" in listed
    assert "model family song, of the package loud" in listed


def test_a_typing_error_is_refused_before_anything_is_imported(site: Site) -> None:
    ended = site.profile("export", "--model", "nano", "--runtime", "toi")
    assert ended.returncode == 2
    assert "unknown runtime 'toi' Did you mean toy?" in ended.stderr


def test_a_broken_plug_in_is_named_and_leaves_other_models_alone(tmp_path: Path) -> None:
    other = Site(tmp_path)
    points = {
        RUNTIMES: {"bad": "broken_plugin:X", "odd": "odd_plugin:X"},
        FAMILIES: {"sad": "broken_plugin", "no": "odd_plugin"},
    }
    install(other.packages, "broken_plugin", points, code="raise OSError('no such library')")
    (other.packages / "odd_plugin.py").write_text("X = 1")
    (other.root / "weights").mkdir()
    for arguments, words in (
        (["--runtime", "bad"], "the runtime 'bad' of the package broken_plugin cannot be imported: OSError"),
        (["--runtime", "odd"], "the runtime 'odd' of the package broken_plugin is no exporters.runtimes.Runtime"),
    ):
        ended = other.profile("export", "--model", "nano", "--out", "b", *arguments)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert words in " ".join(ended.stderr.split())
    for family, words in (
        ("sad", "the model family 'sad' of the package broken_plugin cannot be imported: OSError"),
        ("no", "the model family 'no' of the package broken_plugin is no family"),
        ("stable_difusion", "unknown model family 'stable_difusion' Did you mean stable_diffusion?"),
    ):
        ended = other.profile("export", "--model", str(other.model(family)), "--out", "b")
        assert ended.returncode == 2
        assert words in " ".join(ended.stderr.split())
    assert other.profile("--model", "nano", "--dry-run").returncode == 0


def test_an_engine_that_breaks_in_the_runner_ends_the_run_as_refused(toy_bundle: Path, tmp_path: Path) -> None:
    other = Site(tmp_path)
    install(
        other.packages,
        "ontoy",
        {"ondevice_profiler.engines": {"toy": "ontoy:ToyEngine"}},
        code="raise OSError('no such library')",
    )
    ended = other.profile("--bundle", str(toy_bundle), "--store", "store", "--json", *LEAST)
    assert ended.returncode == 2, ended.stderr
    summary = json.loads(ended.stdout)
    assert summary["outcome"] == "refused"
    assert "the engine 'toy' of the package ontoy cannot be imported: OSError: no such library" in summary["reason"]

"""The product as people install it: from a wheel, from a checkout, and without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from profiler import catalog

ROOT = Path(__file__).parents[1]
_TELL = """
import json
from profiler import catalog
print(json.dumps({
    "from": catalog.__file__,
    "models": sorted(catalog.models()),
    "devices": sorted(catalog.device_profiles()),
    "policy": catalog.policy("moi-bench").name,
    "rows": len(catalog.reference("moi-bench").rows),
    "bundle": catalog.shipped_bundle(catalog.model("nano")) is not None,
}))
"""
_MAIN = "import sys; from profiler.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built as `pip wheel` does, with hatchling at hand."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the product alone."""
    target = tmp_path_factory.mktemp("installed")
    pip("install", str(wheel), "--no-deps", "--target", str(target))
    return target


def pip(*arguments: str, python: str | Path = sys.executable) -> None:
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def run(code: str, *arguments: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    cache = {"XDG_CACHE_HOME": str(cwd / "cache")}
    first = {"PYTHONPATH": str(path)} if path else {}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **cache, **first},
    )


def facts_of(cwd: Path, path: Path | None = None) -> dict[str, object]:
    ended = run(_TELL, cwd=cwd, path=path)
    assert ended.returncode == 0, ended.stderr
    facts: dict[str, object] = json.loads(ended.stdout)
    return facts


def test_a_wheel_holds_the_three_packages_and_all_their_data(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    packages = ("profiler", "exporters", "device_profiles")
    assert {name.split("/")[0] for name in inside if ".dist-info" not in name} == set(packages)
    in_checkout = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert in_checkout - inside == set()


def test_an_installed_wheel_finds_its_data_from_anywhere(installed: Path, tmp_path: Path) -> None:
    facts = facts_of(tmp_path, installed)
    assert str(facts["from"]).startswith(str(installed))
    assert facts["models"] == sorted(catalog.models())
    assert facts["devices"] == sorted(catalog.device_profiles())
    assert facts["policy"] == "moi-bench"
    assert facts["bundle"] == (catalog.shipped_bundle(catalog.model("nano")) is not None)


def test_a_checkout_finds_the_same_data_from_anywhere(installed: Path, tmp_path: Path) -> None:
    from_wheel, from_checkout = facts_of(tmp_path, installed), facts_of(tmp_path)
    assert str(from_checkout.pop("from")).startswith(str(ROOT))
    from_wheel.pop("from")
    assert from_checkout == from_wheel


def test_the_main_job_starts_from_an_installed_wheel(installed: Path, small_bundle: Path, tmp_path: Path) -> None:
    shipped = catalog.shipped_bundle(catalog.model("nano"))
    model = "nano" if shipped else str(small_bundle)
    ended = run(_MAIN, "--dry-run", "--json", "--model", model, cwd=tmp_path, path=installed)
    assert (ended.returncode, ended.stderr) == (0, "")
    facts = json.loads(ended.stdout)
    assert facts["model"] == ("nano" if shipped else "small")
    assert str(facts["bundle"]).startswith(str(installed if shipped else small_bundle))


def test_a_folder_of_the_same_name_where_the_user_stands_is_not_taken_for_the_runner(
    installed: Path, small_bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "profiler").mkdir()
    (tmp_path / "profiler" / "__init__.py").write_text("raise SystemExit('the wrong profiler')")
    start = "import sys; sys.path.remove(''); " + _MAIN
    least = ["--cold-starts", "1", "--warmups", "0", "--repeats", "1", "--observer-pairs", "0"]
    where = ["--model", str(small_bundle), "--store", str(tmp_path / "store"), "--json"]
    ended = run(start, *where, *least, cwd=tmp_path, path=installed)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_the_main_job_runs_where_torch_was_never_installed(wheel: Path, tmp_path: Path) -> None:
    if catalog.shipped_bundle(catalog.model("nano")) is None:
        pytest.skip("nano's bundle is not in this checkout")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip("install", str(wheel), python=python)
    told = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    assert told.returncode == 1
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("PYTHONPATH", None)
    command = [tmp_path / "venv" / "bin" / "profile", "--device", "local", "--model", "nano", "--json"]
    where = ["--store", tmp_path / "store"]
    ended = subprocess.run(
        [*command, *where], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert (summary["outcome"], summary["model"]) == ("completed", "nano")
    assert summary["latency_ns"]["n"] == 20

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import onnxruntime
import pytest

from profiler.errors import InputError
from profiler.runner.engines.installed import KINDS, engine_for, installed, lack_of, open_engine


def test_the_products_own_engines_are_known() -> None:
    assert set(KINDS) == {"onnxruntime", "executorch", "coreml"}


def test_the_extras_that_bring_engines_are_the_projects() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert {kind.extra for kind in KINDS.values()} - {None} <= project["optional-dependencies"].keys()


def test_what_is_installed_is_told_with_its_version() -> None:
    assert installed()["onnxruntime"] == onnxruntime.__version__


def test_a_runner_imports_only_the_engine_that_it_opens() -> None:
    code = """
import sys
import profiler.runner.__main__
from profiler.runner.engines.installed import installed, open_engine
def frameworks(): return sorted({name.split(".")[0] for name in sys.modules} & {"onnxruntime", "executorch", "torch"})
installed()
print(frameworks())
print(open_engine("onnxruntime", threads=1).name, frameworks())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["[]", "onnxruntime ['onnxruntime']"]


def test_a_recipe_that_nothing_here_runs_is_refused() -> None:
    assert (engine_for("onnx"), engine_for("executorch")) == ("onnxruntime", "executorch")
    with pytest.raises(InputError, match=r"Core ML runs on Apple devices only; this machine has .*, not macOS"):
        engine_for("coreml")
    with pytest.raises(InputError, match="not macOS"):
        open_engine("coreml", threads=None)
    assert "coreml" not in installed()  # also where coremltools is, which exports everywhere
    assert engine_for("executorch", "xnnpack") == "executorch"
    with pytest.raises(InputError, match="no coreml backend; programs for it run in apps for Apple devices"):
        engine_for("executorch", "coreml")
    with pytest.raises(InputError, match="no vulkan backend"):
        engine_for("executorch", "vulkan")


def test_an_engine_that_is_not_there_names_its_extra() -> None:
    code = """
import sys
from importlib.machinery import PathFinder

class WithoutTorch(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "torch" else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTorch
from profiler.errors import MissingExtra
from profiler.runner.engines.installed import installed, open_engine
print(sorted(installed()))
try:
    open_engine("executorch", threads=None)
except MissingExtra as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[0] == "['onnxruntime']"
    assert "pip install 'ondevice-profiler[executorch]'" in ended.stdout
    assert "pip install onnxruntime" in str(lack_of("onnxruntime"))

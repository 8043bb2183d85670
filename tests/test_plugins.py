from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profiler import codec, plugins
from profiler.errors import InputError, InvalidRecord, MissingExtra, UnknownName
from profiler.records.recipe import Recipe
from profiler.runner.engines.installed import engine_for, installed, lack_of, open_engine
from tests.toy_plugin.installing import ENGINES, RUNTIMES, Points, install

OWN = ("onnx", "executorch")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, to install into."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def brings(group: str, **names: str) -> Points:
    return {group: names}


def told(kind: type[Exception], group: str, name: str) -> str:
    with pytest.raises(kind) as caught:
        plugins.find(group, name, OWN)
    return " ".join(str(caught.value).split())


def test_names_are_told_with_their_packages_and_nothing_is_imported(site: Path) -> None:
    install(site, "loud", brings(RUNTIMES, shout="loud:RUNTIME"), code="raise SystemError('imported')")
    assert plugins.plugins(RUNTIMES) == {"shout": "loud"}
    assert plugins.version_of(RUNTIMES, "shout") == {"loud": "1.0"}
    assert plugins.find(RUNTIMES, "shout", OWN) is not None
    assert "loud" not in sys.modules


def test_what_the_product_has_itself_needs_no_plug_in() -> None:
    assert plugins.find(RUNTIMES, "onnx", OWN) is None
    assert plugins.version_of(RUNTIMES, "onnx") == {}


def test_a_typing_error_names_what_there_is(site: Path) -> None:
    install(site, "loud", brings(RUNTIMES, shout="loud:RUNTIME"))
    assert "unknown runtime 'shoot' Did you mean shout?" in told(UnknownName, RUNTIMES, "shoot")
    assert "Known: executorch, onnx, shout." in told(UnknownName, RUNTIMES, "zzz")


def test_two_plug_ins_of_one_name_are_refused_and_others_are_not_touched(site: Path) -> None:
    for package in ("one", "two"):
        install(site, package, brings(RUNTIMES, same=f"{package}:RUNTIME"))
    install(site, "three", brings(RUNTIMES, other="three:RUNTIME"))
    assert "the runtime 'same' is brought by" in (words := told(InputError, RUNTIMES, "same"))
    assert "one" in words
    assert "two" in words
    assert "Uninstall" in words
    assert plugins.find(RUNTIMES, "other", OWN) is not None
    assert plugins.find(RUNTIMES, "onnx", OWN) is None


def test_a_plug_in_that_shadows_the_product_is_refused(site: Path) -> None:
    install(site, "sly", brings(RUNTIMES, onnx="sly:RUNTIME"))
    assert "the runtime 'onnx' is brought by the product itself and sly" in told(InputError, RUNTIMES, "onnx")
    assert plugins.find(RUNTIMES, "executorch", OWN) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise OSError('no such library')", "cannot be imported: OSError: no such library"),
        ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("", "cannot be imported: AttributeError"),
        ("def f(:", "cannot be imported: SyntaxError"),
    ],
)
def test_one_that_cannot_be_imported_is_named_with_its_package(site: Path, code: str, words: str) -> None:
    install(site, "broken_plugin", brings(RUNTIMES, bad="broken_plugin:RUNTIME"), code=code)
    entry = plugins.find(RUNTIMES, "bad", OWN)
    assert entry is not None
    with pytest.raises(InputError, match="the runtime 'bad' of the package broken_plugin") as caught:
        plugins.load(entry)
    assert words in str(caught.value)
    assert "Update or uninstall broken_plugin" in str(caught.value)
    sys.modules.pop("broken_plugin", None)


def test_what_a_plug_in_itself_has_to_say_is_passed_on(site: Path) -> None:
    code = "from profiler.errors import MissingExtra\nraise MissingExtra('toy', 'toy')"
    install(site, "picky", brings(RUNTIMES, picky="picky:RUNTIME"), code=code)
    entry = plugins.find(RUNTIMES, "picky", OWN)
    assert entry is not None
    with pytest.raises(MissingExtra, match="toy needs packages"):
        plugins.load(entry)


_ENGINE = (
    "class Engine:\n    name, version = 'quick', '1'\n    def __init__(self, *, threads=None): self.threads = threads\n"
)


def test_a_plug_ins_engine_is_told_and_opened_by_the_runner(site: Path) -> None:
    install(site, "quick_engine", brings(ENGINES, quick="quick_engine:Engine"), code=_ENGINE, version="3.1")
    assert installed()["quick"] == "3.1"
    assert engine_for("quick") == "quick"
    assert (open_engine("quick", threads=2).name, sys.modules["quick_engine"].__file__) == (
        "quick",
        str(site / "quick_engine.py"),
    )


def test_an_engine_that_cannot_be_made_is_named_with_its_package(site: Path) -> None:
    code = "def engine(*, threads): raise RuntimeError('no device')"
    install(site, "unlucky", brings(ENGINES, unlucky="unlucky:engine"), code=code)
    with pytest.raises(InputError, match="of the package unlucky cannot be made: RuntimeError: no device"):
        open_engine("unlucky", threads=None)


def test_an_engine_that_shadows_the_products_is_refused_where_it_is_asked_for(site: Path) -> None:
    install(site, "sly_engine", brings(ENGINES, onnxruntime="sly_engine:Engine"))
    with pytest.raises(InputError, match="the engine 'onnxruntime' is brought by the product itself and sly_engine"):
        engine_for("onnx")
    assert engine_for("executorch") == "executorch"


def test_a_runtime_without_an_engine_says_so() -> None:
    with pytest.raises(UnknownName, match="unknown runtime 'tpu'") as caught:
        engine_for("tpu")
    assert "No engine here runs its bundles" in str(caught.value)
    assert "Install the plug-in that brings it" in str(lack_of("tpu"))


@pytest.mark.parametrize("name", ["Shout", "a b", "../up", "9lives", "x" * 65])
def test_a_name_that_no_record_takes_is_refused(site: Path, name: str) -> None:
    install(site, "loud", brings(RUNTIMES, **{name: "loud:RUNTIME"}))
    assert "of the package loud has a name that no record takes" in told(InputError, RUNTIMES, name)
    with pytest.raises(InvalidRecord):
        codec.decode(codec.encode(Recipe(runtime=name, height=8, width=8)), Recipe, where="here")

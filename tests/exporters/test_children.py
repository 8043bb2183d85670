"""Steps of an export in processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil
import pytest
from safetensors.torch import load_file, save_file

from exporters.child import ComponentJob, Origin, Told
from exporters.children import Making, alone, resident_bytes
from exporters.pipeline import export
from profiler import bundle_files
from profiler.errors import InputError, InternalError, ModelError
from profiler.records.bundle import Bundle
from tests.exporters.conftest import Exported
from tests.exporters.small_pipelines import Kind, save_pipeline, small_recipe, spec_of


def in_children(source: Path, folder: Path, **options: Any) -> Bundle:
    spec = spec_of(source, "generate", "edit", edit={"image_guidance": 1.5})
    return export(spec, small_recipe(), folder, child_from=1, **options)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


class StopsAt:
    """Does something when a stage begins that is named so."""

    def __init__(self, stage: str, act: Callable[[], None]) -> None:
        self._stage, self._act = stage, act
        self.stages: list[str] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.stages.append(stage)
        if stage.startswith(self._stage):
            self._act()


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_children(number: signal.Signals) -> None:
    for child in psutil.Process().children():
        if "exporters.child" in child.cmdline():
            child.send_signal(number)


class Stopped(NamedTuple):
    """An export in children that was stopped at its second component, and the one that went on from there."""

    stop: KeyboardInterrupt
    left: list[str]
    parts: list[str]
    stages: list[str]
    took: dict[str, Making]
    bundle: Bundle
    folder: Path


@pytest.fixture(scope="module")
def stopped(edit_bundle: Exported, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """Export twice to one place; a process for each component is slow."""
    root, took = tmp_path_factory.mktemp("children"), dict[str, Making]()
    options: dict[str, Any] = {"tell_making": took.__setitem__}
    with pytest.raises(KeyboardInterrupt) as stop:
        in_children(edit_bundle.source, root / "bundle", progress=StopsAt("export denoiser", interrupt), **options)
    left = sorted(path.name for path in root.iterdir())
    parts = [path.name.split("-")[0] for path in (root / ".bundle.parts").iterdir()]
    again = StopsAt("nothing", interrupt)
    bundle = in_children(edit_bundle.source, root / "bundle", progress=again, **options)
    return Stopped(stop.value, left, parts, again.stages, took, bundle, root / "bundle")


@pytest.mark.slow
def test_a_bundle_made_in_children_is_the_one_made_here(edit_bundle: Exported, stopped: Stopped) -> None:
    bundle, took = stopped.bundle, stopped.took
    assert bundle.components == edit_bundle.bundle.components
    assert bundle.files == edit_bundle.bundle.files
    assert bundle.verification.components == edit_bundle.bundle.verification.components
    assert max(image.float_image.relative for image in bundle.verification.images.values()) < 2e-5
    assert set(took) == {"text_encoder", "denoiser", "decoder", "image_encoder", "images"}
    assert all(50e6 < making.peak_bytes < 5e9 and making.wall_s > 0 for making in took.values())
    bundle_files.check_files(stopped.folder, bundle)


@pytest.mark.slow
def test_an_interrupted_export_goes_on_at_the_component(stopped: Stopped) -> None:
    assert "the same command goes on there" in stopped.stop.__notes__[0]
    assert stopped.left == [".bundle.parts"]
    assert stopped.parts == ["text_encoder"]
    assert "text_encoder was made before" in stopped.stages
    assert hidden(stopped.folder.parent) == []


def test_other_weights_are_not_taken_for_those_made_before(tmp_path: Path) -> None:
    source = save_pipeline(tmp_path / "source")
    with pytest.raises(KeyboardInterrupt):
        in_one_child(source, tmp_path / "bundle", progress=StopsAt("export denoiser", interrupt))
    weights = source / "text_encoder" / "model.safetensors"
    save_file({name: value * 2 for name, value in load_file(weights).items()}, weights, metadata={"format": "pt"})
    again = StopsAt("export denoiser", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_one_child(source, tmp_path / "bundle", progress=again)
    assert "text_encoder was made before" not in again.stages


def in_one_child(source: Path, folder: Path, **options: Any) -> Bundle:
    return export(spec_of(source, *_tasks(source)), small_recipe(), folder, child_from=1, **options)


def _tasks(source: Path) -> tuple[Kind, ...]:
    return ("edit",) if source.name == "edit" else ("generate",)


def test_a_killed_child_is_told_as_that_with_its_peak(generate_source: Path, tmp_path: Path) -> None:
    killing = StopsAt("start a process", lambda: kill_children(signal.SIGKILL))
    with pytest.raises(
        ModelError, match=r"made text_encoder was killed .*out of memory.* it had reached \d+"
    ) as caught:
        in_one_child(generate_source, tmp_path / "bundle", progress=killing)
    assert "Free memory" in str(caught.value)
    assert hidden(tmp_path) in ([], [".bundle.parts"])


def test_a_child_that_ends_without_a_word_is_a_bug(generate_source: Path, tmp_path: Path) -> None:
    killing = StopsAt("start a process", lambda: kill_children(signal.SIGABRT))
    with pytest.raises(InternalError, match="made text_encoder ended with signal SIGABRT"):
        in_one_child(generate_source, tmp_path / "bundle", progress=killing)


def test_a_childs_own_error_is_the_exports(tmp_path: Path) -> None:
    source = save_pipeline(tmp_path / "source")
    path = source / "text_encoder" / "model.safetensors"
    weights = load_file(path)
    next(value for name, value in weights.items() if name.endswith("fc1.weight")).view(-1)[0] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"fc1\.weight holds NaN"):
        export(spec_of(source), small_recipe(text_encoder="nf4"), tmp_path / "bundle", child_from=1)


def test_one_destination_takes_one_export_at_a_time(generate_source: Path, tmp_path: Path) -> None:
    with alone(tmp_path / "bundle"), pytest.raises(InputError, match="is being exported by another process"):
        in_one_child(generate_source, tmp_path / "bundle")
    assert hidden(tmp_path) == []


def test_a_destination_below_a_file_is_refused(generate_source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"):
        in_one_child(generate_source, tmp_path / "file" / "bundle")


def test_a_child_does_not_outlive_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-m", "exporters.child"], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(60) != 0


def test_the_memory_of_a_process_is_what_it_cannot_drop() -> None:
    own = resident_bytes(os.getpid())
    with contextlib.suppress(OSError):
        assert 10e6 < own < psutil.Process().memory_info().rss
    assert resident_bytes("none") == 0


def test_a_child_understands_any_words_in_any_locale(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(spec_of(tmp_path), family="绘画")
    origin = Origin(spec=spec, recipe=small_recipe(), folder=str(tmp_path), weights="")
    job = ComponentJob(origin=origin, identity="", part="denoiser", destination=str(tmp_path / "out"))
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with subprocess.Popen(
        [sys.executable, "-m", "exporters.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ascii_only},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(msgspec.json.encode(job) + b"\n")
        child.stdin.flush()
        *_, last = child.stdout.read().splitlines()
    told = msgspec.json.decode(last, type=Told)
    assert (told.error, told.stage) == ("UnknownName", "unknown model family '绘画'")


def test_what_is_done_is_named_after_a_failure(edit_bundle: Exported, tmp_path: Path) -> None:
    killing = StopsAt("verify text_encoder", lambda: None)

    def kill_the_second(stage: str, done: int, total: int) -> None:
        killing(stage, done, total)
        if stage == "start a process" and "verify text_encoder" in killing.stages:
            kill_children(signal.SIGKILL)

    with pytest.raises(ModelError) as caught:
        in_one_child(edit_bundle.source, tmp_path / "bundle", progress=kill_the_second)
    assert f"What is done waits in {tmp_path / '.bundle.parts'}" in str(caught.value)


def test_components_of_another_recipe_make_room(generate_source: Path, tmp_path: Path) -> None:
    (tmp_path / ".bundle.parts" / "text_encoder-0123").mkdir(parents=True)
    (tmp_path / ".bundle.parts" / "text_encoder-0123" / "made.json").write_text("{}")
    with pytest.raises(KeyboardInterrupt):
        in_one_child(generate_source, tmp_path / "bundle", progress=StopsAt("weights of text_encoder", interrupt))
    assert hidden(tmp_path) == []

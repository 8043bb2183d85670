"""A bundle that is corrupt, swapped, hostile or does not fit together is refused before anything is started."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import load_file, save_file

from profiler import codec
from profiler.bundle_files import MANIFEST, describe, load_manifest, load_plan
from profiler.records.bundle import Bundle, BundleFile
from profiler.records.plan import Constant, Load, Output, Plan
from tests.faults.faulty_runner import Fault
from tests.faults.hosts import Desk
from tests.small_bundle import build_small_bundle

Spoil = Callable[[Path], None]
DECODER = "components/decoder.decode.onnx"


def on_file(name: str, change: Callable[[bytes], bytes]) -> Spoil:
    """Change a file's bytes, and leave the manifest as it is."""
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes())) and None


def on_manifest(change: Callable[[Bundle], Bundle]) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / MANIFEST).write_bytes(codec.encode_pretty(change(load_manifest(folder))))

    return spoil


def in_json(change: Callable[[dict[str, Any]], None]) -> Spoil:
    """Change the plan as JSON, in a bundle whose hashes are right."""

    def spoil(folder: Path) -> None:
        plan = json.loads((folder / "generate.json").read_bytes())
        change(plan)
        (folder / "generate.json").write_text(json.dumps(plan))
        sign(folder)

    return spoil


def in_plan(change: Callable[[Plan], Plan]) -> Spoil:
    def spoil(folder: Path) -> None:
        plan = change(load_plan(folder, load_manifest(folder), "generate"))
        (folder / "generate.json").write_bytes(codec.encode(plan))
        sign(folder)

    return spoil


def in_inputs(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "generate.safetensors"
        save_file(change(load_file(path)), path)
        sign(folder)

    return spoil


def sign(folder: Path) -> None:
    """Give the manifest the sizes and hashes of what is there now."""
    bundle = load_manifest(folder)
    files = tuple(describe(folder, entry.path) for entry in bundle.files)
    (folder / MANIFEST).write_bytes(codec.encode_pretty(replace(bundle, files=files)))


def with_path(path: str) -> Spoil:
    """Let the decoder's weights lie at another path, listed as the rules want it."""

    def change(bundle: Bundle) -> Bundle:
        decoder = replace(bundle.components["decoder"], files=(path,))
        entry = BundleFile(path=path, size_bytes=1, sha256="0" * 64)
        return replace(bundle, components={**bundle.components, "decoder": decoder}, files=(*bundle.files, entry))

    return on_manifest(change)


def swap(folder: Path) -> None:
    other = folder / "components/text_encoder.encode.onnx"
    (folder / DECODER).rename(folder / "kept")
    other.rename(folder / DECODER)
    (folder / "kept").rename(other)


def link(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).rename(folder.with_name("elsewhere"))
        (folder / name).symlink_to(folder.with_name("elsewhere"))

    return spoil


def nothing_in_place_of(name: str, put: Callable[[Path], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        put(folder / name)

    return spoil


def huge(folder: Path) -> None:
    with (folder / MANIFEST).open("ab") as stream:
        stream.truncate(1 << 36)  # a sparse file: no disk is used


def no_schedule(folder: Path) -> None:
    schedules = json.loads((folder / "generate.schedules.json").read_bytes())
    schedules["constants_by_steps"]["8"] = {}
    (folder / "generate.schedules.json").write_text(json.dumps(schedules))
    sign(folder)


NOT_THE_FILE = "is not the file its manifest names"
CASES: dict[str, tuple[Spoil, str]] = {
    "a flipped bit": (on_file(DECODER, lambda data: data[:-1] + bytes([data[-1] ^ 1])), NOT_THE_FILE),
    "a truncated file": (on_file(DECODER, lambda data: data[:-1]), NOT_THE_FILE),
    "an empty file": (nothing_in_place_of(DECODER, Path.touch), NOT_THE_FILE),
    "two files swapped": (swap, NOT_THE_FILE),
    "a wrong sha256": (
        on_manifest(
            lambda bundle: replace(bundle, files=(replace(bundle.files[0], sha256="0" * 64), *bundle.files[1:]))
        ),
        NOT_THE_FILE,
    ),
    "a missing file": (lambda folder: (folder / DECODER).unlink(), "is missing from the bundle"),
    "a folder for a file": (nothing_in_place_of(DECODER, Path.mkdir), "is missing from the bundle"),
    "a pipe for a file": (nothing_in_place_of(DECODER, os.mkfifo), "is missing from the bundle"),
    "a path that leads outside": (with_path("../../etc/passwd"), "unsafe path '../../etc/passwd'"),
    "an absolute path": (with_path("/etc/passwd"), "unsafe path '/etc/passwd'"),
    "a linked file": (link(DECODER), "is a link; a bundle holds plain files only"),
    "a linked folder": (link("components"), "is a link; a bundle holds plain files only"),
    "a linked manifest": (link(MANIFEST), "is a link; a bundle holds plain files only"),
    "a huge manifest": (huge, "bytes long; a record of its kind has up to 67108864"),
    "a deep manifest": (on_file(MANIFEST, lambda data: b'{"tools":' + b"[" * 100_000), "not a valid Bundle"),
    "a binary manifest": (on_file(MANIFEST, lambda data: bytes(range(256))), "not a valid Bundle"),
    "a manifest of a newer format": (
        on_file(MANIFEST, lambda data: data.replace(b'"schema_version": 1', b'"schema_version": 9')),
        "written in format 9",
    ),
    "a key twice in the manifest": (
        on_file(MANIFEST, lambda data: data.replace(b'"model": "small"', b'"model": "large",\n "model": "small"')),
        "bundle.json: the key 'model' stands twice",
    ),
    "a key twice deep in the plan": (
        lambda folder: (
            on_file("generate.json", lambda data: data.replace(b'"index":null', b'"index":null,"index":null'))(folder),
            sign(folder),
        )[0],
        "generate.json: the key 'index' stands twice",
    ),
    "an unknown plan step": (
        in_json(lambda plan: plan["body"][0].update(kind="branch")),
        "Invalid value 'branch'",
    ),
    "a step with an unknown field": (in_json(lambda plan: plan["body"][0].update(colour=1)), "unknown field `colour`"),
    "a plan that binds too little": (in_json(lambda plan: plan["body"][0]["bind"].clear()), "the function takes"),
    "a plan that loads what is not there": (
        in_plan(lambda plan: replace(plan, prepare=(Load(component="upscaler"),))),
        "the bundle has no component 'upscaler'",
    ),
    "a plan whose output is no image": (
        in_plan(lambda plan: replace(plan, body=(*plan.body[:-1], Output(value="latents", stage="decoder")))),
        "'latents' is not the float32 image",
    ),
    "a plan whose output is an input": (
        in_plan(lambda plan: replace(plan, body=(*plan.body[:-1], Output(value="noise", stage="decoder")))),
        "'noise' is not the float32 image",
    ),
    "a constant of another shape": (
        in_plan(
            lambda plan: replace(plan, constants={"step_sizes": Constant(dtype="float32", shape=(9,), values=(1.0,))})
        ),
        "has 1 values for shape [9]",
    ),
    "an input that is missing": (
        in_inputs(lambda tensors: {"noise": tensors["noise"]}),
        "the input 'prompt_ids' must be int32[1, 8], the bundle gives nothing",
    ),
    "an input of another type": (
        in_inputs(lambda tensors: {**tensors, "noise": tensors["noise"].astype(np.float64)}),
        "the input 'noise' must be float32[1, 4, 4, 4], the bundle gives float64",
    ),
    "an input of another shape": (
        in_inputs(lambda tensors: {**tensors, "noise": tensors["noise"][..., :-1].copy()}),
        "the bundle gives float32[1, 4, 4, 3]",
    ),
    "a pickle for inputs": (
        lambda folder: ((folder / "generate.safetensors").write_bytes(b"\x80\x04N."), sign(folder))[1],
        "is no safetensors file",
    ),
}


@pytest.fixture
def own_bundle(small_bundle: Path, tmp_path: Path) -> Path:
    """A copy of the small bundle to be spoilt."""
    return shutil.copytree(small_bundle, tmp_path / "bundle")


@pytest.mark.parametrize(("spoil", "words"), CASES.values(), ids=CASES)
def test_a_bundle_that_cannot_be_trusted_is_refused(
    own_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Spoil, words: str
) -> None:
    spoil(own_bundle)
    desk = Desk(own_bundle, tmp_path / "store", capsys)
    told = desk.measure(Fault("none"), "--json")
    assert told.code == 2
    assert words in " ".join(told.err.split())
    error = json.loads(told.out)["error"]
    assert (error["exit_code"], words in " ".join(error["message"].split())) == (2, True)
    assert not (tmp_path / "store").exists()


def test_a_schedule_of_nothing_is_refused(own_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    no_schedule(own_bundle)
    told = Desk(own_bundle, tmp_path / "store", capsys).measure(Fault("none"), "--steps", "8")
    assert told.code == 2
    assert "the schedule for 8 steps is empty" in told.err


def test_a_graph_that_no_engine_can_open_is_a_failed_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    desk = Desk(build_small_bundle(tmp_path / "bundle", fault="broken_graph"), tmp_path / "store", capsys)
    assert desk.measure(Fault("none")).code == 1
    run = desk.only_run()
    assert (run.outcome, run.stage, run.component) == ("failed", "load", "decoder")
    assert (run.reason or "").startswith("load_failed: decoder")
    desk.check_shown(run)


@pytest.mark.parametrize(
    ("file", "outcome", "reason", "code"),
    [
        (MANIFEST, "aborted", "sees another", 3),
        ("constants.safetensors", "aborted", "storage: No such file", 3),
        (DECODER, "failed", "load_failed: decoder", 1),
    ],
)
def test_a_file_that_goes_while_a_session_is_under_way(
    own_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    outcome: str,
    reason: str,
    code: int,
) -> None:
    desk = Desk(own_bundle, tmp_path / "store", capsys)
    told = desk.measure(Fault("remove", process=1, path=str(own_bundle / file)), "--cold-starts", "2")
    run = desk.only_run()
    assert (told.code, run.outcome) == (code, outcome)
    assert reason in (run.reason or "")
    assert len(run.iterations) == 1
    desk.check_shown(run)

"""Paths that stay inside, files that match their hashes, folders that are whole or not there."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from profiler import codec
from profiler.bundle_files import (
    MANIFEST,
    check_files,
    check_names,
    describe,
    inside,
    load_manifest,
    load_plan,
    load_schedules,
    manifest_sha256,
    sha256_of,
    written_whole,
)
from profiler.errors import InputError, InvalidRecord, MissingSource
from profiler.records.bundle import Bundle
from tests.records_for_tests import make_bundle, make_plan, make_schedules


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle folder with two files in it."""
    folder = tmp_path / "bundle"
    (folder / "weights").mkdir(parents=True)
    (folder / "decoder.onnx").write_bytes(b"graph")
    (folder / "weights" / "decoder.bin").write_bytes(bytes(range(256)) * 8)
    return folder


def _bundle_of(folder: Path) -> Bundle:
    return make_bundle(files=(describe(folder, "decoder.onnx"), describe(folder, "weights/decoder.bin")))


@pytest.mark.parametrize(
    "relative",
    ["../x", "a/../../x", "a/..", "/etc/passwd", "//etc/passwd", "..\\x", "a\\b", "C:/x", "C:x", "", ".", "./", "a\0b"],
)
def test_a_path_that_could_lead_outside_is_refused(folder: Path, relative: str) -> None:
    with pytest.raises(InvalidRecord, match="unsafe path"):
        inside(folder, relative)


def test_a_path_below_the_folder_is_accepted_whether_or_not_it_exists(folder: Path) -> None:
    assert inside(folder, "weights/decoder.bin") == folder / "weights" / "decoder.bin"
    assert inside(folder, "not/there/yet.bin") == folder / "not" / "there" / "yet.bin"


def test_a_link_is_refused_even_one_to_a_file_inside(folder: Path) -> None:
    (folder / "alias.onnx").symlink_to(folder / "decoder.onnx")
    with pytest.raises(InvalidRecord, match="is a link"):
        inside(folder, "alias.onnx")


def test_a_manifest_that_is_a_link_is_refused(folder: Path) -> None:
    (folder / MANIFEST).symlink_to(folder / "decoder.onnx")
    with pytest.raises(InvalidRecord, match="is a link"):
        load_manifest(folder)


def test_a_file_below_a_linked_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidRecord, match="is a link"):
        inside(folder, "linked/x.bin")


def test_a_dangling_link_is_refused(folder: Path) -> None:
    (folder / "dangling").symlink_to(folder / "nowhere")
    with pytest.raises(InvalidRecord, match="is a link"):
        inside(folder, "dangling")


@given(relative=st.text(st.sampled_from("a./\\: \0~é"), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_manifest_says_the_path_is_inside_or_refused(tmp_path: Path, relative: str) -> None:
    try:
        path = inside(tmp_path, relative)
    except InvalidRecord:
        return
    assert tmp_path in path.resolve().parents


def test_a_hash_is_that_of_the_whole_file_however_long(tmp_path: Path) -> None:
    data = b"x" * (2 * 1024 * 1024 + 3)
    (tmp_path / "long").write_bytes(data)
    assert sha256_of(tmp_path / "long") == hashlib.sha256(data).hexdigest()


def test_a_folder_as_described_passes_the_check(folder: Path) -> None:
    check_files(folder, _bundle_of(folder))


def test_a_file_that_is_used_but_not_listed_is_named(small_bundle: Path) -> None:
    bundle = load_manifest(small_bundle)
    check_names(small_bundle, bundle)
    task = bundle.tasks["generate"]
    weights = bundle.components["decoder"].files[0]
    for path in (weights, task.plan, task.schedules, task.defaults.path, bundle.prompt_encoding.tokenizer):
        rest = replace(bundle, files=tuple(entry for entry in bundle.files if entry.path != path))
        with pytest.raises(InvalidRecord, match=f"uses '{path}', but lists no such file"):
            check_names(small_bundle, rest)


def test_a_bundle_without_a_task_is_refused(small_bundle: Path) -> None:
    with pytest.raises(InvalidRecord, match="has no task"):
        check_names(small_bundle, replace(load_manifest(small_bundle), tasks={}))


@pytest.mark.parametrize("position", [0, 777, 2047])
def test_a_single_flipped_bit_is_found(folder: Path, position: int) -> None:
    bundle = _bundle_of(folder)
    path = folder / "weights" / "decoder.bin"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidRecord, match=r"decoder\.bin is not the file its manifest names"):
        check_files(folder, bundle)


def test_a_file_that_grew_or_went_is_found(folder: Path) -> None:
    bundle = _bundle_of(folder)
    (folder / "decoder.onnx").write_bytes(b"graph+")
    with pytest.raises(InvalidRecord, match=r"decoder\.onnx is not the file"):
        check_files(folder, bundle)
    (folder / "decoder.onnx").unlink()
    with pytest.raises(InvalidRecord, match="is missing"):
        check_files(folder, bundle)


def test_a_file_with_a_receipt_is_not_read_again(folder: Path, tmp_path: Path) -> None:
    bundle, receipts, path = _bundle_of(folder), tmp_path / "cache" / "receipts.json", folder / "decoder.onnx"
    check_files(folder, bundle, receipts)
    before = path.stat()
    path.write_bytes(b"GRAPH")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    check_files(folder, bundle, receipts)
    with pytest.raises(InvalidRecord, match="is not the file"):
        check_files(folder, bundle)


def test_a_file_that_changed_since_its_receipt_is_found(folder: Path, tmp_path: Path) -> None:
    bundle, receipts, path = _bundle_of(folder), tmp_path / "receipts.json", folder / "decoder.onnx"
    check_files(folder, bundle, receipts)
    before = path.stat()
    path.write_bytes(b"GRAPH")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(InvalidRecord, match="is not the file"):
        check_files(folder, bundle, receipts)


@pytest.mark.parametrize("content", [b"", b"not json", b'{"a": 1}', b"[" * 100_000])
def test_receipts_that_cannot_be_read_are_as_good_as_none(folder: Path, tmp_path: Path, content: bytes) -> None:
    receipts = tmp_path / "receipts.json"
    receipts.write_bytes(content)
    check_files(folder, _bundle_of(folder), receipts)
    assert str(folder / "decoder.onnx").encode() in receipts.read_bytes()


def test_a_folder_in_place_of_a_file_is_found(folder: Path) -> None:
    bundle = _bundle_of(folder)
    (folder / "decoder.onnx").unlink()
    (folder / "decoder.onnx").mkdir()
    with pytest.raises(InvalidRecord, match="is missing"):
        check_files(folder, bundle)


def test_a_folder_without_manifest_is_no_bundle_and_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(MissingSource, match="profile export"):
        load_manifest(tmp_path)


def test_manifest_plan_and_schedules_read_back_from_disk(folder: Path) -> None:
    bundle = _bundle_of(folder)
    (folder / MANIFEST).write_bytes(codec.encode_pretty(bundle))
    (folder / "generate.plan.json").write_bytes(codec.encode_pretty(make_plan()))
    (folder / "generate.schedules.json").write_bytes(codec.encode_pretty(make_schedules()))
    assert load_manifest(folder) == bundle
    assert load_plan(folder, bundle, "generate") == make_plan()
    assert load_schedules(folder, bundle, "generate") == make_schedules()
    assert manifest_sha256(folder) == codec.content_sha256(bundle)


def test_a_task_that_the_bundle_cannot_do_names_those_it_can(folder: Path) -> None:
    with pytest.raises(InputError, match="nano cannot edit; it can generate"):
        load_plan(folder, make_bundle(), "edit")


def test_a_folder_written_whole_appears_under_its_name_only(tmp_path: Path) -> None:
    with written_whole(tmp_path / "new" / "out") as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "file").write_text("content")
        assert not (tmp_path / "new" / "out").exists()
    assert (tmp_path / "new" / "out" / "sub" / "file").read_text() == "content"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_block_that_fails_leaves_nothing_behind(tmp_path: Path, error: type[BaseException]) -> None:
    def write_half() -> None:
        with written_whole(tmp_path / "out") as temporary:
            (temporary / "half").write_text("a file")
            raise error

    with pytest.raises(error):
        write_half()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "put", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")], ids=["folder", "file", "dangling link"]
)
def test_nothing_that_is_there_is_overwritten(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "out")
    with pytest.raises(InputError, match="never overwritten"), written_whole(tmp_path / "out"):
        pytest.fail("the block must not run")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_came_into_being_meanwhile_is_kept(tmp_path: Path) -> None:
    destination = tmp_path / "out"

    def write_too_late() -> None:
        with written_whole(destination) as temporary:
            (temporary / "file").write_text("mine")
            destination.mkdir()
            (destination / "file").write_text("theirs")

    with pytest.raises(InputError, match="never overwritten"):
        write_too_late()
    assert (destination / "file").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".out.deadbeef.lock").touch()
    (tmp_path / ".out.deadbeef.tmp").mkdir()
    with written_whole(tmp_path / "out") as temporary:
        (temporary / "file").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_living_writer_has_begun_is_left_alone(tmp_path: Path) -> None:
    with written_whole(tmp_path / "out") as first:
        with written_whole(tmp_path / "out.b"):
            pass
        lock = first.with_suffix(".lock")
        code = f"from pathlib import Path; from profiler.locks import hold; print(hold(Path({str(lock)!r})))"
        seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert first.is_dir()
    assert seen.strip() == "None"


def test_a_function_may_be_a_folder_all_of_whose_files_are_listed(small_bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(small_bundle, folder)
    package = folder / "components" / "decoder.mlpackage"
    (package / "Data").mkdir(parents=True)
    (package / "Data" / "model").write_bytes(b"model")
    bundle = load_manifest(folder)
    decoder = bundle.components["decoder"]
    relative = package.relative_to(folder).as_posix()
    functions = {name: replace(function, path=relative) for name, function in decoder.functions.items()}
    files = (f"{relative}/Data/model",)
    changed = replace(
        bundle,
        components={**bundle.components, "decoder": replace(decoder, functions=functions, files=files)},
        files=(*bundle.files, describe(folder, files[0])),
    )
    check_names(folder, changed)
    check_files(folder, changed)
    (package / "Data" / "more").write_bytes(b"unlisted")
    with pytest.raises(InvalidRecord, match=r"uses '.*/Data/more', but lists no such file"):
        check_names(folder, changed)


def test_a_function_in_a_file_that_is_not_listed_is_refused(small_bundle: Path) -> None:
    bundle = load_manifest(small_bundle)
    decoder = bundle.components["decoder"]
    functions = {name: replace(function, path="other.onnx") for name, function in decoder.functions.items()}
    components = {**bundle.components, "decoder": replace(decoder, functions=functions)}
    with pytest.raises(InvalidRecord, match=r"uses 'other\.onnx', but lists no such file"):
        check_names(small_bundle, replace(bundle, components=components))

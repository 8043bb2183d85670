"""Files to and from a phone: whole or not at all, with the reason that the phone itself gives."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import adbutils
import pytest

from profiler.clock import RealClock
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.files import Files
from profiler.devices.android.shell import Shell, quoted
from profiler.errors import DeviceError, InputError, MissingSource
from tests.phones.adb_server import Adb
from tests.phones.android.phone import VirtualAndroid

TMP = "/data/local/tmp"
GIB = 1 << 30


class OldTransport(Transport):
    """A way to a phone that offers none of the newer services."""

    def features(self) -> frozenset[str]:
        return frozenset({"shell_v2"})


@pytest.fixture
def old_files(transport: Transport, shell: Shell) -> Files:
    """Give the files of a phone that knows the first sync protocol only."""
    return Files(OldTransport(transport.server, transport.serial), shell)


@pytest.fixture(params=["files", "old_files"])
def either(request: pytest.FixtureRequest) -> Files:
    """Give the files over each version of the protocol."""
    found: Files = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 3_000_000])
def test_a_file_goes_and_comes_back_the_same(either: Files, tmp_path: Path, size: int) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(size))
    os.utime(source, (1_600_000_000, 1_600_000_000))

    assert either.push(source, f"{TMP}/file") == size
    assert either.pull(f"{TMP}/file", back) == size

    assert back.read_bytes() == source.read_bytes()
    assert back.stat().st_mtime == 1_600_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "source"]


def test_mode_and_time_are_the_ones_asked_for(either: Files, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"#!/bin/sh\n")

    either.push(source, f"{TMP}/tool", mode=0o755, mtime_s=1_234_567_890)

    state = either.stat(f"{TMP}/tool")
    assert state is not None
    assert (state.mode & 0o111, state.size_bytes, state.mtime_s) == (0o111, 10, 1_234_567_890)


@pytest.mark.parametrize("name", ["a b", "it's", "-n", "ü, ♥", "$HOME", "x,33188", "*", "c\\d"])
def test_a_name_may_be_odd(either: Files, shell: Shell, tmp_path: Path, name: str) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(name.encode())

    either.push(source, f"{TMP}/odd/{name}")
    either.pull(f"{TMP}/odd/{name}", back)

    assert back.read_text() == name
    assert shell.check(f"cat {quoted(f'{TMP}/odd/{name}')}") == name
    shell.check(f"rm -r {TMP}/odd")


def test_progress_counts_the_bytes_and_ends_at_all_of_them(files: Files, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(3_000_000))
    pushed: list[tuple[int, int]] = []
    pulled: list[tuple[int, int]] = []

    files.push(source, f"{TMP}/file", progress=lambda done, total: pushed.append((done, total)))
    files.pull(f"{TMP}/file", tmp_path / "back", progress=lambda done, total: pulled.append((done, total)))

    for seen in (pushed, pulled):
        assert len(seen) > 2
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert seen[-1] == (3_000_000, 3_000_000)


def test_sizes_over_four_gibibytes_are_right_where_adbutils_says_one(
    either: Files, shell: Shell, transport: Transport, adb: Adb
) -> None:
    shell.check(f"truncate -s {5 * GIB} {TMP}/huge")
    try:
        state = either.stat(f"{TMP}/huge")
        assert state is not None
        assert state.size_bytes == 5 * GIB
        assert adbutils.AdbClient(port=adb.port).device(transport.serial).sync.stat(f"{TMP}/huge").size == GIB
    finally:
        shell.check(f"rm {TMP}/huge")


def test_a_file_of_the_year_1970_is_there(either: Files, shell: Shell) -> None:
    shell.check(f"touch -d @0 {TMP}/epoch")

    state = either.stat(f"{TMP}/epoch")
    assert state is not None
    assert (state.size_bytes, state.mtime_s) == (0, 0)


@pytest.mark.parametrize("path", [f"{TMP}/nothing", f"{TMP}/epoch/below-a-file"])
def test_what_is_not_there_has_no_state(either: Files, shell: Shell, path: str) -> None:
    shell.check(f"touch {TMP}/epoch")

    assert either.stat(path) is None


def test_what_may_not_be_looked_at_is_denied_and_not_missing(either: Files, phone: VirtualAndroid) -> None:
    (phone.root / "data" / "app" / "private").mkdir(mode=0o700, exist_ok=True)

    with pytest.raises(DeviceError, match=r"cannot look at /data/app/private/file: .*Permission denied"):
        either.stat("/data/app/private/file")


def test_a_missing_file_is_told_and_nothing_is_made_here(either: Files, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=rf"cannot read {TMP}/nothing: there is no such file"):
        either.pull(f"{TMP}/nothing", tmp_path / "here")

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_may_not_be_read_is_told_in_the_phones_words(
    either: Files, phone: VirtualAndroid, tmp_path: Path
) -> None:
    secret = phone.root / "system" / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0o600)

    with pytest.raises(DeviceError, match=r"cannot read /system/secret: .*Permission denied"):
        either.pull("/system/secret", tmp_path / "here")

    assert list(tmp_path.iterdir()) == []


def test_a_denied_path_is_told_in_the_phones_words(either: Files, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(5_000_000))

    with pytest.raises(DeviceError, match=r"cannot write /system/x: .*(Permission denied|Read-only)") as caught:
        either.push(source, "/system/x")

    assert TMP in (caught.value.hint or "")


def test_a_folder_is_not_written_over_nor_read(either: Files, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")

    with pytest.raises(DeviceError, match=rf"cannot write {TMP}: it is a folder"):
        either.push(source, TMP)
    with pytest.raises(DeviceError, match=rf"cannot read {TMP}: it is a folder"):
        either.pull(TMP, tmp_path / "here")


def test_a_full_phone_is_told_and_nothing_half_written_stays(
    either: Files, shell: Shell, phone: VirtualAndroid, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(4_000_000))
    shell.check(f"rm -f {TMP}/full*")
    phone.fill_storage(leaving_bytes=1_000_000)
    try:
        with pytest.raises(DeviceError, match=rf"cannot write {TMP}/full: .*No space left on device") as caught:
            either.push(source, f"{TMP}/full")
    finally:
        phone.fill_storage(leaving_bytes=1 << 34)

    assert "Delete files" in (caught.value.hint or "")
    assert shell.run(f"ls {TMP}/full*").code != 0


def test_a_file_that_is_there_stays_as_it_was_when_a_push_fails(
    files: Files, shell: Shell, phone: VirtualAndroid, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"old")
    files.push(source, f"{TMP}/kept")
    source.write_bytes(bytes(4_000_000))

    phone.fill_storage(leaving_bytes=1_000_000)
    try:
        with pytest.raises(DeviceError, match="No space left"):
            files.push(source, f"{TMP}/kept")
    finally:
        phone.fill_storage(leaving_bytes=1 << 34)

    assert shell.check(f"cat {TMP}/kept") == "old"


def test_files_here_that_cannot_be_read_or_written_are_named(files: Files, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x")
    files.push(tmp_path / "source", f"{TMP}/file")

    with pytest.raises(MissingSource, match=r"there is no file .*/nothing to send"):
        files.push(tmp_path / "nothing", f"{TMP}/file")
    with pytest.raises(MissingSource, match="to send"):
        files.push(tmp_path, f"{TMP}/file")
    with pytest.raises(InputError, match=r"cannot write .*/nowhere/file"):
        files.pull(f"{TMP}/file", tmp_path / "nowhere" / "file")
    with pytest.raises(InputError, match="cannot write /dev/full: No space left"):
        files.pull(f"{TMP}/file", FullDisk("/dev/full"))


class FullDisk(type(Path())):  # type: ignore[misc]
    """A place whose part is on a full disk."""

    def with_name(self, name: str) -> FullDisk:
        return FullDisk("/dev/full")

    def unlink(self, missing_ok: bool = False) -> None:
        assert str(self) == "/dev/full"


def test_a_phone_that_is_unplugged_while_it_is_sent_to_is_told_with_the_path(
    files: Files, phone: VirtualAndroid, transport: Transport, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(16 << 20))

    def unplug(done: int, total: int) -> None:
        if done >= total // 2 and phone.adbd.links():
            phone.unplug()

    try:
        with pytest.raises(DeviceError, match=rf"cannot write {TMP}/cut: the connection broke"):
            files.push(source, f"{TMP}/cut", progress=unplug)
    finally:
        phone.plug()
    transport.wait(20, RealClock())
    assert files.stat(f"{TMP}/cut") is None


def test_a_phone_that_is_unplugged_while_it_is_read_leaves_nothing_here(
    files: Files, phone: VirtualAndroid, transport: Transport, shell: Shell, tmp_path: Path
) -> None:
    shell.check(f"truncate -s {16 << 20} {TMP}/long")

    def unplug(done: int, total: int) -> None:
        if done >= total // 2 and phone.adbd.links():
            phone.unplug()

    try:
        with pytest.raises(DeviceError, match=rf"cannot read {TMP}/long: the connection broke"):
            files.pull(f"{TMP}/long", tmp_path / "here", progress=unplug)
    finally:
        phone.plug()
    transport.wait(20, RealClock())
    assert list(tmp_path.iterdir()) == []


def test_a_phone_that_stops_reading_is_not_waited_for_without_an_end(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(8 << 20))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = Files(_Silent(listener.getsockname()[1]), shell, stall_s=0.1)

        with pytest.raises(DeviceError, match=r"cannot write .*/x: nothing moved for 0\.1 s") as caught:
            silent.push(source, f"{TMP}/x")

    assert "Replug" in (caught.value.hint or "")


class _Silent(OldTransport):
    """A way to something that takes connections and never reads."""

    def __init__(self, port: int) -> None:
        super().__init__(Server(environment={}), "silent")
        self._port = port

    def open(self, service: str, timeout_s: float = 10.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=timeout_s)

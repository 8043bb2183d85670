"""Bundles on a phone: what is sent, what is not, and what an interruption leaves to go on from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from profiler import codec
from profiler.bundle_files import MANIFEST, describe
from profiler.clock import RealClock
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.content import BUNDLES, Content
from profiler.devices.android.files import Files, Outgoing
from profiler.devices.android.receipts import read_receipts
from profiler.devices.android.shell import Output, Shell
from profiler.errors import DeviceError, InvalidRecord
from profiler.records.bundle import Bundle
from tests.phones.android.phone import VirtualAndroid
from tests.records_for_tests import make_bundle

FILES = {"text/weights.bin": 200_000, "denoiser/weights.bin": 2_500_000, "plan.json": 300, "odd name, it's.bin": 0}
Made = tuple[Path, Bundle]


def write_bundle(folder: Path, contents: dict[str, bytes]) -> Made:
    """Write files and a manifest that names them."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    manifest = make_bundle(files=tuple(describe(folder, name) for name in contents))
    (folder / MANIFEST).write_bytes(codec.encode(manifest))
    return folder, manifest


@pytest.fixture
def contents() -> dict[str, bytes]:
    """Give what is in a bundle, another each time."""
    return {name: os.urandom(size) for name, size in FILES.items()}


@pytest.fixture
def made(tmp_path: Path, contents: dict[str, bytes]) -> Made:
    """Give a bundle."""
    return write_bundle(tmp_path / "bundle", contents)


@pytest.fixture
def content(shell: Shell, files: Files) -> Content:
    """Give a phone without bundles."""
    found = Content(shell, files)
    found.forget()
    return found


class Counted(Shell):
    """A shell that knows what was run."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.commands: list[str] = []

    def run(self, command: str, *arguments: float, **more: float) -> object:  # type: ignore[override]
        self.commands.append(command)
        return super().run(command, *arguments, **more)  # type: ignore[arg-type]


def damage(file: Path) -> None:
    """Change a byte."""
    with file.open("r+b") as stream:
        stream.seek(100)
        byte = stream.read(1)
        stream.seek(100)
        stream.write(bytes([byte[0] ^ 1]))


def on_phone(phone: VirtualAndroid, path: str) -> dict[str, bytes]:
    """Return the files of a folder on the phone, as they are, but for receipts."""
    root = phone.root / path.lstrip("/")
    found = {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}
    found.pop(".receipts")
    return found


def test_all_files_arrive_and_the_phone_itself_hashed_them(
    content: Content, made: Made, contents: dict[str, bytes], phone: VirtualAndroid
) -> None:
    placed = content.put(*made)

    manifest = (made[0] / MANIFEST).read_bytes()
    assert placed.path == f"{BUNDLES}/{hashlib.sha256(manifest).hexdigest()[:16]}"
    assert set(placed.sent) == {*FILES, MANIFEST}
    assert placed.sent_bytes == sum(FILES.values()) + len(manifest)
    assert on_phone(phone, placed.path) == {**contents, MANIFEST: manifest}
    receipts = read_receipts((phone.root / placed.path.lstrip("/") / ".receipts").read_text())
    assert {name: receipt.sha256 for name, receipt in receipts.items()} == {
        name: hashlib.sha256(data).hexdigest() for name, data in on_phone(phone, placed.path).items()
    }


def test_an_unchanged_bundle_takes_one_command_and_sends_nothing(
    content: Content, made: Made, transport: Transport
) -> None:
    first = content.put(*made)
    counted = Counted(transport)

    second = Content(counted, Files(transport, counted)).put(*made)

    assert (second.path, second.sent, second.sent_bytes) == (first.path, (), 0)
    assert len(counted.commands) == 1
    counted.close()


def test_progress_counts_bytes_over_all_files(content: Content, made: Made) -> None:
    seen: list[tuple[int, int, str]] = []

    placed = content.put(*made, progress=lambda *step: seen.append(step))

    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert {total for _, total, _ in seen} == {placed.sent_bytes}
    assert seen[-1][0] == placed.sent_bytes
    assert "denoiser/weights.bin" in {path for _, _, path in seen}


def test_changing_one_component_sends_that_one(
    content: Content, made: Made, contents: dict[str, bytes], tmp_path: Path, phone: VirtualAndroid
) -> None:
    old = content.put(*made)
    changed = {**contents, "text/weights.bin": os.urandom(100_000)}
    other = write_bundle(tmp_path / "other", changed)

    placed = content.put(*other)

    assert set(placed.sent) == {"text/weights.bin", MANIFEST}
    assert set(placed.reused) == FILES.keys() - {"text/weights.bin"}
    assert on_phone(phone, placed.path) == {**changed, MANIFEST: (other[0] / MANIFEST).read_bytes()}
    assert set(content.bundles()) == {Path(old.path).name, Path(placed.path).name}


def test_a_phone_that_forbids_links_copies_and_hashes_the_copy(
    content: Content,
    made: Made,
    contents: dict[str, bytes],
    tmp_path: Path,
    transport: Transport,
    phone: VirtualAndroid,
) -> None:
    content.put(*made)
    other = write_bundle(tmp_path / "other", {**contents, "plan.json": b"{}"})
    shell = _NoLinks(transport)

    placed = Content(shell, Files(transport, shell)).put(*other)

    assert set(placed.sent) == {"plan.json", MANIFEST}
    assert on_phone(phone, placed.path)["denoiser/weights.bin"] == contents["denoiser/weights.bin"]
    assert (phone.root / placed.path.lstrip("/") / "denoiser/weights.bin").stat().st_nlink == 1
    shell.close()


class _NoLinks(Shell):
    """A shell on a phone whose policy forbids hard links, as that of user builds does."""

    def run(self, command: str, *arguments: float, **more: float) -> object:  # type: ignore[override]
        return super().run(f"ln() {{ return 1; }}; {command}", *arguments, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("harm", ["altered", "shorter", "gone", "touched"])
def test_a_file_that_somebody_changed_on_the_phone_is_found_and_made_good(
    content: Content, made: Made, contents: dict[str, bytes], phone: VirtualAndroid, harm: str
) -> None:
    placed = content.put(*made)
    file = phone.root / placed.path.lstrip("/") / "denoiser/weights.bin"
    harms: dict[str, Callable[[], object]] = {
        "altered": lambda: damage(file),
        "shorter": lambda: os.truncate(file, 10),
        "gone": file.unlink,
        "touched": file.touch,
    }
    harms[harm]()

    again = content.put(*made)

    assert again.sent == (() if harm == "touched" else ("denoiser/weights.bin",))
    assert on_phone(phone, again.path)["denoiser/weights.bin"] == contents["denoiser/weights.bin"]
    assert content.put(*made).sent == ()


def test_an_unplugged_cable_costs_only_the_file_under_way(
    content: Content, made: Made, contents: dict[str, bytes], phone: VirtualAndroid, transport: Transport
) -> None:
    def unplug(done: int, _total: int, path: str) -> None:
        if path == "denoiser/weights.bin" and done > 1_000_000 and phone.adbd.links():
            phone.unplug()

    try:
        with pytest.raises(DeviceError, match=r"cannot write .*/denoiser/weights\.bin: the connection broke"):
            content.put(*made, progress=unplug)
    finally:
        phone.plug()
    transport.wait(20, RealClock())
    assert content.bundles()[0].endswith(".part")

    placed = content.put(*made)

    assert set(placed.sent) == {"denoiser/weights.bin", "plan.json", "odd name, it's.bin", MANIFEST}
    assert on_phone(phone, placed.path).keys() == {*contents, MANIFEST}
    assert content.bundles() == (Path(placed.path).name,)


def test_whatever_the_moment_of_an_interruption_the_next_call_goes_on(
    content: Content, tmp_path: Path, phone: VirtualAndroid, transport: Transport
) -> None:
    contents = {"weights.bin": b"1" * 1000, "plans/plan.json": b"{}"}
    made = write_bundle(tmp_path / "bundle", contents)
    counted = Counted(transport)
    Content(counted, Files(transport, counted)).put(*made)
    counted.close()
    for moment in range(1, len(counted.commands)):
        content.forget()
        shell = _Interrupted(transport, moment)
        with pytest.raises(KeyboardInterrupt):
            Content(shell, Files(transport, shell)).put(*made)
        shell.close()

        placed = content.put(*made)

        assert on_phone(phone, placed.path).keys() == {*contents, MANIFEST}
        assert content.bundles() == (Path(placed.path).name,)


class _Interrupted(Shell):
    """A shell at which Ctrl-C comes instead of the nth command, and nothing goes through any more."""

    def __init__(self, transport: Transport, moment: int) -> None:
        super().__init__(transport)
        self._left = moment

    def run(self, command: str, *arguments: float, **more: float) -> object:  # type: ignore[override]
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().run(command, *arguments, **more)  # type: ignore[arg-type]


def test_a_file_that_arrives_damaged_is_sent_once_more(
    made: Made, contents: dict[str, bytes], phone: VirtualAndroid, transport: Transport, shell: Shell, content: Content
) -> None:
    damaging = _Damaging(transport, shell, phone, times=1)

    placed = Content(shell, damaging).put(*made)

    assert [path.rpartition(".part/")[2] for path in damaging.pushed] == [*FILES, MANIFEST, "text/weights.bin"]
    assert on_phone(phone, placed.path)["text/weights.bin"] == contents["text/weights.bin"]


def test_a_file_that_arrives_damaged_twice_is_removed_and_told(
    made: Made, transport: Transport, shell: Shell, content: Content, phone: VirtualAndroid
) -> None:
    with pytest.raises(DeviceError, match=r"text/weights\.bin arrived damaged on the phone twice") as caught:
        Content(shell, _Damaging(transport, shell, phone, times=2)).put(*made)

    assert "cable" in (caught.value.hint or "")
    assert not list((phone.root / BUNDLES.lstrip("/")).rglob("text/weights.bin"))


class _Damaging(Files):
    """Files of which the first ones to be sent change a bit on the way."""

    def __init__(self, transport: Transport, shell: Shell, phone: VirtualAndroid, times: int) -> None:
        super().__init__(transport, shell)
        self._root = phone.root
        self._left = times
        self.pushed: list[str] = []

    def push_staged(self, files: Iterable[Outgoing]) -> None:
        for file in files:
            self.pushed.append(file.path)
            super().push_staged([file])
            if file.path.endswith("text/weights.bin") and self._left:
                self._left -= 1
                damage(self._root / file.path.lstrip("/"))


def test_a_file_here_that_is_not_the_manifests_is_told_as_such(content: Content, made: Made) -> None:
    (made[0] / "plan.json").write_bytes(b"x" * FILES["plan.json"])

    with pytest.raises(InvalidRecord, match=r"plan\.json is not the file its manifest names"):
        content.put(*made)


def test_a_name_that_a_shell_cannot_list_is_refused_before_anything_is_sent(content: Content, tmp_path: Path) -> None:
    made = write_bundle(tmp_path / "bundle", {"a\nb": b"x"})

    with pytest.raises(InvalidRecord, match=r"'a\\nb'"):
        content.put(*made)

    assert content.bundles() == ()


def test_too_little_space_is_told_with_numbers_before_anything_is_sent(
    content: Content, made: Made, phone: VirtualAndroid
) -> None:
    seen: list[str] = []
    phone.fill_storage(leaving_bytes=100 << 20)
    try:
        with pytest.raises(
            DeviceError, match=r"has (100|99\.\d+) MiB free, and the bundle needs 2\.[56]\d* MiB more and 128"
        ):
            content.put(*made, progress=lambda _done, _total, path: seen.append(path))
    finally:
        phone.fill_storage(leaving_bytes=1 << 34)

    assert seen == []


def test_a_disk_that_fills_up_on_the_way_is_told_and_gone_on_from(
    made: Made, phone: VirtualAndroid, shell: Shell, files: Files, content: Content
) -> None:
    careless = Content(shell, files, margin_bytes=-(1 << 40))
    phone.fill_storage(leaving_bytes=1_000_000)
    try:
        with pytest.raises(DeviceError, match=r"cannot write .*denoiser/weights\.bin: .*No space left on device"):
            careless.put(*made)
    finally:
        phone.fill_storage(leaving_bytes=1 << 34)

    assert "text/weights.bin" not in careless.put(*made).sent


def test_old_bundles_are_removed_but_for_those_to_keep(
    content: Content, made: Made, contents: dict[str, bytes], tmp_path: Path
) -> None:
    old, new = content.put(*made), content.put(*write_bundle(tmp_path / "b", {**contents, "plan.json": b"{}"}))

    removed = content.forget(keep={Path(new.path).name})

    assert removed == (Path(old.path).name,)
    assert content.bundles() == (Path(new.path).name,)
    assert content.put(*write_bundle(tmp_path / "b", {**contents, "plan.json": b"{}"})).sent == ()  # links are files


def test_many_small_files_take_few_commands(content: Content, tmp_path: Path, transport: Transport) -> None:
    made = write_bundle(tmp_path / "many", {f"part {n}": b"%d" % n for n in range(60)})
    counted = Counted(transport)

    placed = Content(counted, Files(transport, counted)).put(*made)

    hashing = [command for command in counted.commands if "sha256sum" in command]
    assert (len(placed.sent), len(hashing)) == (61, 2)
    counted.close()


@pytest.mark.parametrize("sign", ["'", "長"])
def test_names_of_any_length_and_sign_fit_into_commands(content: Content, tmp_path: Path, sign: str) -> None:
    longest = sign * (240 // len(sign.encode()))
    many = {f"{longest}/{longest}/{number:03d}": b"x" for number in range(150)}
    folder, manifest = write_bundle(tmp_path / "named", many)
    assert len(content.put(folder, manifest).sent) == 151
    assert content.put(folder, manifest).sent == ()


def test_a_phone_where_nothing_may_be_written_is_told(shell: Shell, files: Files, made: Made) -> None:
    denied = Content(shell, files, folder="/system/bundles")

    with pytest.raises(
        DeviceError, match=r"umask 022; mkdir -p /system/bundles.* failed: .*(Permission denied|Read-only)"
    ):
        denied.put(*made)


def test_other_apps_may_read_what_was_brought(content: Content, made: Made, shell: Shell) -> None:
    placed = content.put(*made)

    listed = shell.check(f"cd {placed.path} && stat -c '%A' . .. text text/weights.bin {MANIFEST}").split()

    assert [bits[0] for bits in listed] == ["d", "d", "d", "-", "-"]
    assert {bits[-3:] for bits in listed[:3]} == {"r-x"}
    assert {bits[-3] for bits in listed[3:]} == {"r"}


def test_a_phone_with_the_first_protocols_only_gets_the_same(
    server: Server, made: Made, contents: dict[str, bytes]
) -> None:
    with VirtualAndroid("old-api29") as old:
        server.connect(old.address)
        transport = Transport(server, old.address)
        shell = Shell(transport)
        assert transport.features() == {""}
        content = Content(shell, Files(transport, shell))

        placed = content.put(*made)

        assert on_phone(old, placed.path) == {**contents, MANIFEST: (made[0] / MANIFEST).read_bytes()}
        assert content.put(*made).sent == ()
        assert shell.run("echo out; echo err >&2; exit 3") == Output(b"out\n", b"err\n", 3)
        server.disconnect(old.address)

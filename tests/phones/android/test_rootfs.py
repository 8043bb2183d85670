"""Device paths: links stay within the phone, and rights are the shell user's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.phones.android.rootfs import SHELL_UID, Rootfs


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Rootfs]:
    """A phone's `/` with a folder that the shell may write to, and one that it may not read."""
    root = tmp_path / "phone"
    (root / "data/tmp").mkdir(parents=True)
    (root / "secret").mkdir(mode=0o700)
    (root / "secret/file").write_text("secret")
    (root / "system").mkdir(mode=0o555)
    if os.geteuid() == 0:
        os.chown(root / "data/tmp", SHELL_UID, SHELL_UID)
    rootfs = Rootfs(root)
    yield rootfs
    rootfs.close()


@pytest.mark.parametrize("target", ["/data/tmp", "../data/tmp", "/../../../data/tmp", "/data/./tmp/"])
def test_links_lead_to_where_they_lead_on_the_phone(files: Rootfs, target: str) -> None:
    (files.root / "sdcard").symlink_to(target)
    assert files.host_path("/sdcard/x") == files.root / "data/tmp/x"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "", "data", "tmp", "out", "up"]), max_size=12))
def test_no_path_leads_out_of_the_phone(files: Rootfs, parts: list[str]) -> None:
    for name, target in (("out", "/../../data/up"), ("up", "../../..")):
        if not (files.root / "data" / name).is_symlink():
            (files.root / "data" / name).symlink_to(target)
    assert files.host_path("/".join(parts)).is_relative_to(files.root)


def test_a_link_to_itself_is_an_error_of_the_phone(files: Rootfs) -> None:
    (files.root / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        files.open("/loop", os.O_RDONLY)


def test_the_last_link_is_followed_only_on_request(files: Rootfs) -> None:
    (files.root / "data/tmp/link").symlink_to("/data/tmp/nowhere")
    assert files.stat("/data/tmp/link", follow=False).st_size == len("/data/tmp/nowhere")
    with pytest.raises(FileNotFoundError):
        files.stat("/data/tmp/link", follow=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="without root the files are our own")
def test_the_shell_user_reads_and_writes_only_what_it_may(files: Rootfs) -> None:
    with pytest.raises(PermissionError):
        files.open("/secret/file", os.O_RDONLY)
    with pytest.raises(PermissionError):
        files.open("/system/new", os.O_WRONLY | os.O_CREAT)
    os.close(files.open("/data/tmp/new", os.O_WRONLY | os.O_CREAT))
    assert (files.root / "data/tmp/new").stat().st_uid == SHELL_UID
    assert (files.root / "secret/file").read_text() == "secret"  # our own rights are back


def test_holes_count_as_used(files: Rootfs) -> None:
    with (files.root / "data/tmp/sparse").open("wb") as file:
        file.truncate(5 << 30)
    assert files.used_bytes() == 5 << 30

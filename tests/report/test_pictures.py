from __future__ import annotations

import os
from pathlib import Path

import pytest

from profiler.records.run import ImageFile
from profiler.report.pictures import picture
from tests.records_for_tests import SHA_IMAGE


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../outside.png", "outside"),
        ("/etc/passwd", "outside"),
        ("link.png", "outside"),
        ("pipe.png", "no plain file"),
        (".", "no plain file"),
        ("a\0b", "no readable image"),
        ("x" * 5000, "no readable image"),
        ("gone.png", "not there"),
    ],
)
def test_what_is_no_plain_file_in_the_folder_is_never_opened(tmp_path: Path, name: str, said: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "outside.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    os.mkfifo(folder / "pipe.png")
    found = picture(ImageFile(path=name, sha256=SHA_IMAGE, role="source"), folder, 100)
    assert found.data is None
    assert said in (found.reason or "")

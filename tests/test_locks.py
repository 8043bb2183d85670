from __future__ import annotations

from pathlib import Path

import pytest

from profiler.locks import hold


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    lock = hold(tmp_path / "lock")
    assert lock is not None
    assert hold(tmp_path / "lock") is None
    lock.close()
    again = hold(tmp_path / "lock")
    assert again is not None
    again.close()


def test_a_lock_whose_folder_is_gone_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hold(tmp_path / "gone" / "lock")

from __future__ import annotations

import sys

import pytest

from profiler.runner.engines.native_log import native_log


def test_the_runtimes_lines_are_taken_and_others_let_through(capsys: pytest.CaptureFixture[str]) -> None:
    with native_log() as lines:
        sys.stderr.write("[program.cpp:114] File size is too small.\nsomebody else's line\n[not.py:3] nor this\n")
    assert lines == ["File size is too small."]
    assert capsys.readouterr().err == "somebody else's line\n[not.py:3] nor this\n"


def test_stderr_is_itself_again_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), native_log():
        raise ZeroDivisionError
    sys.stderr.write("[program.cpp:1] after\n")
    assert capsys.readouterr().err == "[program.cpp:1] after\n"

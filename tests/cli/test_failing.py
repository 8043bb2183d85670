"""Errors for programs: with --json one object on stdout, and the same words on stderr."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.cli.stopping import QuitNow, Signals


@pytest.mark.parametrize(
    ("arguments", "kind", "words", "hint"),
    [
        (["--model", "nanno"], "unknown_name", "unknown model 'nanno'", "Did you mean nano"),
        (["show", "last"], "unknown_name", "unknown run 'last'", "profile runs"),
        (["--gap", "3"], "input", "--gap has no meaning", "Add --protocol spaced."),
        (["--repeats", "0"], "usage", "--repeats", None),
        (["--timeout", "0"], "usage", "--timeout", None),
        (["--timeout", "nan"], "usage", "--timeout", None),
        (["dance"], "usage", "No such command 'dance'", None),
        (["show"], "usage", "Missing argument", None),
    ],
)
def test_an_error_before_a_run_is_one_object(
    arguments: list[str],
    kind: str,
    words: str,
    hint: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = [] if "dance" in arguments else ["--store", str(tmp_path / "store")]
    assert main([*arguments, *where, "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    error = json.loads(printed.out)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, 2)
    assert words in error["message"]
    assert (hint or "") in (error["hint"] or "")
    assert words in " ".join(printed.err.split())


def test_without_json_an_error_is_words_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "nanno"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "unknown model" in printed.err) == ("", True)


def test_what_went_well_has_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--json", "--store", str(tmp_path / "store")]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_a_ctrl_c_and_the_second_ends_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Signals() as signals:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        with pytest.raises(QuitNow):
            os.kill(os.getpid(), number)
    assert signals.received == [number, number]
    assert signal.getsignal(number) == before


def test_a_signal_that_was_ignored_before_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
        assert signals.received == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_before_anything_is_under_way_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(tuple[str, ...]):
        def __iter__(self) -> Iterator[str]:
            raise KeyboardInterrupt

    assert main(Interrupted()) == 130
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "profile: stopped\n")


def test_a_command_on_another_thread_leaves_signals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]

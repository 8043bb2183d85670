from __future__ import annotations

import pytest

from profiler.devices.android.exits import Exit, read_exit_info
from profiler.devices.android.kill_lines import read_kill_lines
from profiler.devices.android.kill_reason import kill_reason
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def exits() -> tuple[Exit, ...]:
    read = read_exit_info(capture("exit_info"))
    assert not isinstance(read, Unavailable)
    return read


@pytest.mark.parametrize(
    ("pid", "cause", "words"),
    [
        (25702, "low_memory", "killed because the phone ran out of memory at 4 GiB resident"),
        (3421, "crash", "crashed"),
        (2176, "anr", "did not respond (ANR): bg anr"),
        (5410, "request", "force stop: stop com.example.runner"),
        (5411, "likely_low_memory", "at 1.30 GiB resident, most likely because memory ran out: this phone does not"),
        (5412, "native_crash", "crashed in native code"),
        (5413, "freezer", "killed by the app freezer"),
        (5414, "excessive_resource", "excessive cpu"),
        (5415, "exit", "exit code 3"),
        (5416, "other", "SOMETHING NEW"),
    ],
)
def test_exit_info_alone_gives_the_reason(pid: int, cause: str, words: str) -> None:
    reason = kill_reason(pid, exits(), ())
    assert reason is not None
    assert reason.cause == cause
    assert words in reason.sentence


@pytest.mark.parametrize(
    ("pid", "cause", "words"),
    [
        (17757, "low_memory", "4.24 GiB resident and 2.30 GiB swapped: min watermark is breached even after kill"),
        (17758, "exit", "exit code 3"),
        (17759, "native_crash", "signal 11 (SIGSEGV)"),
        (17760, "native_crash", "signal 6 (SIGABRT)"),
        (31426, "request", "killed by the activity manager: stop com.example.runner"),
        (31428, "crash", "java.lang.OutOfMemoryError"),
        (31429, "anr", "Input dispatching timed out"),
        (4242, "low_memory", "ran out of memory"),
    ],
)
def test_the_log_alone_gives_the_reason(pid: int, cause: str, words: str) -> None:
    reason = kill_reason(pid, (), read_kill_lines(capture("logcat_kills")))
    assert reason is not None
    assert reason.cause == cause
    assert words in reason.sentence


def test_the_low_memory_killers_line_counts_more_than_a_mere_signal() -> None:
    kills = read_kill_lines(capture("lmk_new").replace("25702", "5411"))
    reason = kill_reason(5411, exits(), kills)
    assert reason is not None
    assert (reason.cause, reason.rss_bytes) == ("low_memory", 4_223_760 * 1024)


def test_signal_9_is_a_signal_on_a_phone_that_reports_low_memory_as_such() -> None:
    reason = kill_reason(5411, exits(), (), reports_low_memory=True)
    assert reason is not None
    assert (reason.cause, reason.signal) == ("signal", 9)
    zygote = read_kill_lines("I Zygote  : Process 7 exited due to signal 9 (Killed)")
    assert str(kill_reason(7, (), zygote)).count("likely_low_memory") == 1


def test_a_tombstone_takes_its_signal_from_whoever_tells_it() -> None:
    tombstone = "F DEBUG : pid: 7, tid: 8, name: engine  >>> com.example.runner <<<\n"
    fatal = "F libc : Fatal signal 6 (SIGABRT), code -1 in tid 8 (engine), pid 7 (runner)\n"
    zygote = "I Zygote : Process 7 exited due to signal 11 (Segmentation fault)\n"
    for log, signal in ((tombstone, None), (tombstone + zygote, 11), (fatal + zygote, 6)):
        reason = kill_reason(7, (), read_kill_lines(log))
        assert reason is not None
        assert (reason.cause, reason.signal) == ("native_crash", signal)


def test_a_size_that_nobody_knows_is_not_named() -> None:
    read = read_exit_info("ApplicationExitInfo #0:\n  pid=7 reason=3 (LOW_MEMORY) status=0 pss=0 rss=0 state=empty\n")
    assert not isinstance(read, Unavailable)
    reason = kill_reason(7, read, ())
    assert reason is not None
    assert (reason.sentence, reason.signal) == ("killed because the phone ran out of memory", None)
    other = kill_reason(5416, exits(), ())
    assert other is not None
    assert other.sentence == "killed by the system: SOMETHING NEW"


def test_another_processs_end_tells_nothing() -> None:
    assert kill_reason(1, exits(), read_kill_lines(capture("logcat_kills"))) is None


def test_a_process_that_merely_died_has_no_reason_of_its_own() -> None:
    reason = kill_reason(7, (), read_kill_lines("I am_proc_died: [0,7,com.example.runner,900,17]"))
    assert reason is not None
    assert reason.cause == "other"

from __future__ import annotations

from pathlib import Path

from profiler.catalog import policy
from profiler.records.run import ImageFile
from profiler.report.comparing import lead
from profiler.report.entry import Entry
from profiler.report.summary import summarise
from tests.runs_for_tests import make_run, make_samples, make_settings


def test_images_that_should_differ_and_do_not_are_told_of() -> None:
    output = (ImageFile(path="a.png", sha256="1" * 64, role="output"),)
    runs = [
        make_run(run_id=f"run-{inputs}", images=output, settings=make_settings(inputs_sha256=inputs)) for inputs in "xy"
    ]
    entries = [Entry(run, summarise(run, Path("folder"), policy("moi-bench")), (), Path("folder")) for run in runs]
    assert "The same image came of different inputs in one and two" in lead(entries, ["one", "two"])
    assert "same image" not in lead(entries[:1], ["one"])


def _two(*durations: tuple[int, ...]) -> list[Entry]:
    runs = [make_run(run_id=f"run-{number}", iterations=make_samples(ns)) for number, ns in enumerate(durations)]
    return [Entry(run, summarise(run, Path("folder"), policy("moi-bench")), (), Path("folder")) for run in runs]


def test_two_runs_are_told_apart_from_their_noise() -> None:
    slow, fast = (200, 201, 202, 203, 204, 205), (100, 101, 102, 103, 104, 105)
    words = lead(_two(slow, fast), ["slow", "fast"])
    assert "Slow takes 1.976 times as long as fast (95 % interval 1." in words
    assert "more than noise" in words
    assert "within the noise" in lead(_two(fast, fast), ["one", "two"])
    assert "too few images" in lead(_two((200,), (100,)), ["slow", "fast"])
    assert "times as long" not in lead(_two(slow, fast, fast), ["a", "b", "c"])

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from profiler.catalog import policy
from profiler.records.run import ImageFile
from profiler.report.comparing import comparison, lead
from profiler.report.entry import Entry
from profiler.report.summary import summarise
from tests.runs_for_tests import make_conditions, make_run, make_samples, make_settings


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


def test_a_run_that_ended_early_is_not_the_fastest_and_a_tie_names_nobody() -> None:
    entries = _two((100, 101, 102), (200, 201, 202), (200, 201, 202))
    stopped = replace(entries[0].run, outcome="interrupted", reason="stopped by the user")
    entries[0] = entries[0]._replace(run=stopped, summary=summarise(stopped, Path("folder"), policy("moi-bench")))
    words = lead(entries, ["stopped", "one", "two"])
    assert "owest median latency" not in words
    assert "owest peak memory" not in words


def test_conditions_that_change_a_result_are_held_against_each_other() -> None:
    run = make_run()
    other = replace(run, conditions=make_conditions(power_save=True, cpu_governor="powersave"))
    other = replace(other, settings=make_settings(negative_prompt="blur", scheduler="ddim"))
    entries = [Entry(r, summarise(r, Path("folder"), policy("moi-bench")), (), Path("folder")) for r in (run, other)]
    differing = [each.name for each in comparison(entries)[1] if each.differs]
    assert differing == ["scheduler", "power saving", "governor", "negative prompt"]

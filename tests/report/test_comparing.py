from __future__ import annotations

from pathlib import Path

from profiler.catalog import policy
from profiler.records.run import ImageFile
from profiler.report.comparing import lead
from profiler.report.entry import Entry
from profiler.report.summary import summarise
from tests.runs_for_tests import make_run, make_settings


def test_images_that_should_differ_and_do_not_are_told_of() -> None:
    output = (ImageFile(path="a.png", sha256="1" * 64, role="output"),)
    runs = [
        make_run(run_id=f"run-{inputs}", images=output, settings=make_settings(inputs_sha256=inputs)) for inputs in "xy"
    ]
    entries = [Entry(run, summarise(run, Path("folder"), policy("moi-bench")), (), Path("folder")) for run in runs]
    assert "The same image came of different inputs in one and two" in lead(entries, ["one", "two"])
    assert "same image" not in lead(entries[:1], ["one"])

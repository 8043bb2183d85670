from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from profiler.cli.progress import ExportProgress, SessionProgress
from profiler.records.event import Begin, Waiting
from profiler.records.job import Measurement
from profiler.session import Order, Progress
from tests.messages_for_tests import make_journal
from tests.small_bundle import make_order


def told(order: Order, *, terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100)
    with SessionProgress(console, order) as progress:
        progress.report(Progress("launch", 0, None))
        for event in make_journal():
            progress.report(Progress("run", 0, event))
        progress.report(Progress("collect", 0, None))
    return stream.getvalue()


def test_without_a_terminal_each_phase_is_a_line(small_bundle: Path) -> None:
    lines = told(make_order(small_bundle), terminal=False).splitlines()
    load, cold, timed = (f"{phase}, process 1 of 1" for phase in ("load", "cold", "timed"))
    assert lines == ["launch", load, cold, "waiting: a pause of 2 s", timed, "finishing", "collect"]


def test_on_a_terminal_a_bar_counts_the_images(small_bundle: Path) -> None:
    assert "2/2" in told(make_order(small_bundle), terminal=True)


def test_a_stage_of_any_name_is_shown_as_it_is(small_bundle: Path) -> None:
    stream, begun = io.StringIO(), next(event for event in make_journal() if isinstance(event, Begin))
    with SessionProgress(Console(file=stream, force_terminal=True, width=100), make_order(small_bundle)) as progress:
        progress.report(Progress("run", 0, replace(begun, stage="[/x]")))
    assert "load, process 1 of 1: [/x]" in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_runner_waits_for_does_not_steer_the_terminal(small_bundle: Path, terminal: bool) -> None:
    stream, begun = io.StringIO(), next(event for event in make_journal() if isinstance(event, Waiting))
    console = Console(file=stream, force_terminal=terminal, width=100)
    with SessionProgress(console, make_order(small_bundle)) as progress:
        progress.report(Progress("run", 0, replace(begun, reason="a\033]0;title\007b")))
    assert "waiting: a�]0;title�b" in stream.getvalue()


def test_a_measurement_of_minutes_counts_seconds(small_bundle: Path) -> None:
    order = make_order(small_bundle, measurement=Measurement(kind="sustained", minutes=1))
    assert "/61" in told(order, terminal=True)


def test_an_export_that_is_not_needed_says_nothing() -> None:
    stream = io.StringIO()
    with ExportProgress(Console(file=stream)):
        pass
    assert stream.getvalue() == ""


def test_an_export_tells_its_stages() -> None:
    stream = io.StringIO()
    with ExportProgress(Console(file=stream)) as progress:
        for number, stage in enumerate(("load", "denoiser")):
            progress.report(stage, number, 2)
    assert stream.getvalue().splitlines() == ["export, load", "export, denoiser"]

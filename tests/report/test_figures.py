from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image

from profiler.records.run import Run
from profiler.records.summary import CurvePoint, DriftSummary
from profiler.report.entry import Entry
from profiler.report.figures import canvas, drawings
from profiler.report.figures.drift import drift
from profiler.report.figures.environment import missing
from profiler.report.figures.latency import latency
from tests.report.entries_for_tests import edit_run, entry_of, failed_run, make_entry, make_trace
from tests.runs_for_tests import make_conditions, make_run, make_samples

DRIFT = DriftSummary(
    ratio=1.2,
    p_value=0.001,
    onset_s=40.0,
    curve=tuple(
        CurvePoint(start_s=at, end_s=at + 30, n=9, median_ns=4e8 + at * 1e6, p25_ns=3.9e8, p75_ns=5e8 + at * 1e6)
        for at in (0.0, 30.0, 60.0)
    ),
)


@pytest.fixture
def whole(tmp_path: Path) -> Entry:
    return entry_of(edit_run(), tmp_path, (make_trace(),))


def drawn(run: Run) -> str:
    found = latency(run, entry_of(run, Path("/nowhere"), ()).summary) if not run.images else None
    assert found is not None
    return canvas.svg(found, canvas.WIDE, "x")


def test_a_run_has_every_figure_that_it_has_samples_for(whole: Entry, tmp_path: Path) -> None:
    assert [d.name for d in drawings.of_run(whole)] == ["limits", "latency", "stages", "memory", "environment"]
    assert [d.name for d in drawings.of_run(entry_of(failed_run(), tmp_path))] == ["limits"]


@pytest.mark.parametrize("width", [canvas.WIDE, canvas.NARROW])
def test_a_figure_is_as_wide_as_asked_and_the_same_each_time(whole: Entry, width: int) -> None:
    for drawing in drawings.of_run(whole):
        first = canvas.svg(drawing, width, "a")
        assert re.match(rf'<svg viewBox="0 0 {width} \d+"', first)
        assert first == canvas.svg(drawing, width, "a")
        assert not set(re.findall(r'id="([^"]+)"', first)) & set(
            re.findall(r'id="([^"]+)"', canvas.svg(drawing, width, "b"))
        )


def test_a_png_has_two_dots_a_pixel(whole: Entry) -> None:
    for drawing in drawings.of_run(whole):
        assert Image.open(io.BytesIO(canvas.png(drawing))).size[0] == 2 * canvas.WIDE


def test_words_in_figures_are_no_formulas(tmp_path: Path) -> None:
    run = make_run(
        iterations=tuple(replace(s, stages=(replace(s.stages[0], stage="$\\frac{x$"),)) for s in make_samples())
    )
    (stages,) = [d for d in drawings.of_run(entry_of(run, tmp_path)) if d.name == "stages"]
    assert "$\\frac{x$" in canvas.svg(stages, canvas.WIDE, "x")


def test_an_image_that_took_far_longer_is_told_of_at_the_edge() -> None:
    text = drawn(
        make_run(iterations=make_samples((400_000_000,) * 20) + make_samples((9_000_000_000,), phase="cold"), images=())
    )
    assert "▲ 1 beyond, up to 9 s" in text


def test_thousands_of_images_are_drawn_by_their_extremes() -> None:
    run = make_run(iterations=make_samples(tuple(400_000_000 + step * 1000 for step in range(20_000))), images=())
    assert len(drawn(run)) < 400_000
    found = latency(run, entry_of(run, Path("/nowhere")).summary)
    assert found is not None
    assert "Of each 40 images the fastest, the middle and the slowest one are drawn." in found.caption


def test_a_long_line_keeps_its_lowest_and_highest_points() -> None:
    ys = [float(step % 997) for step in range(50_000)]
    xs, kept = canvas.thinned(list(range(50_000)), ys)
    assert len(kept) <= 1200
    assert (min(kept), max(kept)) == (0, 996)
    assert xs == sorted(xs)
    assert canvas.thinned([1, 2], [3, 4]) == ([1, 2], [3, 4])


def test_a_latency_axis_that_does_not_start_at_zero_says_so(whole: Entry) -> None:
    close = latency(make_run(images=()), entry_of(make_run(images=()), Path("/nowhere")).summary)
    assert close is not None
    assert close.caption.endswith("The axis does not start at zero.")


def test_a_sustained_run_shows_its_curve_and_a_burst_does_not(whole: Entry) -> None:
    sustained = replace(whole.summary, drift=DRIFT, protocol="sustained 10 min")
    found = drift(sustained)
    assert found is not None
    assert "400 ms in the first, 460 ms in the last" in found.alt
    assert "It changes most at 40 s." in found.alt
    assert "changes most at 40 s" in canvas.svg(found, canvas.NARROW, "x")
    assert drift(replace(sustained, protocol="burst")) is None


def test_readings_are_told_in_numbers(whole: Entry) -> None:
    (gauges,) = [d for d in drawings.of_run(whole) if d.name == "environment"]
    assert "Temperature: n = 4, 35 at the start, 35 to 36.5 °C." in gauges.alt
    assert "Processor clock, limit: n = 4, 2 at the start, 2 to 2 GHz." in gauges.alt
    assert "Processor use, others: n = 4, 0 at the start, 0 to 30 % of a core." in gauges.alt
    assert "Canary workload: n = 4, 1 at the start, 1 to 1.3 times as long as cool." in gauges.alt


def test_a_gauge_that_was_missing_at_first_and_read_later_is_not_missing() -> None:
    assert "processor clock" not in missing(make_run(), (make_trace(missing={"cpu_frequency_khz": "not yet"}),))


def test_gauges_of_one_reason_are_told_of_together() -> None:
    run = make_run(conditions=make_conditions(power=replace(make_conditions().power, reason=None)))
    trace = make_trace(
        missing={"battery_percent": "no battery", "external_power": "no battery", "thermal_headroom": "hidden"}
    )
    assert missing(run, (trace,)) == {"battery, external power": "no battery", "thermal headroom": "hidden"}


def test_memory_is_told_stage_by_stage(whole: Entry) -> None:
    (memory,) = [d for d in drawings.of_run(whole) if d.name == "memory"]
    assert "30 samples, from 50 MiB to at most 79 MiB" in memory.alt
    assert "load text_encoder 52 MiB" in memory.alt


def test_a_process_that_died_in_a_stage_is_drawn_to_its_last_sample(whole: Entry) -> None:
    trace = make_trace()
    dead = replace(trace, spans=(*trace.spans[:-1], replace(trace.spans[-1], end_boot_ns=None)))
    (memory,) = [d for d in drawings.of_run(whole._replace(traces=(dead,))) if d.name == "memory"]
    assert canvas.svg(memory, canvas.WIDE, "x").startswith("<svg")


def test_the_distance_to_limits_names_every_limit(tmp_path: Path) -> None:
    (limits,) = [d for d in drawings.of_run(make_entry(tmp_path)) if d.name == "limits"]
    assert "limits D4 10 s, D3 30 s, D2 60 s" in limits.alt
    assert "D4 ≤ 2 GiB" in canvas.svg(limits, canvas.WIDE, "x")


def test_runs_side_by_side_need_two_with_timed_images(whole: Entry, tmp_path: Path) -> None:
    failed = entry_of(failed_run(), tmp_path)
    assert drawings.side_by_side([whole, failed], ["a", "b"]) is None
    found = drawings.side_by_side([whole, whole, failed], ["a", "b", "c"])
    assert found is not None
    assert found.alt.startswith("Latency of 2 runs on one scale. a: median 412 ms (")


@pytest.mark.parametrize("latency_ns", [10**8, 10**12, 10**14])
def test_labels_of_limits_never_lie_over_one_another(latency_ns: int, tmp_path: Path) -> None:
    entry = make_entry(tmp_path, iterations=make_samples((latency_ns,) * 3))
    (limits,) = [d for d in drawings.of_run(entry) if d.name == "limits"]
    for width in (canvas.WIDE, canvas.NARROW):
        text = canvas.svg(limits, width, "x")
        placed = re.findall(
            r"translate\(([\d.]+) ([\d.]+)\)[^>]*>(D\d[^<]*)<|x=\"([\d.]+)\" y=\"([\d.]+)\"[^>]*>(D\d[^<]*)<", text
        )
        rows: dict[str, list[tuple[float, str]]] = {}
        for one, two, words, x, y, said in placed:
            rows.setdefault(y or two, []).append((float(x or one), said or words))
        assert rows
        for row in rows.values():
            ends = sorted((at - 2.6 * len(words), at + 2.6 * len(words)) for at, words in row)
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))

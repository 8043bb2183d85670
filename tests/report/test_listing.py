from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.catalog import policy
from profiler.records.policy import Policy
from profiler.records.run import Run
from profiler.report.listing import ORDERS, Filter, line, ordered
from profiler.report.summary import summarise
from tests.records_for_tests import make_memory
from tests.report.entries_for_tests import failed_run
from tests.runs_for_tests import make_bundle_use, make_process, make_run, make_samples, make_unit

MOI = policy("moi-bench")


@given(
    latency_ns=st.integers(10**6, 10**11),
    peak=st.none() | st.integers(10**6, 10**10),
    size=st.integers(1, 10**10),
    outcome=st.sampled_from(["completed", "failed", "interrupted"]),
)
def test_a_line_has_the_tier_and_the_numbers_of_the_whole_summary(
    latency_ns: int, peak: int | None, size: int, outcome: Any
) -> None:
    run = make_run(
        outcome=outcome,
        iterations=make_samples((latency_ns,) * 3),
        processes=(make_process(memory=make_memory(peak_bytes=peak) if peak else None),),
        bundle=make_bundle_use(size_bytes=size),
    )
    assert_like_summary(run, MOI)


@pytest.mark.parametrize("run", [make_run(), failed_run(), make_run(iterations=())], ids=["whole", "failed", "empty"])
def test_a_line_is_what_the_summary_says(run: Run) -> None:
    assert_like_summary(run, MOI)


def assert_like_summary(run: Run, judged_by: Policy) -> None:
    found, summary = line(run, judged_by), summarise(run, Path(), judged_by)
    assert found.tier == summary.tier.tier
    assert found.latency_ns == (summary.latency_ns.median if summary.latency_ns else None)
    assert found.peak_memory_bytes == summary.peak_memory_bytes


def lines() -> list[Any]:
    runs = [
        make_run(run_id="3", model="b", iterations=make_samples((3 * 10**8,) * 3)),
        make_run(run_id="1", model="a", iterations=()),
        make_run(run_id="2", model="c", iterations=make_samples((2 * 10**8,) * 3), unit=make_unit(profile="phone")),
    ]
    return [line(run, MOI) for run in runs]


def ids(found: list[Any]) -> list[str]:
    return [each.run.run_id for each in found]


@pytest.mark.parametrize(("by", "order"), [("time", "123"), ("latency", "231"), ("model", "132"), ("tier", "321")])
def test_lines_are_sorted_and_what_is_missing_stands_last(by: str, order: str) -> None:
    assert ids(ordered(lines(), by, reverse=False)) == list(order)


def test_what_is_missing_stands_last_backwards_too() -> None:
    assert ids(ordered(lines(), "latency", reverse=True)) == ["3", "2", "1"]


@pytest.mark.parametrize("by", ORDERS)
def test_every_order_sorts_lines_of_all_kinds(by: str) -> None:
    every = [*lines(), line(failed_run(run_id="4"), MOI)]
    assert sorted(ids(ordered(every, by, reverse=False))) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("filter_", "taken"),
    [
        (Filter(), "312"),
        (Filter(models=("a", "b")), "31"),
        (Filter(devices=("phone",)), "2"),
        (Filter(tiers=("unknown",)), "1"),
        (Filter(outcomes=("failed",)), ""),
        (Filter(tasks=("generate",), protocols=("burst",)), "312"),
        (Filter(since_ns=2**62), ""),
        (Filter(until_ns=1), ""),
    ],
)
def test_a_filter_takes_what_meets_all_of_it(filter_: Filter, taken: str) -> None:
    assert [each.run.run_id for each in lines() if filter_.takes(each)] == list(taken)

"""Tiers: every published statement comes out again, and better numbers never make a worse tier."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from profiler import catalog
from profiler.errors import InputError, UnknownName
from profiler.quantities import GIB, NS_PER_S
from profiler.records.policy import Limit, Measured, Metric, Policy, TierRule, TierVerdict
from profiler.tiers import FACTORS, judge, published, required, scaled, sensitivity, without

POLICY = catalog.policy("moi-bench")
WITHOUT_MEMORY = without(POLICY, "peak_memory")
ROWS = {row.model: row for row in catalog.reference("moi-bench").rows}
RANKS = {"none": 0, "D1": 1, "D2": 2, "D3": 3, "D4": 4}
FIELDS: dict[Metric, str] = {"latency": "latency_ns", "peak_memory": "peak_memory_bytes", "size": "size_bytes"}

MEASURED = st.builds(
    Measured,
    completed=st.just(True),
    latency_ns=st.floats(0, 120 * NS_PER_S),
    peak_memory_bytes=st.integers(0, 8 * GIB),
    size_bytes=st.integers(0, 8 * GIB),
)


def _measured(**fields: Any) -> Measured:
    """Return what D4 asks for, with room to spare."""
    fast_and_small = Measured(completed=True, latency_ns=2 * NS_PER_S, peak_memory_bytes=GIB, size_bytes=GIB // 2)
    return replace(fast_and_small, **fields)


def _rank(verdict: TierVerdict) -> int:
    return RANKS[verdict.tier]


# What MoI-Bench publishes.


@pytest.mark.parametrize(("model", "tier"), [("dreamlite", "D3"), ("mobile-o", "D3"), ("sana-sprint", "D2")])
def test_a_published_tier_comes_out_again_where_memory_is_not_required(model: str, tier: str) -> None:
    verdict = judge(WITHOUT_MEMORY, published(ROWS[model]))
    assert verdict.tier == tier == ROWS[model].published_tier


@pytest.mark.parametrize("model", ROWS)
def test_a_published_model_is_unknown_where_memory_is_required(model: str) -> None:
    verdict = judge(POLICY, published(ROWS[model]))
    assert (verdict.tier, verdict.missing) == ("unknown", ("peak_memory",))


@pytest.mark.parametrize("model", ROWS)
@pytest.mark.parametrize("factor", FACTORS)
def test_no_published_model_reaches_d4_under_any_factor(model: str, factor: float) -> None:
    assert judge(scaled(WITHOUT_MEMORY, factor), published(ROWS[model])).tier != "D4"


@pytest.mark.parametrize("model", ROWS)
@pytest.mark.parametrize("factor", [0.9, 1.1, 1.2])
def test_limits_times_0_9_and_1_1_and_1_2_change_no_published_tier(model: str, factor: float) -> None:
    assert judge(scaled(WITHOUT_MEMORY, factor), published(ROWS[model])).tier == ROWS[model].published_tier


@pytest.mark.parametrize("model", ["dreamlite", "mobile-o"])
def test_limits_times_0_8_take_dreamlite_and_mobile_o_from_d3_to_d2(model: str) -> None:
    verdict = judge(scaled(WITHOUT_MEMORY, 0.8), published(ROWS[model]))
    assert (verdict.tier, verdict.limiting) == ("D2", ("size",))


def test_limits_times_0_8_leave_sana_sprint_at_d2() -> None:
    assert judge(scaled(WITHOUT_MEMORY, 0.8), published(ROWS["sana-sprint"])).tier == "D2"


def test_sana_sprint_misses_d3_by_its_size_alone() -> None:
    assert judge(WITHOUT_MEMORY, published(ROWS["sana-sprint"])).limiting == ("size",)


def test_the_shipped_policy_states_only_what_moi_bench_states() -> None:
    stated = [(rule.tier, limit) for rule in POLICY.tiers for limit in rule.limits if limit.provenance == "stated"]
    assert [(tier, limit.metric, limit.value) for tier, limit in stated] == [("D3", "size", 2 * GIB)]
    assert all(limit.source for rule in POLICY.tiers for limit in rule.limits)


def test_the_shipped_tiers_are_best_first_and_each_is_at_least_as_strict_as_the_next() -> None:
    assert [rule.tier for rule in POLICY.tiers] == ["D4", "D3", "D2", "D1"]
    limits = [{limit.metric: limit.value for limit in rule.limits} for rule in POLICY.tiers[:-1]]
    for better, worse in itertools.pairwise(limits):
        assert all(better[metric] <= worse[metric] for metric in required(POLICY))


# What a verdict says.


def test_a_limit_is_met_at_its_very_value_and_missed_one_above() -> None:
    assert judge(POLICY, _measured(latency_ns=10 * NS_PER_S)).tier == "D4"
    assert judge(POLICY, _measured(latency_ns=10 * NS_PER_S + 1)).tier == "D3"


def test_a_fraction_of_a_nanosecond_above_a_limit_has_no_margin_left() -> None:
    verdict = judge(POLICY, _measured(latency_ns=10 * NS_PER_S + 0.25))
    assert (verdict.tier, verdict.limiting, verdict.margins[0].margin) == ("D3", ("latency",), -1)


def test_the_best_tier_is_limited_by_nothing() -> None:
    verdict = judge(POLICY, _measured())
    assert (verdict.tier, verdict.limiting, verdict.missing) == ("D4", (), ())


def test_limiting_names_every_metric_that_the_next_tier_misses() -> None:
    verdict = judge(POLICY, _measured(latency_ns=20 * NS_PER_S, size_bytes=3 * GIB, peak_memory_bytes=3 * GIB))
    assert (verdict.tier, verdict.limiting) == ("D2", ("size",))
    assert judge(POLICY, _measured(latency_ns=20 * NS_PER_S, size_bytes=2 * GIB)).limiting == ("latency", "size")


def test_a_run_that_completes_within_no_limit_is_d1_and_says_what_keeps_it_there() -> None:
    verdict = judge(POLICY, _measured(latency_ns=600 * NS_PER_S))
    assert (verdict.tier, verdict.limiting) == ("D1", ("latency",))


def test_a_run_that_fails_is_none_even_if_it_measured_something() -> None:
    verdict = judge(POLICY, _measured(completed=False, latency_ns=None))
    assert (verdict.tier, verdict.limiting, verdict.missing, verdict.confidence) == ("none", (), ("latency",), None)
    assert next(margin.margin for margin in verdict.margins if margin.metric == "size") == GIB // 2


def test_a_policy_whose_lowest_tier_has_limits_can_give_none_to_a_run_that_completed() -> None:
    strict = replace(POLICY, tiers=POLICY.tiers[:1])
    verdict = judge(strict, _measured(size_bytes=2 * GIB))
    assert (verdict.tier, verdict.limiting) == ("none", ("size",))


@pytest.mark.parametrize("metric", required(POLICY))
def test_a_required_metric_that_is_missing_makes_the_tier_unknown(metric: Metric) -> None:
    verdict = judge(POLICY, _measured(**{FIELDS[metric]: None}))
    assert (verdict.tier, verdict.missing, verdict.limiting) == ("unknown", (metric,), ())


@pytest.mark.parametrize("metric", required(POLICY))
def test_a_metric_said_not_to_be_required_may_be_missing(metric: Metric) -> None:
    verdict = judge(without(POLICY, metric), _measured(**{FIELDS[metric]: None}))
    assert (verdict.tier, verdict.missing) == ("D4", ())
    assert verdict.policy == f"moi-bench, without {metric}"


def test_leaving_out_a_metric_that_is_not_asked_for_is_an_error() -> None:
    with pytest.raises(UnknownName, match=r"unknown metric 'peak_memory'\n  Known: latency, size"):
        without(WITHOUT_MEMORY, "peak_memory")


def test_margins_cover_every_limit_of_every_tier_and_a_missing_value_has_none() -> None:
    verdict = judge(POLICY, _measured(peak_memory_bytes=None, size_bytes=3 * GIB // 2))
    rows = {(margin.tier, margin.metric): (margin.margin, margin.share_of_limit) for margin in verdict.margins}
    assert len(rows) == 9
    assert rows["D3", "size"] == (GIB // 2, 0.75)
    assert rows["D4", "size"] == (-GIB // 2, 1.5)
    assert rows["D3", "peak_memory"] == (None, None)


@pytest.mark.parametrize(
    ("interval_s", "size_bytes", "confidence"),
    [
        ((8.0, 9.9), GIB, "latency interval within the tier"),
        ((8.0, 10.1), GIB, "latency interval crosses a limit"),
        ((8.0, 10.1), 2 * GIB, "latency interval within the tier"),
    ],
)
def test_an_interval_is_sure_unless_a_limit_inside_it_changes_the_tier(
    interval_s: tuple[float, float], size_bytes: int, confidence: str
) -> None:
    interval_ns = (interval_s[0] * NS_PER_S, interval_s[1] * NS_PER_S)
    verdict = judge(POLICY, _measured(latency_ns=9 * NS_PER_S, latency_ci95_ns=interval_ns, size_bytes=size_bytes))
    assert verdict.confidence == confidence


def test_without_an_interval_or_a_tier_there_is_no_confidence() -> None:
    interval_ns = (1.0, 2.0)
    assert judge(POLICY, _measured()).confidence is None
    assert judge(POLICY, _measured(latency_ci95_ns=interval_ns, size_bytes=None)).confidence is None
    assert judge(POLICY, _measured(latency_ci95_ns=interval_ns, completed=False)).confidence is None


# Scaling.


def test_a_scaled_limit_says_what_it_was_scaled_from_and_no_longer_counts_as_stated() -> None:
    limit = next(limit for limit in scaled(POLICY, 0.8).tiers[1].limits if limit.metric == "size")
    assert (limit.value, limit.provenance) == (round(1.6 * GIB), "chosen")
    assert limit.source.startswith("0.8 × 2147483648: MoI-Bench §5.4")


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_that_is_no_positive_number_is_refused(factor: float) -> None:
    with pytest.raises(InputError, match="positive number"):
        scaled(POLICY, factor)


def test_sensitivity_judges_once_for_each_factor() -> None:
    verdicts = sensitivity(WITHOUT_MEMORY, published(ROWS["dreamlite"]))
    assert {factor: verdict.tier for factor, verdict in verdicts.items()} == {
        0.8: "D2",
        0.9: "D3",
        1.0: "D3",
        1.1: "D3",
        1.2: "D3",
    }


def test_a_limit_of_zero_has_no_share() -> None:
    limit = Limit(metric="size", statistic="size_bytes.task", value=0, provenance="chosen", source="a test")
    policy = Policy(name="p", title="p", source="a test", tiers=(TierRule(tier="D4", limits=(limit,)),))
    assert judge(policy, _measured()).margins[0].share_of_limit is None


@given(MEASURED, MEASURED)
def test_improving_any_metric_never_worsens_the_tier(one: Measured, other: Measured) -> None:
    better = Measured(
        completed=True,
        latency_ns=min(one.latency_ns or 0, other.latency_ns or 0),
        peak_memory_bytes=min(one.peak_memory_bytes or 0, other.peak_memory_bytes or 0),
        size_bytes=min(one.size_bytes or 0, other.size_bytes or 0),
    )
    assert _rank(judge(POLICY, better)) >= max(_rank(judge(POLICY, one)), _rank(judge(POLICY, other)))


@given(MEASURED, st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_scaling_limits_up_never_worsens_the_tier(measured: Measured, one: float, other: float) -> None:
    tight, loose = sorted((one, other))
    assert _rank(judge(scaled(POLICY, tight), measured)) <= _rank(judge(scaled(POLICY, loose), measured))


@given(MEASURED, st.sampled_from(required(POLICY)))
def test_asking_for_less_never_worsens_the_tier(measured: Measured, metric: Metric) -> None:
    assert _rank(judge(without(POLICY, metric), measured)) >= _rank(judge(POLICY, measured))


@given(MEASURED)
def test_margins_and_verdict_agree(measured: Measured) -> None:
    verdict = judge(POLICY, measured)
    rule = next(rule for rule in POLICY.tiers if rule.tier == verdict.tier)
    held = [margin for margin in verdict.margins if margin.tier == rule.tier]
    assert all(margin.margin is not None and margin.margin >= 0 for margin in held)
    assert bool(verdict.limiting) == (verdict.tier != "D4")

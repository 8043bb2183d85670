"""Which deployability tier measured numbers reach, what keeps them from the next one, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from profiler.errors import InputError, UnknownName
from profiler.records.policy import (
    Limit,
    Margin,
    Measured,
    Metric,
    Policy,
    ReferenceRow,
    TierName,
    TierRule,
    TierVerdict,
)

FACTORS = (0.8, 0.9, 1.0, 1.1, 1.2)

Tier = TierName | Literal["none", "unknown"]
Confidence = Literal["latency interval within the tier", "latency interval crosses a limit"]


def judge(policy: Policy, measured: Measured) -> TierVerdict:
    """Return the best tier whose every limit is met.

    `none` is a measured failure: the run did not complete, or not even the lowest tier's limits are met. `unknown` is
    a required metric that was not measured, even where the others alone would settle a tier: a guess is no verdict.
    """
    missing = tuple(metric for metric in required(policy) if _value(measured, metric) is None)
    tier = _tier(policy, measured, missing)
    return TierVerdict(
        policy=policy.name,
        tier=tier,
        limiting=_limiting(policy, measured, tier),
        missing=missing,
        margins=tuple(_margin(rule.tier, limit, measured) for rule in policy.tiers for limit in rule.limits),
        confidence=_confidence(policy, measured, tier),
    )


def scaled(policy: Policy, factor: float) -> Policy:
    """Return the policy with every limit multiplied, as MoI-Bench §D.4 does with 0.8 to 1.2."""
    if not (math.isfinite(factor) and factor > 0):
        raise InputError(f"limits can be multiplied by a positive number, not by {factor}")
    scale = f"limits × {factor:g}"
    tiers = tuple(replace(rule, limits=_scaled_limits(rule.limits, factor)) for rule in policy.tiers)
    return replace(policy, name=f"{policy.name}, {scale}", title=f"{policy.title}, {scale}", tiers=tiers)


def without(policy: Policy, metric: Metric) -> Policy:
    """Return the policy that does not ask for a metric. Raises UnknownName where it never did."""
    if metric not in required(policy):
        raise UnknownName("metric", metric, required(policy))
    kept = tuple(
        replace(rule, limits=tuple(limit for limit in rule.limits if limit.metric != metric)) for rule in policy.tiers
    )
    omission = f"without {metric}"
    return replace(policy, name=f"{policy.name}, {omission}", title=f"{policy.title}, {omission}", tiers=kept)


def sensitivity(policy: Policy, measured: Measured, factors: Iterable[float] = FACTORS) -> dict[float, TierVerdict]:
    """Judge under scaled limits: how much does the tier hang on the limits chosen?"""
    return {factor: judge(scaled(policy, factor), measured) for factor in factors}


def required(policy: Policy) -> tuple[Metric, ...]:
    """Return the metrics that a policy has any limit for, each once, in the policy's order."""
    return tuple(dict.fromkeys(limit.metric for rule in policy.tiers for limit in rule.limits))


def published(row: ReferenceRow) -> Measured:
    """Return a published result as what a policy can be asked about; it completed, or it would have no row."""
    return Measured(
        completed=True,
        latency_ns=row.latency_ns,
        peak_memory_bytes=row.peak_memory_bytes,
        size_bytes=row.size_bytes,
    )


def _tier(policy: Policy, measured: Measured, missing: tuple[Metric, ...]) -> Tier:
    if not measured.completed:
        return "none"
    if missing:
        return "unknown"
    return next((rule.tier for rule in policy.tiers if not _missed(rule, measured)), "none")


def _missed(rule: TierRule, measured: Measured) -> tuple[Metric, ...]:
    """Return the metrics that were measured and are above one of the tier's limits."""
    over = (limit.metric for limit in rule.limits if (_value(measured, limit.metric) or 0) > limit.value)
    return tuple(dict.fromkeys(over))


def _value(measured: Measured, metric: Metric) -> int | None:
    """Return a metric in whole ns or bytes, rounded up so that margin and verdict never disagree."""
    values = {
        "latency": measured.latency_ns,
        "peak_memory": measured.peak_memory_bytes,
        "size": measured.size_bytes,
    }
    value = values[metric]
    return None if value is None else math.ceil(value)


def _limiting(policy: Policy, measured: Measured, tier: Tier) -> tuple[Metric, ...]:
    """Return what keeps a completed run from the tier above its own; nothing is above the best one."""
    if not measured.completed or tier == "unknown":
        return ()
    names = [rule.tier for rule in policy.tiers]
    better = policy.tiers[: names.index(tier) if tier in names else len(names)]
    return _missed(better[-1], measured) if better else ()


def _margin(tier: TierName, limit: Limit, measured: Measured) -> Margin:
    value = _value(measured, limit.metric)
    return Margin(
        tier=tier,
        metric=limit.metric,
        value=value,
        limit=limit.value,
        margin=None if value is None else limit.value - value,
        share_of_limit=None if value is None or not limit.value else value / limit.value,
    )


def _confidence(policy: Policy, measured: Measured, tier: Tier) -> Confidence | None:
    """Judge at both ends of the latency interval; a limit in between that another metric decides does not count."""
    if measured.latency_ci95_ns is None or not measured.completed or tier == "unknown":
        return None
    at_the_ends = {_tier(policy, replace(measured, latency_ns=end), ()) for end in measured.latency_ci95_ns}
    return "latency interval within the tier" if at_the_ends == {tier} else "latency interval crosses a limit"


def _scaled_limits(limits: tuple[Limit, ...], factor: float) -> tuple[Limit, ...]:
    return tuple(
        replace(
            limit,
            value=round(limit.value * factor),
            provenance="chosen",
            source=f"{factor:g} × {limit.value}: {limit.source}",
        )
        for limit in limits
    )

"""What each task of a bundle takes on a device, and which tier that size alone allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profiler import catalog, tiers
from profiler.bundle_files import load_plan, manifest_sha256
from profiler.quantities import format_bytes
from profiler.records.bundle import Bundle, Component
from profiler.records.policy import Measured, Policy
from profiler.records.recipe import BITS_PER_WEIGHT, EncoderScheme
from profiler.records.spec import DefaultRecipe
from profiler.session import bundle_use

_POLICY = "moi-bench"


def sizes(folder: Path, bundle: Bundle, usual: DefaultRecipe | None) -> Iterator[str]:
    """Tell each task's size with its verdict, and the same for what is an alternative to a default recipe."""
    policy = by_size(catalog.policy(_POLICY))
    sha256 = manifest_sha256(folder)
    for task in sorted(bundle.tasks):
        use = bundle_use(bundle, sha256, load_plan(folder, bundle, task))
        yield f"{task}: {format_bytes(use.size_bytes)}, {verdict(policy, use.size_bytes)}"
        if usual is not None and usual.alternative is not None:
            scheme = usual.alternative.text_encoder
            about = use.size_bytes + sum(
                _change(component, scheme)
                for name, component in bundle.components.items()
                if name in use.size_by_component
            )
            yield f"  with --text-encoder {scheme} about {format_bytes(about)}, {verdict(policy, about)}"


def by_size(policy: Policy) -> Policy:
    """Return a policy that asks for nothing but size."""
    for metric in tiers.required(policy):
        if metric != "size":
            policy = tiers.without(policy, metric)
    return policy


def verdict(policy: Policy, size_bytes: int) -> str:
    """Say which tier a size alone allows, and how much is left of its limit."""
    measured = Measured(completed=True, latency_ns=None, peak_memory_bytes=None, size_bytes=size_bytes)
    judged = tiers.judge(policy, measured)
    if judged.tier in ("none", "unknown"):
        return "too large for any tier"
    margin = next((each.margin for each in judged.margins if each.tier == judged.tier), None)
    return f"{judged.tier} by size, " + (
        "which has no limit" if margin is None else f"{format_bytes(margin)} below its limit"
    )


def _change(component: Component, scheme: EncoderScheme) -> int:
    """Return how many bytes another scheme would add to a component, by what its weights take."""
    done = component.quantization
    if done is None:
        return 0
    return round(component.parameters * (BITS_PER_WEIGHT[scheme] - done.bits_per_weight) / 8)

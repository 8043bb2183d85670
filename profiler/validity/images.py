"""Doubts about the images: blank, the source again, or another one each time."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.records.run import Doubt, Run
from profiler.validity.evidence import Evidence

FLAT_LEVELS = 1.0


def blank_image(evidence: Evidence) -> Doubt | None:
    """Doubt an image of one colour: reduced precision that overflows ends in black, without an error."""
    outputs = [image for image in evidence.run.images if image.role == "output"]
    flat = [image for image in outputs if image.deviation_levels is not None and image.deviation_levels < FLAT_LEVELS]
    if not flat:
        return None
    return Doubt(
        kind="blank_image",
        detail=f"{flat[0].path} is one flat colour ({flat[0].deviation_levels:.2f} levels of deviation).",
        advice=f"Compare with the fp32 bundle: {evidence.run.recipe.precision} may overflow. Its quality is not scored."
        if evidence.run.recipe.precision != "fp32"
        else "Look at the image: unless the prompt asks for it, the export or the weights are broken.",
    )


def unchanged_image(evidence: Evidence) -> Doubt | None:
    """Doubt an edit that returns its source."""
    sources = {image.sha256 for image in evidence.run.images if image.role == "source"}
    same = [image for image in evidence.run.images if image.role == "output" and image.sha256 in sources]
    if not same:
        return None
    return Doubt(
        kind="unchanged_image",
        detail=f"{same[0].path} is the source image, value for value.",
        advice="The edit did nothing: check the prompt and the plan before its latency is quoted.",
    )


def not_deterministic(evidence: Evidence) -> Doubt | None:
    """Doubt a run whose equal inputs gave different images."""
    distinct = {sample.image_sha256 for sample in evidence.run.iterations}
    if len(distinct) < 2:
        return None
    what = "images" if evidence.run.settings.width else "outputs"
    return Doubt(
        kind="not_deterministic",
        detail=f"The same inputs gave {len(distinct)} different {what} in {len(evidence.run.iterations)}.",
        advice=_determinism_advice(evidence),
    )


def _determinism_advice(evidence: Evidence) -> str:
    if evidence.run.settings.width is None:
        return "With --threads 1 sums are always added in the same order; beyond that, the graph draws its own noise."
    if evidence.run.settings.threads == 1:
        return "One thread was used already: compare the kept images; the runtime or a graph draws its own noise."
    return "Compare the kept images; with --threads 1 sums are always added in the same order."


def same_image(runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Return the ids of runs that made the same image from different inputs: something ignores what it is given."""
    first: dict[str, Run] = {}
    pairs = []
    for run in runs:
        for image in (image for image in run.images if image.role == "output"):
            other = first.setdefault(image.sha256, run)
            if other.settings.inputs_sha256 != run.settings.inputs_sha256:
                pairs.append((other.run_id, run.run_id))
    return tuple(dict.fromkeys(pairs))

"""Doubts about the samples themselves: their number, spread, order and resolution."""

from __future__ import annotations

from statistics import median

from profiler import effects, stats
from profiler.quantities import format_ns
from profiler.records.run import Doubt
from profiler.validity.evidence import Evidence

LEAST_TIMED = 5
WIDE_SHARE = 0.05
COARSE_SHARE = 0.01
OUTLIER_SHARE = 0.05
OBSERVER_SHARE = 0.01
GAP_SHARE = 0.05
WARMING_SHARE = 0.25
MOST_NEEDED = 10_000


def too_few(evidence: Evidence) -> Doubt | None:
    """Five is the least at which an interval for the median can cover 93.75 % (`stats.reachable_coverage`)."""
    count = sum(sample.phase == "timed" for sample in evidence.run.iterations)
    if count >= LEAST_TIMED:
        return None
    return Doubt(
        kind="too_few",
        detail=f"Timed images: {count}. With fewer than {LEAST_TIMED} no interval for the median comes near 95 %.",
        advice=_more_images(evidence, "20 or more also give a p90")
        if evidence.run.outcome == "completed"
        else "The run did not come to its end: see why, and measure again.",
    )


def _more_images(evidence: Evidence, why: str) -> str:
    if evidence.run.measurement.kind == "sustained":
        return f"Measure for longer: --minutes was {evidence.run.measurement.minutes:g}."
    return f"Measure again with --repeats {LEAST_TIMED} or more; {why}."


def wide_interval(evidence: Evidence) -> Doubt | None:
    """Doubt a median that is known to no better than five per cent either way; drift has a doubt of its own."""
    if len(evidence.durations) < LEAST_TIMED or (evidence.trend and evidence.trend.change_at is not None):
        return None
    summary = stats.summarise(evidence.durations)
    half = (summary.ci95[1] - summary.ci95[0]) / 2 if summary.ci95 else 0.0
    if half <= WIDE_SHARE * summary.median:
        return None
    return Doubt(
        kind="wide_interval",
        detail=f"The median's interval is ±{100 * half / summary.median:.0f} % wide.",
        advice=_narrowing(evidence),
    )


def _narrowing(evidence: Evidence) -> str:
    if evidence.is_shared:
        return "Stop other work on the device first; more images of a busy device only tell its business better."
    needed = stats.needed_n(evidence.durations, WIDE_SHARE)
    if needed is None or needed > MOST_NEEDED or evidence.run.measurement.kind == "sustained":
        return "Steady the device: see the other doubts."
    return f"About {needed} images would bring it to ±{100 * WIDE_SHARE:.0f} %: --repeats {needed}."


def coarse_clock(evidence: Evidence) -> Doubt | None:
    """Doubt times that come in steps: rounded to milliseconds, a spread of zero means nothing."""
    if len(evidence.durations) >= LEAST_TIMED and len(set(evidence.durations)) == 1:
        return _no_difference(evidence)
    step_ns = stats.resolution(evidence.durations) if evidence.durations else None
    if step_ns is None or step_ns <= COARSE_SHARE * median(evidence.durations):
        return None
    return Doubt(
        kind="coarse_clock",
        detail=f"The times come in steps of {format_ns(step_ns)}, more than {100 * COARSE_SHARE:.0f} % of an image.",
        advice="Differences below a step cannot be seen; measure with a runner that keeps the clock's nanoseconds.",
    )


def _no_difference(evidence: Evidence) -> Doubt:
    """Doubt times without any difference: no device is that steady."""
    return Doubt(
        kind="coarse_clock",
        detail=f"All {len(evidence.durations)} images took exactly {format_ns(evidence.durations[0])}.",
        advice="Their differences are below the clock's step; measure with a runner that keeps its nanoseconds.",
    )


def outliers(evidence: Evidence) -> Doubt | None:
    """Doubt a run where more than one image in twenty lies far out; the median withstands a single one."""
    if evidence.trend is not None and evidence.trend.slower:
        return None  # a device that slowed down has two speeds, and a doubt of its own
    found = stats.outliers(evidence.durations) if evidence.durations else ()
    if len(found) <= OUTLIER_SHARE * len(evidence.durations):
        return None
    middle = median(evidence.durations)
    far = sorted(evidence.durations[index] for index in found)
    span = format_ns(far[0]) if len(far) == 1 else f"{format_ns(far[0])} to {format_ns(far[-1])}"
    share = f"{len(found)} of {len(evidence.durations)} images"
    return Doubt(
        kind="outliers",
        detail=f"{share} lie far from the median of {format_ns(middle)}: {span}.",
        advice=_fast_advice(evidence) if far[-1] < middle else _outlier_advice(evidence, found),
    )


def _fast_advice(evidence: Evidence) -> str:
    """Outliers that are all fast are what the device can do; the rest is what held it up."""
    if evidence.is_shared:
        return "They are the fast ones, made while other work paused: stop it and measure again."
    return "They are the fast ones: something slowed most images down; find it and measure again."


def _outlier_advice(evidence: Evidence, found: tuple[int, ...]) -> str:
    if evidence.is_shared:
        return "Other work ran meanwhile: stop it and measure again."
    if set(found) == set(range(len(found))):
        return f"They come first: raise --warmups, which was {evidence.run.settings.warmups}."
    return "Something else used the device now and then: look for timers and updates, and measure again."


def warming(evidence: Evidence) -> Doubt | None:
    """Doubt timed images that were still getting faster: the warm-ups were too few."""
    if len(evidence.durations) < LEAST_TIMED:
        return None
    steady = stats.steady_from(evidence.durations)
    before, after = evidence.durations[:steady], evidence.durations[steady:]
    if not before or median(before) <= median(after):
        return None  # slower later is another doubt
    if steady > WARMING_SHARE * len(evidence.durations):
        return _faster_later(evidence)
    return Doubt(
        kind="warming",
        detail=f"The first {steady} timed images took {100 * (median(before) / median(after) - 1):.0f} % longer.",
        advice=_warming_advice(evidence, steady),
    )


def _faster_later(evidence: Evidence) -> Doubt | None:
    """Doubt a long run that grew faster: no warm-up takes a quarter of it."""
    trend = evidence.trend
    if trend is None or not trend.faster:
        return None
    shared = "Other work" if evidence.is_shared else "Something else"
    return Doubt(
        kind="warming",
        detail=f"The last third of the images took {100 * (1 - trend.ratio):.0f} % less than the first.",
        advice=f"No warm-up lasts that long: {shared.lower()} slowed the device at first; stop it and measure again.",
    )


def _warming_advice(evidence: Evidence, steady: int) -> str:
    if evidence.is_shared:
        return "Other work may have been heavier at first: stop it and measure again."
    warmups = evidence.run.settings.warmups
    return f"The device was still warming up after {warmups} warm-ups: use --warmups {warmups + steady} or more."


def after_gap(evidence: Evidence) -> Doubt | None:
    """Say that a pause before an image changes its time: idle clocks, cold caches, or a device that has cooled."""
    ratio = effects.after_gap(evidence.run) if evidence.timed else None
    if ratio is None or ratio.ci95 is None or ratio.ci95[0] <= 1 <= ratio.ci95[1] or abs(ratio.ratio - 1) <= GAP_SHARE:
        return None
    return Doubt(
        kind="after_gap",
        detail=f"Images after a pause took {_longer(ratio.ratio)} than those back to back.",
        advice=_gap_advice(evidence, ratio.ratio),
    )


def _longer(ratio: float) -> str:
    return f"{100 * (ratio - 1):.0f} % longer" if ratio > 1 else f"{100 * (1 - ratio):.0f} % less"


def _gap_advice(evidence: Evidence, ratio: float) -> str:
    if evidence.is_shared:
        return "Other work ran meanwhile: stop it and measure again."
    if evidence.run.measurement.kind != "spaced":
        return "Something held the run up between images: look at the gaps in the raw samples, and measure again."
    if ratio > 1:
        return "This is the first image after idle clocks; --protocol burst gives one that follows another."
    return "The device is faster when rested: quote it for single images, and --protocol burst or sustained for series."


def observer_effect(evidence: Evidence) -> Doubt | None:
    """Doubt times that sampling itself lengthened by surely more than a per cent."""
    effect = effects.observer_effect(evidence.run) if evidence.timed else None
    if effect is None or effect.ci95 is None or effect.ci95[0] <= 1 + OBSERVER_SHARE:
        return None
    return Doubt(
        kind="observer_effect",
        detail=f"Sampling lengthens an image by {100 * (effect.median - 1):.1f} % (at least "
        f"{100 * (effect.ci95[0] - 1):.1f} %).",
        advice="The samplers share cores with the model: use fewer --threads, and compare only with runs alike.",
    )

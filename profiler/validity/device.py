"""Doubts about what was measured: the kind of device, the weights, and the inputs."""

from __future__ import annotations

from profiler.records.device import GENERIC_PHONE
from profiler.records.run import Doubt
from profiler.validity.evidence import Evidence


def not_a_phone(evidence: Evidence) -> Doubt | None:
    """Doubt a computer's numbers as a phone's."""
    unit = evidence.run.unit
    if unit.is_phone:
        return None
    return Doubt(
        kind="not_a_phone",
        detail=f"Measured on {unit.model or unit.profile} ({unit.operating_system}), which is not a phone.",
        advice="Compare bundles on this machine with them; its tier says nothing about a phone.",
    )


def virtual_device(evidence: Evidence) -> Doubt | None:
    """Doubt what an emulator says of speed and heat."""
    unit = evidence.run.unit
    if not unit.virtual and not evidence.run.virtual:
        return None
    borrowed = evidence.run.runner_platform == "python" and unit.platform != "host"
    where = " Its runner computed on this computer: speed, memory and gauges are the computer's." if borrowed else ""
    return Doubt(
        kind="virtual_device",
        detail=f"{unit.model or unit.profile} is an emulator or a virtual device.{where}",
        advice="Use the run to test the tool chain; measure on a physical device.",
    )


def synthetic(evidence: Evidence) -> Doubt | None:
    """Doubt all that a runner reports which computed nothing."""
    if not evidence.run.synthetic:
        return None
    return Doubt(
        kind="synthetic",
        detail="The runner computed nothing: times, memory and heat come from a model, and the images show nothing.",
        advice="Use the run to test the tool chain; measure with a real engine.",
    )


def unknown_model(evidence: Evidence) -> Doubt | None:
    """Doubt comparisons of a phone that no profile describes."""
    unit = evidence.run.unit
    if unit.profile != GENERIC_PHONE:
        return None
    return Doubt(
        kind="unknown_model",
        detail=f"No profile describes this phone ({unit.maker or 'unknown maker'} {unit.model or 'unknown model'}).",
        advice="Its numbers stand for this unit; add a profile (device_profiles/) to compare and share them.",
    )


def random_weights(evidence: Evidence) -> Doubt | None:
    """Doubt the images of weights that nobody trained."""
    scheme, _, seed = evidence.run.bundle.source.weights_sha256.partition(":")
    if scheme != "random":
        return None
    return Doubt(
        kind="random_weights",
        detail=f"The weights are random (seed {seed}): the images mean nothing.",
        advice="Latency, memory and size stand for this architecture; for images and scores, export trained weights.",
    )


def made_up_inputs(evidence: Evidence) -> Doubt | None:
    """Doubt what comes out where nobody said what goes in."""
    names = evidence.run.settings.made_up_inputs
    if not names:
        return None
    return Doubt(
        kind="made_up_inputs",
        detail=f"Nobody gave the inputs {', '.join(names)}: noise or zeros went in, and what came out means nothing.",
        advice="Latency, memory and size stand where they do not hang on values; "
        "for outputs wrap the graph again with real ones: --inputs FILE.",
    )

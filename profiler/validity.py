"""Reasons not to trust a run's numbers: a closed list, each found by one small function and given with advice."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.records.run import Doubt, Run
from profiler.records.trace import ProcessTrace

LEAST_TIMED = 5
BUSY_SHARE_OF_CORES = 0.5


def doubts(run: Run, traces: Sequence[ProcessTrace]) -> tuple[Doubt, ...]:
    """Return every doubt that a run gives cause for, in the order of the list; what was not recorded gives none."""
    return tuple(doubt for question in _QUESTIONS if (doubt := question(run)) is not None)


def _not_a_phone(run: Run) -> Doubt | None:
    if run.unit.is_phone:
        return None
    return Doubt(
        kind="not_a_phone",
        detail=f"Measured on {run.unit.model or run.unit.profile} ({run.unit.operating_system}), which is not a phone.",
        advice="Use these numbers to compare bundles on this machine only; for a tier, measure on the phone.",
    )


def _virtual_device(run: Run) -> Doubt | None:
    if not run.unit.virtual:
        return None
    return Doubt(
        kind="virtual_device",
        detail=f"{run.unit.model or run.unit.profile} is an emulator or a virtual device.",
        advice="Use the run to test the tool chain; measure on a physical device.",
    )


def _random_weights(run: Run) -> Doubt | None:
    scheme, _, seed = run.bundle.source.weights_sha256.partition(":")
    if scheme != "random":
        return None
    return Doubt(
        kind="random_weights",
        detail=f"The weights are random (seed {seed}): the images mean nothing.",
        advice="Latency, memory and size stand for this architecture; for images and scores, export trained weights.",
    )


def _too_few(run: Run) -> Doubt | None:
    """Five is the least at which an interval for the median can cover 93.75 % (`stats.reachable_coverage`)."""
    timed = sum(sample.phase == "timed" for sample in run.iterations)
    if timed >= LEAST_TIMED:
        return None
    return Doubt(
        kind="too_few",
        detail=f"Timed images: {timed}. With fewer than {LEAST_TIMED} no interval for the median comes near 95 %.",
        advice=f"Measure again with --repeats {LEAST_TIMED} or more; 20 or more also give a p90.",
    )


def _charging(run: Run) -> Doubt | None:
    """Charging heats a phone and may change its clocks; MLPerf Mobile's submission rules want it unplugged."""
    power = run.conditions.power
    if not power.external_power or power.battery_percent is None:
        return None
    return Doubt(
        kind="charging",
        detail=f"The device was on external power with its battery at {power.battery_percent:.0f} %.",
        advice="Unplug it to see battery and heat as a user does, or compare only with runs on external power.",
    )


def _background_load(run: Run) -> Doubt | None:
    """The load average counts tasks that run or wait, over about a minute (proc(5), getloadavg(3)).

    The threshold is chosen: above half of the cores, a runner that uses all of them has to share.
    """
    load, cores = run.conditions.load_average_1m, run.unit.logical_cores
    if load is None or not cores or load <= BUSY_SHARE_OF_CORES * cores:
        return None
    return Doubt(
        kind="background_load",
        detail=f"The load average was {load:.2f} on {cores} cores before the run began.",
        advice="Stop other work on the device, wait a minute and measure again.",
    )


_QUESTIONS = (_not_a_phone, _virtual_device, _random_weights, _too_few, _charging, _background_load)

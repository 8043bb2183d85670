"""Reasons not to trust a run's numbers: a closed list, each found by one small function and given with advice."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.records.run import Doubt, Run
from profiler.records.trace import ProcessTrace
from profiler.validity import conditions, device, faults, heat, images, samples
from profiler.validity.evidence import Evidence
from profiler.validity.images import same_image
from profiler.validity.impossible import clock_fault, memory_fault

__all__ = ["clock_fault", "doubts", "memory_fault", "same_image"]

_QUESTIONS = (
    device.not_a_phone,
    device.virtual_device,
    device.synthetic,
    device.unknown_model,
    device.random_weights,
    device.made_up_inputs,
    faults.broken_clock,
    faults.implausible,
    faults.samples_lost,
    conditions.charging,
    conditions.power_changed,
    conditions.low_battery,
    conditions.on_battery,
    conditions.power_save,
    conditions.not_foreground,
    conditions.background_load,
    conditions.oversubscribed,
    images.blank_image,
    images.unchanged_image,
    images.not_deterministic,
    samples.too_few,
    samples.wide_interval,
    samples.coarse_clock,
    samples.outliers,
    samples.warming,
    heat.throttled,
    samples.after_gap,
    samples.observer_effect,
)


def doubts(run: Run, traces: Sequence[ProcessTrace]) -> tuple[Doubt, ...]:
    """Return every doubt that a run gives cause for; what was not recorded gives none.

    They come in the order of the list: what was measured, what cannot be, the conditions, and then what may follow
    from them.
    """
    evidence = Evidence(run, traces)
    return tuple(doubt for question in _QUESTIONS if (doubt := question(evidence)) is not None)

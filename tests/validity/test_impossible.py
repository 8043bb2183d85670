"""What cannot be true is found in any process, phase and stage; what merely looks odd is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from profiler.records.event import StageTime
from profiler.records.run import IterationSample
from profiler.validity import clock_fault, memory_fault
from tests.records_for_tests import BOOT_NS, make_memory, make_recipe
from tests.runs_for_tests import make_bundle_use, make_process, make_run, make_sample


def at(start_ns: int, duration_ns: int = 100, **fields: object) -> IterationSample:
    stages = (StageTime(stage="denoise", duration_ns=duration_ns),)
    return make_sample(start_boot_ns=BOOT_NS + start_ns, duration_ns=duration_ns, **{"stages": stages, **fields})


@pytest.mark.parametrize(
    ("images", "told"),
    [
        ((at(0), at(100, 0)), "timed image 0 took 0 ns"),
        ((at(0, -5),), "took -5 ns"),
        ((at(0), at(50, iteration=1)), "timed image 1 began before timed image 0 had ended"),
        ((at(0, process=1), at(-500, process=1, phase="observer")), "observer image 0 began before"),
        ((at(0, stages=(StageTime(stage="a", duration_ns=-1),)),), "took less than no time"),
        ((at(0, stages=(StageTime(stage="a", duration_ns=101),)),), "take longer than the whole"),
    ],
)
def test_times_that_cannot_be_are_told(images: tuple[IterationSample, ...], told: str) -> None:
    assert told in (clock_fault(make_run(iterations=images)) or "")


@pytest.mark.parametrize(
    "images",
    [
        (),
        (at(0), at(100), at(10_000)),
        (at(5000), at(0, process=1)),  # each process is on its own
        (at(0, stages=()),),
    ],
)
def test_images_in_order_are_no_fault(images: tuple[IterationSample, ...]) -> None:
    assert clock_fault(make_run(iterations=images)) is None


def test_a_peak_below_the_weights_that_are_loaded_at_once_cannot_be() -> None:
    bundle = make_bundle_use(size_by_component={"a": 100_000_000, "b": 80_000_000})
    processes = (make_process(), make_process(process=1, memory=make_memory(peak_bytes=150_000_000)))
    run = make_run(bundle=bundle, processes=processes)
    assert "process 0 reports a peak of 153 MiB, though 172 MiB of weights" in (memory_fault(run) or "")
    assert memory_fault(replace(run, recipe=make_recipe(load_policy="sequential"))) is None
    assert memory_fault(replace(run, processes=())) is None


def test_a_process_that_did_not_get_that_far_may_have_a_small_peak() -> None:
    bundle = make_bundle_use(size_by_component={"a": 10**12})
    assert memory_fault(make_run(bundle=bundle, processes=(make_process(outcome="failed"),))) is None
    assert memory_fault(make_run(bundle=bundle, processes=(make_process(memory=None),))) is None

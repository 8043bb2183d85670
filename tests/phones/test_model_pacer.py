"""A phone's time goes on though nobody reads it."""

from __future__ import annotations

import threading

from profiler.clock import FakeClock
from tests.phones.model_pacer import Pacer
from tests.phones.models_for_tests import model_of


def test_what_was_planned_happens_although_nobody_looks() -> None:
    clock = FakeClock()
    model = model_of(clock=clock)
    happened = threading.Event()
    model.at(30.0, happened.set)
    with Pacer(model, period_s=0.001):
        clock.sleep(30.0)
        assert happened.wait(20.0)


def test_a_driven_phone_is_left_alone_and_the_end_stops_the_thread() -> None:
    clock = FakeClock()
    model = model_of(clock=clock)
    model.drive()
    boot_ns, threads = model.boot_ns(), threading.active_count()
    with Pacer(model, period_s=0.001):
        clock.sleep(30.0)
    assert model.boot_ns() == boot_ns
    assert threading.active_count() == threads

"""What goes wrong inside a phone while it measures, on a phone whose truth is known and whose time is modelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.energy import NO_VOLTAGE
from profiler.records.event import Idle, IterationDone, Waiting
from profiler.records.job import Measurement, Sampling
from profiler.records.run import Run
from profiler.session import Order, Progress
from tests.devices.android.faults_for_tests import at_event, check_whole, with_parameters
from tests.devices.android.phones_for_tests import Desk
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import build_small_bundle, make_order

DAY_S = 86_400.0
# What happens here takes seconds and more; each look at a gauge is a round trip of the synthetic runner.
SLOW = Sampling(memory_interval_ms=1000, environment_interval_ms=1000, canary_interval_ms=5000)


@pytest.fixture
def pixel() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner="kotlin") as phone:
        yield phone


@pytest.fixture(scope="module")
def heavy_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose images take a second or so, and so do something to a phone."""
    return with_parameters(build_small_bundle(tmp_path_factory.mktemp("bundles") / "heavy"), 150_000_000)


@pytest.fixture
def order(heavy_bundle: Path) -> Order:
    return make_order(heavy_bundle, repeats=8, measurement=Measurement(kind="burst"), sampling=SLOW)


def pretend(phone: VirtualAndroid, command: str) -> None:
    assert phone.commands.run(command.split()).code == 0


def doubts(run: Run) -> dict[str, str]:
    return {doubt.kind: doubt.detail for doubt in run.doubts}


def test_a_processor_that_is_held_at_less_than_half_its_clock_is_a_doubt_with_the_clock_as_evidence(
    desk: Desk, pixel: VirtualAndroid, order: Order
) -> None:
    order = order._replace(measurement=Measurement(kind="sustained", minutes=0.8))
    run = desk.measure(pixel, order, at_event(Idle, lambda: pixel.model.throttle_to(0.4, after_s=15.0)))
    assert run.outcome == "completed"
    assert "throttled" in doubts(run)
    timed = [sample.duration_ns for sample in run.iterations if sample.phase == "timed"]
    assert timed[-1] / timed[0] == pytest.approx(2.5, rel=0.1)
    check_whole(desk.store, run.run_id)


def test_a_spaced_run_waits_until_a_throttled_processor_is_quick_again(
    desk: Desk, pixel: VirtualAndroid, order: Order
) -> None:
    def throttle() -> None:
        pixel.model.throttle_to(0.4, after_s=4.0)
        pixel.model.throttle_to(1.0, after_s=24.0)

    reasons: set[str] = set()

    def report(state: Progress) -> None:
        slow(state)
        reasons.update([state.event.reason] if isinstance(state.event, Waiting) else [])

    slow = at_event(Idle, throttle)
    order = order._replace(measurement=Measurement(kind="spaced", gap_s=1.0), repeats=4)
    run = desk.measure(pixel, order, report)
    assert (run.outcome, run.reason) == ("completed", None)
    assert any("the processor is 150 % slower than when the job began" in reason for reason in reasons), reasons
    gaps = [sample.gap_ns or 0 for sample in run.iterations if sample.phase == "timed"]
    assert max(gaps) > 10 * 10**9
    check_whole(desk.store, run.run_id)


def test_a_screen_that_locks_meanwhile_is_a_doubt(desk: Desk, pixel: VirtualAndroid, order: Order) -> None:
    def lock() -> None:
        with pixel.model.present():
            pixel.model.screen.lock = "pin"
            pixel.model.screen.sleep()

    run = desk.measure(pixel, order, at_event(IterationDone, lock))
    assert run.outcome == "completed"
    assert "not_foreground" in doubts(run)


@pytest.mark.parametrize("seconds", [-DAY_S, 400 * DAY_S], ids=["back", "forward"])
def test_a_clock_that_is_set_meanwhile_changes_nothing_that_is_measured(
    desk: Desk, pixel: VirtualAndroid, order: Order, seconds: float
) -> None:
    jump = at_event(Idle, lambda: pixel.model.at(3.0, lambda: pixel.model.jump(seconds)))
    run = desk.measure(pixel, order, jump)
    assert (run.outcome, run.reason) == ("completed", None)
    assert "broken_clock" not in doubts(run)
    durations = [sample.duration_ns for sample in run.iterations if sample.phase == "timed"]
    assert max(durations) < 1.2 * min(durations)
    assert 0 <= run.ended_wall_ns - run.started_wall_ns < 3600 * 10**9
    check_whole(desk.store, run.run_id)


def test_a_battery_that_somebody_fakes_meanwhile_gives_no_energy(desk: Desk, order: Order) -> None:
    order = order._replace(measurement=Measurement(kind="sustained", minutes=1.2))
    with VirtualAndroid("galaxy-s24", runner="kotlin") as phone:  # it has no power rails
        fake = at_event(IterationDone, lambda: pretend(phone, "dumpsys battery unplug"))
        run = desk.measure(phone, order, fake)
    assert run.outcome == "completed"
    assert run.energy == ()
    assert "the battery's state is faked" in (run.energy_reason or "")
    assert run.conditions_after is not None
    assert run.conditions_after.power.external_power is None


@pytest.mark.parametrize("persona", ["galaxy-s24", "xiaomi-14", "unknown-soc"])
def test_whatever_unit_and_sign_a_gauge_has_energy_is_right_or_unknown(
    desk: Desk, heavy_bundle: Path, persona: str
) -> None:
    with VirtualAndroid(persona, runner="kotlin") as phone:
        phone.model.unplug()
        order = make_order(heavy_bundle, measurement=Measurement(kind="sustained", minutes=2.0), sampling=SLOW)
        run = desk.measure(phone, order)
        timed = [sample for sample in run.iterations if sample.phase == "timed"]
        start, end = (
            phone.model.moment_ns(moment)
            for moment in (timed[0].start_boot_ns, timed[-1].start_boot_ns + timed[-1].duration_ns)
        )
        truth = phone.model.truth.energy_between(start, end).total
    assert run.outcome == "completed"
    assert (persona == "unknown-soc") == (run.energy == ())
    assert run.energy_reason == {"unknown-soc": NO_VOLTAGE}.get(persona)
    for energy in run.energy:
        share = energy.images / len(timed)
        assert energy.joules == pytest.approx(truth * share, rel=0.03)

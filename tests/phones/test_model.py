"""One phone as a whole: time, what somebody does to it, and what happens by itself."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.clock import FakeClock
from tests.phones.model_physics import TICK_NS
from tests.phones.model_processes import Ended
from tests.phones.models_for_tests import (
    PID,
    RUNNER,
    UID,
    call,
    driven_model,
    load,
    model_of,
    pass_seconds,
    persona_with,
)


def test_a_free_running_phone_follows_the_clock_at_its_speed() -> None:
    clock = FakeClock()
    model = model_of(clock=clock, speed=60.0)
    boot_ns, wall_ns = model.boot_ns(), model.wall_ns()
    clock.sleep(1.0)
    model.sync()
    assert model.boot_ns() - boot_ns == model.wall_ns() - wall_ns == 60 * 10**9


def test_a_driven_phone_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock()
    model = model_of(clock=clock)
    model.drive()
    boot_ns = model.boot_ns()
    clock.sleep(100.0)
    model.sync()
    assert model.boot_ns() == boot_ns
    assert model.advance(boot_ns + 123) == boot_ns + 123


def test_a_phone_that_is_let_go_runs_on_from_where_it_was_driven_to() -> None:
    clock = FakeClock()
    model = model_of(clock=clock)
    model.drive()
    driven_ns = model.advance(model.boot_ns() + 60 * 10**9)
    model.run_free()
    clock.sleep(2.0)
    model.sync()
    assert model.boot_ns() == driven_ns + 2 * 10**9


def test_time_never_goes_back() -> None:
    model = driven_model()
    boot_ns = model.boot_ns()
    assert model.advance(boot_ns - 10**9) == boot_ns


def test_an_action_runs_at_its_very_moment_while_the_phone_is_driven_past_it() -> None:
    model = driven_model()
    start_ns, seen = model.boot_ns(), []
    model.at(1.2345, lambda: seen.append(model.boot_ns() - start_ns))
    pass_seconds(model, 1.0)
    assert seen == []
    pass_seconds(model, 10.0)
    assert seen == [1_234_500_000]


def test_an_action_may_change_the_phone_and_ask_for_more() -> None:
    model = driven_model()
    start_ns, seen = model.boot_ns(), []

    def again() -> None:
        model.unplug()
        seen.append(model.boot_ns() - start_ns)
        model.at(2.0, lambda: seen.append(model.boot_ns() - start_ns))

    model.at(1.0, again)
    pass_seconds(model, 5.0)
    assert seen == [10**9, 3 * 10**9]
    assert model.physics.plug == "none"


def test_an_action_may_wait_for_a_thread_that_reads_the_phone() -> None:
    model = driven_model()
    read: list[int] = []

    def wait() -> None:
        thread = threading.Thread(target=lambda: read.append(model.reported.battery().level if _look(model) else 0))
        thread.start()
        thread.join(20.0)
        assert not thread.is_alive()

    model.at(0.5, wait)
    pass_seconds(model, 1.0)
    assert read == [63]


def _look(model: object) -> bool:
    with model.present():  # type: ignore[attr-defined]
        return True


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.tuples(st.just("at"), st.integers(0, 3000)), st.tuples(st.just("go"), st.integers(0, 900))))
)
def test_actions_keep_their_order_whatever_is_asked_for_and_advanced(steps: list[tuple[str, int]]) -> None:
    model = driven_model()
    start_ns, asked, seen = model.boot_ns(), [], []
    for number, (what, milliseconds) in enumerate(steps):
        if what == "at":
            moment_ns = model.boot_ns() - start_ns + milliseconds * 1_000_000
            asked.append((moment_ns, number))
            model.at(milliseconds / 1000, lambda key=number: seen.append((model.boot_ns() - start_ns, key)))
        else:
            pass_seconds(model, milliseconds / 1000)
        now_ns = model.boot_ns() - start_ns
        assert seen == sorted(asked)[: len(seen)]
        assert sum(moment_ns < now_ns for moment_ns, _ in asked) <= len(seen)
    pass_seconds(model, 4.0)
    assert seen == sorted(asked)


def test_the_time_of_day_jumps_and_the_boot_clock_does_not() -> None:
    model = driven_model()
    boot_ns, wall_ns = model.boot_ns(), model.wall_ns()
    model.jump(-3600.0)
    assert (model.boot_ns(), model.wall_ns()) == (boot_ns, wall_ns - 3600 * 10**9)


def test_energy_is_conserved_between_terminals_cell_and_rails() -> None:
    model = driven_model()
    model.unplug()
    start_ns, charge_c = model.boot_ns(), model.physics.charge_c
    for _ in range(100):
        call(model)
    joules = model.truth.energy_between(start_ns, model.boot_ns())
    rails = sum((model.reported.rails() or {}).values()) / 1e6
    assert rails == pytest.approx(joules.total, rel=0.01)
    assert 0 < joules.above_idle < joules.total
    assert (charge_c - model.physics.charge_c) * 3.9 == pytest.approx(joules.total, rel=0.05)


def test_unplugging_makes_the_cell_carry_the_phone() -> None:
    model = driven_model()
    pass_seconds(model, 10.0)
    charging = model.reported.battery()
    model.unplug()
    pass_seconds(model, 10.0)
    draining = model.reported.battery()
    assert charging.current_now is not None
    assert draining.current_now is not None
    assert charging.current_now > 0 > draining.current_now
    assert (charging.plugged, draining.plugged) == (2, 0)


def test_battery_saver_ends_when_a_cable_goes_in() -> None:
    model = driven_model()
    model.unplug()
    with model.present():
        model.settings.put("global", "low_power", "1")
    assert model.physics.power_save
    model.plug("ac")
    assert not model.physics.power_save
    assert model.settings.get("global", "low_power") == "0"


def test_a_dark_screen_draws_less_and_sends_the_app_to_the_background() -> None:
    model = driven_model()
    bright = model.physics.power().screen
    with model.present():
        model.screen.sleep()
    assert bright > 0
    assert model.physics.power().screen == 0
    assert model.physics.background


def test_airplane_mode_and_brightness_change_what_is_drawn() -> None:
    model = driven_model()
    before = model.physics.power()
    with model.present():
        model.settings.put("system", "screen_brightness", "255")
        model.settings.put("global", "airplane_mode_on", "1")
    after = model.physics.power()
    assert after.screen > 1.9 * before.screen
    assert after.base < before.base


def test_an_idle_screen_goes_dark_unless_the_runner_or_the_charger_setting_keeps_it_on() -> None:
    idle, kept, charging = model_of(), driven_model(), model_of()
    with charging.present():
        charging.settings.put("global", "stay_on_while_plugged_in", "2")
    for model in (idle, kept, charging):
        model.drive()
        pass_seconds(model, 60.0)
    assert [idle.screen.on, kept.screen.on, charging.screen.on] == [False, True, True]
    with charging.present():
        charging.reported.fake_battery(plugged=0)
    pass_seconds(charging, 60.0)
    assert not charging.screen.on


def test_the_low_memory_killer_ends_a_process_and_tells_of_it_once() -> None:
    model = driven_model("low-ram-4gb")
    told: list[Ended] = []
    model.on_end(told.append)
    load(model, 4_000_000_000)
    assert told == [Ended(PID, RUNNER, 9, "low memory")]
    assert model.work.job is None
    assert model.physics.load == "idle"
    assert [kill.pid for kill in model.truth.kills] == [PID]
    assert model.truth.kills[0].moment_ns < model.physics.now_ns


def test_who_hears_of_an_end_may_ask_the_phone_from_another_thread() -> None:
    model = driven_model()
    seen: list[bool] = []

    def ask(ended: Ended) -> None:
        thread = threading.Thread(target=lambda: seen.append(_look(model)))
        thread.start()
        thread.join(20.0)

    model.on_end(ask)
    model.end_process(PID, "kill")
    assert seen == [True]


def test_a_reboot_ends_processes_clears_logs_and_starts_the_boot_clock_anew() -> None:
    model = driven_model()
    told: list[Ended] = []
    model.on_end(told.append)
    load(model, 500_000_000)
    charge_c = model.physics.charge_c
    with model.present():
        model.reported.fake_battery(plugged=0)
        model.settings.put("system", "screen_brightness", "9")
    model.reboot()
    assert [ended.why for ended in told] == ["reboot"]
    assert (model.boot_ns(), model.boots) == (0, 1)
    assert model.memory.processes == {}
    assert model.processes.log.lines(frozenset({"main", "events"})) == []
    assert model.reported.battery_faked is None
    assert set((model.reported.rails() or {}).values()) == {0}
    assert model.settings.get("system", "screen_brightness") == "9"
    assert model.physics.charge_c == charge_c
    assert not model.screen.usable
    pass_seconds(model, 2.0)
    assert model.boot_ns() == 2 * 10**9
    assert model.moment_ns(model.boot_ns()) == model.physics.now_ns


def test_ending_a_process_that_is_gone_changes_nothing() -> None:
    model = driven_model()
    model.end_process(PID, "exit")
    model.end_process(PID, "kill")
    model.end_process(999, "crash")
    assert [exit_.reason for exit_ in model.processes.exits.of(RUNNER)] == [1]


def test_an_ordered_clock_holds_from_the_next_tick_and_ends_with_a_new_order() -> None:
    model = driven_model()
    model.advance(model.boot_ns() + TICK_NS // 3)
    model.throttle_to(0.4)
    assert model.physics.clock() == 1.0
    pass_seconds(model, 0.05)
    assert model.physics.clock() == 0.4
    model.throttle_to(1.0)
    pass_seconds(model, 0.05)
    assert model.physics.clock() == 1.0
    assert len(model.truth.throttle_onsets_ns()) == 1


def test_of_two_orders_for_one_moment_the_later_one_counts() -> None:
    model = driven_model()
    model.throttle_to(0.4)
    model.throttle_to(0.9)
    assert model.physics.clock() == 0.9


def test_an_action_is_planned_from_the_present_of_a_free_running_phone() -> None:
    clock = FakeClock()
    model = model_of(clock=clock)
    start_ns, seen = model.boot_ns(), []
    clock.sleep(10.0)
    model.at(1.0, lambda: seen.append(model.boot_ns() - start_ns))
    clock.sleep(60.0)
    model.sync()
    assert seen == [11 * 10**9]


def test_two_phones_share_nothing() -> None:
    one, other = driven_model(), driven_model()
    load(one, 500_000_000)
    other.start_process(PID + 1, RUNNER, UID)
    assert one.boot_ns() > other.boot_ns()
    assert set(one.memory.processes) == {PID}


def test_a_long_run_slows_down_and_is_the_same_in_every_repetition() -> None:
    def latencies() -> list[int]:
        model = driven_model(persona_with("galaxy-s24"))
        found = []
        while model.boot_ns() < model.persona.system.uptime_s * 10**9 + 300 * 10**9:
            found.append(call(model, 2_000_000_000))
        return found

    first = latencies()
    assert first == latencies()
    assert sum(first[-10:]) > 1.1 * sum(first[:10])

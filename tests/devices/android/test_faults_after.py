"""A host that goes away, or stops waiting: the phone finishes, and a later command brings home all of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profiler.devices.device import Away
from profiler.records.event import IterationDone
from profiler.records.run import Run
from profiler.session import Order, Progress
from tests.devices.android.faults_for_tests import (
    LEAST,
    CommandLine,
    at_event,
    check_whole,
    once,
    plug_in,
    sessions,
    until,
)
from tests.devices.android.phones_for_tests import Desk
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import make_order
from tests.victims import Victim

SETTINGS = (
    ("system", "screen_off_timeout"),
    ("system", "screen_brightness_mode"),
    ("global", "stay_on_while_plugged_in"),
)


@pytest.fixture
def pixel() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner="python") as phone:
        yield phone


@pytest.fixture
def order(small_bundle: Path) -> Order:
    """Long enough for something to happen meanwhile: there is a rest after the cold image."""
    return make_order(small_bundle, repeats=3, rest_s=1.5)


def settings(phone: VirtualAndroid) -> list[str | None]:
    with phone.model.present():
        return [phone.model.settings.get(*name) for name in SETTINGS]


def journals(phone: VirtualAndroid) -> list[Path]:
    return list(phone.host_path("/sdcard/Android/data").glob("*/files/sessions/*/*/events.jsonl"))


def finished(phone: VirtualAndroid) -> bool:
    """Tell whether the last event of a run is written; its process waits for a host for a while yet."""
    return any(b'"event":"stop"' in journal.read_bytes() for journal in journals(phone))


def brought_home(profile: CommandLine, desk: Desk, phone: VirtualAndroid) -> Run:
    """Collect what a phone kept, and check that all of it is here and nothing else is left."""
    said = profile.run("collect")
    assert said.code == 0
    assert "collected run" in said.text
    assert sessions(desk.store) == []
    assert not list(phone.host_path("/sdcard/Android/data").glob("*/files/sessions/*"))
    (run_id,) = desk.store.run_ids()
    check_whole(desk.store, run_id)
    return desk.store.load(run_id)


def interrupt() -> None:
    raise KeyboardInterrupt


AWAY: dict[str, tuple[type[BaseException], Callable[[Progress], bool]]] = {
    "patience ends": (Away, lambda state: False),
    "Ctrl-C": (KeyboardInterrupt, lambda state: state.phase == "away"),
}


@pytest.mark.parametrize(("error", "stop"), AWAY.values(), ids=AWAY)
def test_a_run_whose_phone_stays_away_is_kept_and_collected_whole_later(
    profile: CommandLine,
    desk: Desk,
    pixel: VirtualAndroid,
    order: Order,
    error: type[BaseException],
    stop: Callable[[Progress], bool],
) -> None:
    pull, stopped = at_event(IterationDone, pixel.unplug), once(stop, interrupt)
    before = settings(pixel)
    with pytest.raises(error):
        desk.measure(pixel, order._replace(away_timeout_s=1.0), lambda state: (pull(state), stopped(state))[0])
    assert len(sessions(desk.store)) == 1
    assert desk.store.run_ids() == []
    waits = profile.run("collect")
    assert "waits" in waits.text
    assert len(sessions(desk.store)) == 1
    until(lambda: finished(pixel))
    plug_in(desk, pixel)
    run = brought_home(profile, desk, pixel)
    assert (run.outcome, run.reason, len(run.iterations)) == ("completed", None, 4)
    assert settings(pixel) == before


def test_ctrl_c_on_the_command_line_while_the_phone_is_away_leaves_its_run_to_it(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    desk.server.connect(pixel.address)
    host = Victim(small_bundle, desk.store.root, ["--device", "android", *LEAST, "--repeats", "300"])
    until(lambda: bool(journals(pixel)))
    pixel.freeze_app()  # so that it is at work for as long as this test needs
    pixel.unplug()
    host.signal(signal.SIGINT)
    code, said = host.end()
    assert code == 130
    assert said.endswith("kept (profile runs); a phone that was away goes on by itself: profile collect\n")
    assert len(sessions(desk.store)) == 1
    pixel.thaw_app()
    until(lambda: finished(pixel))
    plug_in(desk, pixel)
    run = brought_home(profile, desk, pixel)
    assert (run.outcome, run.reason, len(run.iterations)) == ("completed", None, 301)


def test_a_killed_hosts_run_is_neither_cut_short_nor_lost_and_the_phone_is_put_back(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    before = settings(pixel)
    desk.server.connect(pixel.address)
    host = Victim(small_bundle, desk.store.root, ["--device", "android", *LEAST, "--repeats", "300"])
    until(lambda: bool(journals(pixel)))
    pixel.freeze_app()  # so that it is at work for as long as this test needs
    host.signal(signal.SIGKILL)
    host.end()
    assert settings(pixel) != before
    second = profile.measure(pixel, small_bundle)
    assert second.code == 3
    assert "waits to be collected: Google Pixel 9 is still at work on it" in second.text
    assert "is still at work on run" in second.text
    assert "profile collect --stop" in second.text
    assert len(sessions(desk.store)) == 1  # the first's: the second, which was refused, leaves none
    pixel.thaw_app()
    until(lambda: finished(pixel))
    run = brought_home(profile, desk, pixel)
    assert (run.outcome, run.reason, len(run.iterations)) == ("completed", None, 301)
    assert settings(pixel) == before


def test_a_run_that_a_killed_host_left_at_work_can_be_stopped_and_kept(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    desk.server.connect(pixel.address)
    host = Victim(small_bundle, desk.store.root, ["--device", "android", *LEAST, "--repeats", "5000"])
    until(lambda: any(b'"event":"iteration"' in journal.read_bytes() for journal in journals(pixel)))
    pixel.freeze_app()
    host.signal(signal.SIGKILL)
    host.end()
    said = profile.run("collect", "--stop")
    assert said.code == 0
    (run_id,) = desk.store.run_ids()
    run = desk.store.load(run_id)
    assert run.outcome == "interrupted"
    assert run.iterations
    assert pixel.apps.running() == {}
    assert sessions(desk.store) == []

"""Trouble on the way to a phone: cables, servers, several phones, and several ways to one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profiler.devices.device import Transfer
from profiler.errors import DeviceError
from profiler.records.event import IterationDone
from profiler.session import Progress
from tests.devices.android.faults_for_tests import (
    CommandLine,
    at_event,
    check_whole,
    half_written,
    once,
    plug_in,
    sessions,
)
from tests.devices.android.phones_for_tests import Desk
from tests.phones.adb_server import Adb, adb_server
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import build_small_bundle, make_order


@pytest.fixture
def pixel() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner="python") as phone:
        yield phone


@pytest.fixture(scope="module")
def large_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with one file of four megabytes among small ones."""
    return build_small_bundle(tmp_path_factory.mktemp("bundles") / "large", slow=1)


@pytest.fixture
def own_adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    """Give a server that may be ended, and end whatever took its place."""
    with adb_server(tmp_path_factory.mktemp("home")) as adb:
        yield adb
        adb.run("kill-server")


def end(adb: Adb) -> None:
    """End a server, as another tool of another version does before it starts its own."""
    assert adb.run("kill-server").returncode == 0


def restart(adb: Adb) -> None:
    """Put another server into a server's place."""
    end(adb)
    assert adb.run("start-server").returncode == 0


def sent(states: list[Progress]) -> list[Transfer]:
    return [state.transfer for state in states if state.transfer is not None]


# -- the cable


def test_a_cable_pulled_in_the_middle_of_a_push_costs_only_the_file_under_way(
    desk: Desk, pixel: VirtualAndroid, large_bundle: Path
) -> None:
    order = make_order(large_bundle)
    first: list[Progress] = []
    second: list[Progress] = []
    pixel.unplug_during_push(after_bytes=1 << 20)
    with pytest.raises(DeviceError) as caught:
        desk.measure(pixel, order, first.append)
    assert "what has arrived is not sent twice" in str(caught.value)
    assert sessions(desk.store) == []
    assert pixel.apps.running() == {}
    plug_in(desk, pixel)
    run = desk.measure(pixel, order, second.append)
    assert run.outcome == "completed"
    (whole,) = {transfer.total_bytes for transfer in sent(first)}
    (rest,) = {transfer.total_bytes for transfer in sent(second)}
    assert 4 << 20 < rest < whole
    assert half_written(pixel.host_path("/data/local/tmp")) == []
    assert half_written(desk.store.root) == []


def test_a_bundle_that_was_damaged_on_the_phone_is_sent_again_where_it_is(
    desk: Desk, pixel: VirtualAndroid, large_bundle: Path
) -> None:
    order = make_order(large_bundle)
    states: list[Progress] = []
    with desk.device(pixel) as device:
        path = device.bring(large_bundle, order.bundle, lambda transfer: None)
    damaged = pixel.host_path(f"{path}/components/decoder.decode.onnx")
    size = damaged.stat().st_size
    damaged.write_bytes(bytes(size))
    run = desk.measure(pixel, order, states.append)
    assert run.outcome == "completed"
    assert {(transfer.file, transfer.total_bytes) for transfer in sent(states)} == {
        ("components/decoder.decode.onnx", size)
    }


# -- the server


def test_a_server_that_another_tool_restarts_during_a_push_costs_only_the_file_under_way(
    own_adb: Adb, tmp_path: Path, pixel: VirtualAndroid, large_bundle: Path
) -> None:
    desk, order = Desk(own_adb, tmp_path), make_order(large_bundle)

    halfway = once(
        lambda state: state.transfer is not None and state.transfer.done_bytes > 1 << 20, lambda: restart(own_adb)
    )
    with pytest.raises(DeviceError) as caught:
        desk.measure(pixel, order, halfway)
    assert "what has arrived is not sent twice" in str(caught.value)
    assert sessions(desk.store) == []
    assert desk.measure(pixel, order).outcome == "completed"


def test_a_server_that_another_tool_restarts_during_a_run_costs_nothing(
    own_adb: Adb, tmp_path: Path, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    desk, order = Desk(own_adb, tmp_path), make_order(small_bundle, repeats=3, rest_s=1.5)

    run = desk.measure(pixel, order, at_event(IterationDone, lambda: restart(own_adb)))
    assert (run.outcome, run.reason, len(run.iterations)) == ("completed", None, 4)
    check_whole(desk.store, run.run_id)


def test_a_server_that_was_ended_is_started_again(
    own_adb: Adb, tmp_path: Path, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    desk, order = Desk(own_adb, tmp_path), make_order(small_bundle, repeats=3, rest_s=1.5)
    run = desk.measure(pixel, order, at_event(IterationDone, lambda: end(own_adb)))
    assert (run.outcome, run.reason, len(run.iterations)) == ("completed", None, 4)


# -- several phones, several ways


@pytest.fixture(scope="module")
def galaxy() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("galaxy-s24", runner="python") as phone:
        yield phone


def test_of_two_phones_the_one_that_is_meant_is_taken(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, galaxy: VirtualAndroid, small_bundle: Path
) -> None:
    for phone in (pixel, galaxy):
        desk.server.connect(phone.address)
    unclear = profile.run("--device", "android", "--bundle", str(small_bundle))
    assert unclear.code == 3
    assert f"2 phones may be meant: {pixel.serial}, {galaxy.serial}" in unclear.text
    assert "--serial SERIAL" in unclear.text
    wrong = profile.measure(galaxy, small_bundle, device="pixel9")
    assert wrong.code == 3
    assert "To measure on RFCX21PHV1D: --device galaxy-s24." in wrong.text
    assert profile.measure(galaxy, small_bundle).code == 0
    (run_id,) = desk.store.run_ids()
    assert desk.store.load(run_id).unit.profile == "galaxy-s24"


def test_two_phones_are_measured_at_the_same_time(
    desk: Desk, pixel: VirtualAndroid, galaxy: VirtualAndroid, small_bundle: Path
) -> None:
    order = make_order(small_bundle, repeats=3)
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda phone: desk.measure(phone, order), (pixel, galaxy)))
    assert [(run.outcome, run.unit.profile) for run in runs] == [("completed", "pixel9"), ("completed", "galaxy-s24")]
    assert runs[0].run_id != runs[1].run_id
    for run in runs:
        check_whole(desk.store, run.run_id)


def test_a_phone_that_is_measured_is_not_taken_by_a_second_command(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, small_bundle: Path, tmp_path: Path
) -> None:
    desk.server.connect(pixel.address)
    with desk.device(pixel, leases=tmp_path / "cache" / "ondevice-profiler" / "units"):
        said = profile.measure(pixel, small_bundle)
    assert said.code == 3
    assert "is in use: another profile command" in said.text
    assert "Wait until that one is done." in said.text


def test_one_phone_over_two_ways_is_one_and_goes_on_over_the_other(
    desk: Desk, pixel: VirtualAndroid, profile: CommandLine, small_bundle: Path
) -> None:
    desk.server.connect(pixel.address)
    desk.server.connect(f"localhost:{pixel.adbd.port}")
    said = profile.measure(pixel, small_bundle)
    listed = profile.devices()
    assert said.code == 0
    assert listed.text.count(pixel.serial) == 1
    desk.server.disconnect(f"localhost:{pixel.adbd.port}")

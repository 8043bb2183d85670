from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from profiler.catalog import device_profile
from profiler.clock import RealClock
from profiler.devices.android.runner import SESSIONS
from profiler.devices.device import Transfer
from profiler.devices.local import LocalDevice
from profiler.errors import DeviceError, InputError
from profiler.records.recipe import Recipe
from profiler.session import measure
from tests.devices.android.phones_for_tests import Desk
from tests.phones.adb_server import Adb, adb_server, installed_adbs
from tests.phones.android.apps import Launching
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import make_order

PERSONAS = ("pixel9", "galaxy-s24", "xiaomi-14", "old-api29", "low-ram-4gb", "unknown-soc")


@pytest.fixture
def desk(adb: Adb, tmp_path: Path) -> Desk:
    return Desk(adb, tmp_path)


@pytest.fixture
def pixel() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner="kotlin") as phone:
        yield phone


@pytest.mark.parametrize("persona", PERSONAS)
def test_every_kind_of_phone_is_measured_from_push_to_stored_run(desk: Desk, small_bundle: Path, persona: str) -> None:
    phases: list[str] = []
    with VirtualAndroid(persona, runner="kotlin") as phone:
        order = make_order(small_bundle, cold_starts=2, warmups=1, repeats=3, observer_pairs=1)
        run = desk.measure(phone, order, lambda state: phases.append(state.phase))
        assert run.outcome == "completed", run.reason
        assert phone.apps.running() == {}
    assert [sample.phase for sample in run.iterations] == ["cold", "cold", "warmup", *["timed"] * 3, *["observer"] * 2]
    assert (run.unit.platform, run.unit.virtual, run.synthetic) == ("android", True, True)
    assert {"push", "launch", "collect"} <= set(phases)
    assert all(process.memory and process.memory.peak_bytes for process in run.processes)
    assert [image.role for image in run.images] == ["output"]
    assert {"virtual_device", "synthetic"} <= {doubt.kind for doubt in run.doubts}
    assert run.unit.profile == {"old-api29": run.unit.profile, "low-ram-4gb": run.unit.profile}.get(
        persona, run.unit.profile
    )
    assert phone.serial not in repr(run)


@pytest.mark.parametrize("name", installed_adbs())
def test_every_adb_at_hand_will_do(name: str, small_bundle: Path, tmp_path: Path) -> None:
    with adb_server(tmp_path, installed_adbs()[name]) as adb, VirtualAndroid("galaxy-s24", runner="kotlin") as phone:
        run = Desk(adb, tmp_path).measure(phone, make_order(small_bundle, repeats=2))
    assert run.outcome == "completed", run.reason


def test_the_python_runner_on_a_phone_makes_the_image_that_it_makes_here(desk: Desk, small_bundle: Path) -> None:
    order = make_order(small_bundle, cold_starts=1, repeats=1)
    with VirtualAndroid("pixel9", runner="python") as phone:
        there = desk.measure(phone, order)
    here = measure(
        order, LocalDevice(device_profile("local"), RealClock()), desk.store, RealClock(), lambda state: None
    )
    assert there.outcome == here.outcome == "completed"
    assert {sample.image_sha256 for sample in there.iterations} == {sample.image_sha256 for sample in here.iterations}
    assert not there.synthetic


def test_an_untethered_run_with_borrowed_gauges_is_refused_before_any_work(desk: Desk, small_bundle: Path) -> None:
    with VirtualAndroid("pixel9", runner="python") as phone:
        run = desk.measure(phone, make_order(small_bundle, cold_starts=2, untethered=True))
    assert run.outcome == "refused"
    assert "this computer's gauges" in (run.reason or "")
    assert run.iterations == ()


def test_nothing_of_a_finished_run_stays_on_the_phone_but_its_bundle(
    desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    desk.measure(pixel, make_order(small_bundle, cold_starts=1, repeats=1))
    with desk.device(pixel) as device:
        kept = device.shell.run("ls /data/local/tmp/ondevice-profiler; ls /sdcard/Android/data/*/files/sessions").text
        assert kept.split() == ["bundles"]


def test_a_second_run_sends_nothing_of_the_bundle_again(desk: Desk, pixel: VirtualAndroid, small_bundle: Path) -> None:
    order = make_order(small_bundle, cold_starts=1, repeats=1)
    transfers: list[Transfer | None] = []
    desk.measure(pixel, order, lambda state: transfers.append(state.transfer))
    assert any(transfers)
    transfers.clear()
    desk.measure(pixel, order, lambda state: transfers.append(state.transfer))
    assert not any(transfers)


def test_a_phone_in_use_is_not_taken_twice(desk: Desk, pixel: VirtualAndroid) -> None:
    with desk.device(pixel), pytest.raises(DeviceError, match="in use"), desk.device(pixel):
        raise AssertionError("it was opened twice")


def test_a_phone_without_the_runner_app_says_how_to_get_it(
    desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    pixel.apps.uninstall("org.ondeviceprofiler.runner")
    with pytest.raises(DeviceError, match="is not installed") as caught:
        desk.measure(pixel, make_order(small_bundle))
    assert "profile install APK" in str(caught.value)


def test_a_phone_that_shows_no_temperature_is_measured_and_that_is_said(
    desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    dumpsys = pixel.root / "system/bin/dumpsys"
    asked = pixel.root / "system/real/dumpsys"
    asked.parent.mkdir()
    dumpsys.rename(asked)
    dumpsys.write_text(
        '#!/system/bin/sh\ncase $1 in battery|thermalservice) ;; *) exec /system/real/dumpsys "$@";; esac\n'
    )
    dumpsys.chmod(0o755)
    cat = pixel.root / "system/bin/cat"
    cat.unlink()
    cat.write_text('#!/system/bin/sh\ncase "$*" in *thermal*) exit 1;; esac\nexec toybox cat "$@"\n')
    cat.chmod(0o755)
    phases: list[str] = []
    desk.measure(pixel, make_order(small_bundle, cold_starts=1, repeats=1), lambda state: phases.append(state.phase))
    assert any("no temperature of the phone can be read" in phase for phase in phases)


@pytest.mark.parametrize("port", [1, 70000, -5])
def test_a_runner_that_does_not_listen_where_it_says_is_stopped_and_told_of(
    desk: Desk, small_bundle: Path, port: int
) -> None:
    def liar(launching: Launching) -> tuple[str, ...]:
        said = f'echo "{{\\"port\\":{port},\\"pid\\":$$}}" >"$0/runner.json"; exec sleep 600'
        return ("sh", "-c", said, str(launching.storage))

    with VirtualAndroid("pixel9", runner=liar) as phone:
        run = desk.measure(phone, make_order(small_bundle))
        assert phone.apps.running() == {}
    assert (run.outcome, run.stage) == ("aborted", "launch")
    assert f"nothing listens on port {port}" in (run.reason or "")


def test_a_phone_that_names_files_outside_of_a_runners_folder_writes_none_here(
    desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    listing = pixel.root / "system/bin/ls"
    listing.unlink()
    listing.write_text('#!/system/bin/sh\ntoybox ls "$@"\ncase "$*" in *sessions*) echo ../../../stray.ppm;; esac\n')
    listing.chmod(0o755)
    with desk.device(pixel) as device:
        device.shell.check(f"mkdir -p {SESSIONS} && echo from the phone >{SESSIONS}/../stray.ppm")
    run = desk.measure(pixel, make_order(small_bundle, cold_starts=1, repeats=1))
    assert run.outcome == "completed", run.reason
    assert list(desk.store.root.rglob("stray*")) == []


@pytest.mark.parametrize(("runtime", "backend"), [("coreml", None), ("executorch", "coreml")])
def test_core_ml_is_refused_before_anything_is_sent(
    desk: Desk, pixel: VirtualAndroid, small_bundle: Path, runtime: str, backend: str | None
) -> None:
    recipe: Recipe = replace(make_order(small_bundle).bundle.recipe, runtime=runtime, backend=backend)
    with desk.device(pixel) as device, pytest.raises(InputError, match="does not run on Android"):
        device.engine_for(recipe)


def test_settings_are_as_they_were_after_a_run(desk: Desk, pixel: VirtualAndroid, small_bundle: Path) -> None:
    asked = "settings get system screen_off_timeout; settings get global stay_on_while_plugged_in"
    with desk.device(pixel) as device:
        before = device.shell.run(asked).text
    desk.measure(pixel, make_order(small_bundle, cold_starts=1, repeats=1))
    with desk.device(pixel) as device:
        assert device.shell.run(asked).text == before

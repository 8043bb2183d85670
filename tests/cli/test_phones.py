"""The commands that look at phones, with a real adb server and virtual phones."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.devices.android.adb import Server
from tests.cli.conftest import LEAST
from tests.phones.adb_server import Adb, adb_server
from tests.phones.android.phone import VirtualAndroid


@pytest.fixture(scope="module")
def adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    with adb_server(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def connected(adb: Adb, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualAndroid]:
    """Connect a phone to the server that the product finds."""
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb.port))
    with VirtualAndroid("pixel9", runner="python") as phone:
        Server().connect(phone.address)
        yield phone
        Server().disconnect(phone.address)


def test_a_connected_phone_is_listed_with_its_profile_state_and_gauges(
    connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["devices", "--json"]) == 0
    _, row = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (row["profile"], row["serial"], row["state"]) == ("pixel9", connected.serial, "ready")
    assert row["battery_percent"] is not None
    assert row["battery_temperature_millicelsius"] is not None
    assert row["free_storage_bytes"] > 0
    assert main(["devices"]) == 0
    assert connected.serial in capsys.readouterr().out


def test_a_phone_that_is_not_ready_is_listed_with_what_to_do(
    connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]
) -> None:
    connected.go_offline()
    assert main(["devices"]) == 0
    printed = capsys.readouterr()
    assert "offline" in printed.out
    assert "Replug the cable" in printed.err


def test_an_overridden_phone_is_listed_as_such_with_the_command_that_resets_it(
    connected: VirtualAndroid, adb: Adb, capsys: pytest.CaptureFixture[str]
) -> None:
    adb.run("shell", "dumpsys battery set level 50", serial=connected.address)
    assert main(["devices"]) == 0
    printed = capsys.readouterr()
    assert "overridden" in printed.out
    assert "dumpsys battery reset" in printed.err


def test_a_phone_whose_state_cannot_be_read_is_listed_with_why(
    connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]
) -> None:
    program = connected.root / "system/bin/dumpsys"
    program.write_text("#!/system/bin/sh\ntoybox head -c 20000000 /dev/zero\n")
    assert main(["devices"]) == 0
    printed = capsys.readouterr()
    assert connected.serial in printed.out
    assert "unreadable" in printed.out
    assert "printed more than 16777216 bytes" in " ".join(printed.err.split())


def test_what_a_phone_calls_itself_does_not_steer_the_terminal(
    connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]
) -> None:
    program = connected.root / "system/bin/getprop"
    program.write_text("#!/system/bin/sh\nprintf '[ro.product.model]: [a\\033]0;title\\007\\nb[red]]\\n'\n")
    assert main(["devices"]) == 0
    printed = capsys.readouterr().out
    assert "]0;title" in printed
    assert "b[red]" in printed
    assert not set(printed) & set("\033\007")
    assert len(printed.splitlines()) == 3


def test_the_doctor_looks_at_a_phone(connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--device", "pixel9", "--json"]) == 0
    found = {line["what"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["runner app"]["state"] == "there"
    assert {"battery", "temperature", "free storage"} <= found.keys()


def test_the_doctor_ends_with_3_where_the_app_is_missing(
    connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]
) -> None:
    connected.apps.uninstall("org.ondeviceprofiler.runner")
    assert main(["doctor", "--device", "pixel9"]) == 3
    assert "profile install" in capsys.readouterr().out


def test_the_doctor_counts_connected_phones(
    connected: VirtualAndroid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["doctor", "--store", str(tmp_path), "--json"])
    found = {line["what"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["adb"]["state"] == found[f"phone {connected.serial}"]["state"] == "there"


def test_the_app_is_installed_and_said_to_be_there(
    connected: VirtualAndroid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apk = tmp_path / "runner.apk"
    with zipfile.ZipFile(apk, "w") as archive:
        archive.writestr("AndroidManifest.txt", "package=org.ondeviceprofiler.runner\nversionCode=7\nversionName=7\n")
    assert main(["install", str(apk), "--device", "pixel9"]) == 0
    assert "version 7" in capsys.readouterr().out


def test_an_app_that_the_phone_refuses_is_an_error_with_what_to_do(
    connected: VirtualAndroid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.apk").write_bytes(b"no zip")
    assert main(["install", str(tmp_path / "broken.apk")]) == 2
    assert "cannot install broken.apk" in capsys.readouterr().err
    assert main(["install", str(tmp_path / "none.apk")]) == 2
    assert "no file at" in capsys.readouterr().err


def test_a_phone_is_measured_by_its_name(
    connected: VirtualAndroid, small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--bundle", str(small_bundle), "--store", str(tmp_path), "--json", *LEAST]
    assert main(["--device", "pixel9", *arguments]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["device"]["profile"], summary["outcome"]) == ("pixel9", "completed")
    assert summary["device"]["unit_id"]
    assert connected.serial not in json.dumps(summary)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--device", "galaxy-s24"], 3, "no Samsung Galaxy S24 is ready; connected: 4A171FDAS00VP9, Google Pixel 9"),
        (["--device", "pixel9", "--serial", "NOPE"], 3, "with the serial NOPE"),
        (["--device", "local", "--serial", "NOPE"], 2, "--serial names a phone"),
        (["--device", "local", "--untethered"], 2, "--untethered is for phones"),
        (["--device", "pixel9", "--usb-power", "true"], 2, "without --untethered"),
        (["--device", "pixel9", "--least-battery", "100"], 3, "allow less for this run: --least-battery"),
    ],
)
def test_what_cannot_be_measured_is_told_before_anything_is_started(
    connected: VirtualAndroid,
    small_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    assert main([*arguments, "--bundle", str(small_bundle), "--store", str(tmp_path), *LEAST]) == code
    assert says in " ".join(capsys.readouterr().err.split())
    assert connected.apps.running() == {}


def test_nothing_left_to_collect_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", "--store", str(tmp_path)]) == 0
    assert "nothing is left open" in capsys.readouterr().out


def test_a_phone_on_the_network_is_reached_first(connected: VirtualAndroid, capsys: pytest.CaptureFixture[str]) -> None:
    Server().disconnect(connected.address)
    assert main(["devices", "--connect", connected.address]) == 0
    assert connected.serial in capsys.readouterr().out
    assert main(["devices", "--connect", "127.0.0.1:1"]) == 3
    assert "cannot connect to 127.0.0.1:1" in capsys.readouterr().err


def test_every_known_phone_is_listed_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--profiles"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("local", "android", "pixel9", "galaxy-s24"))

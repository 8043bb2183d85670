"""Dumps have the shapes that phones print, vendor by vendor, and a host's parsers read the model out of them."""

from __future__ import annotations

import re

import pytest

from profiler.devices.android.battery import Battery, read_battery
from profiler.devices.android.batterystats import BatteryStats, read_batterystats
from profiler.devices.android.energy_meter import EnergyMeter, read_energy_meter
from profiler.devices.android.exits import read_exit_info
from profiler.devices.android.memory import ProcessGone, ProcessMemory, read_meminfo
from profiler.devices.android.screen import Screen, read_screen
from profiler.devices.android.thermal import Thermal, read_thermal_service
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture
from tests.phones.android.test_commands import Shell
from tests.phones.models_for_tests import ACTIVITY, RUNNER, persona_with
from tests.phones.personas import persona_names

METER = "dumpsys android.hardware.power.stats.IPowerStats/default"


def keys(text: str) -> list[str]:
    """Return the keys of `  key: value` lines up to the first other block."""
    return re.findall(r"^  ([\w ]+): ", text.split("\n\n")[0], re.MULTILINE)


def started(persona: str = "pixel9") -> Shell:
    shell = Shell(persona)
    shell.run(f"am start -n {ACTIVITY}")
    shell.model.drive()
    return shell


def pass_seconds(shell: Shell, seconds: float) -> None:
    shell.model.advance(shell.model.boot_ns() + round(seconds * 1e9))


def test_a_service_that_there_is_not_is_told_on_stderr_with_exit_code_0() -> None:
    answer = Shell().run("dumpsys nix")
    assert answer == (b"", b"Can't find service: nix\n", 0)
    assert Shell("xiaomi-14").run(METER).stderr.startswith(b"Can't find service: android.hardware.power")
    assert "  thermalservice\n" in Shell().text("dumpsys -l")
    assert Shell().text("dumpsys -t 5 battery").startswith("Current Battery")


# battery


@pytest.mark.parametrize(("persona", "captured"), [("unknown-soc", "battery_aosp_13"), ("pixel9", "battery_aosp_15")])
def test_batteries_list_the_keys_of_their_version_in_order(persona: str, captured: str) -> None:
    assert keys(Shell(persona).text("dumpsys battery")) == keys(capture(captured))


def test_one_ui_adds_its_own_keys_and_its_event_log() -> None:
    text = Shell("galaxy-s24").text("dumpsys battery")
    wanted = keys(capture("battery_samsung_full_usb"))
    assert [key for key in keys(text) if key in wanted] == [key for key in wanted if key in keys(text)]
    assert set(wanted) <= set(keys(text))
    assert re.search(r"^\[EventLogBuffer\]\n  \[\d+\] level:72,.*temperature:345", text, re.MULTILINE)


def test_lower_case_names_come_with_lines_that_are_no_keys() -> None:
    text = Shell("xiaomi-14").text("dumpsys battery")
    assert {"ac powered", "usb powered", "charge counter", "current now"} <= set(keys(text))
    assert text.count(" was sent via battery changed broadcast: ") == 2
    assert "MiuiBatteryService" in text


@pytest.mark.parametrize("name", persona_names())
def test_a_battery_is_read_as_the_gauge_shows_it(name: str) -> None:
    shell = Shell(name)
    battery, reading = read_battery(shell.text("dumpsys battery")), shell.model.reported.gauge_reading()
    assert isinstance(battery, Battery)
    assert (battery.level_percent, battery.external_power, battery.status) == (reading.level, True, "charging")
    shell.model.unplug()
    battery = read_battery(shell.text("dumpsys battery"))
    assert isinstance(battery, Battery)
    assert (battery.external_power, battery.status) == (False, "discharging")


def test_an_override_has_the_line_of_the_capture_and_freezes_everything() -> None:
    shell = Shell()
    shell.model.drive()
    shell.model.unplug()
    shell.run("dumpsys battery set level 77")
    before = shell.text("dumpsys battery")
    assert before.splitlines()[1] == capture("battery_override_active").splitlines()[1]
    assert "  level: 77\n" in before
    pass_seconds(shell, 600.0)
    assert shell.text("dumpsys battery") == before
    shell.run("dumpsys battery reset")
    assert "UPDATES STOPPED" not in shell.text("dumpsys battery")


def test_faking_a_plug_does_not_charge_and_faking_none_does_not_stop_charging() -> None:
    shell = Shell()
    shell.run("dumpsys battery unplug")
    assert "USB powered: false" in shell.text("dumpsys battery")
    assert shell.model.physics.plug == "usb"
    shell.run("dumpsys battery set ac 1")
    assert "AC powered: true" in shell.text("dumpsys battery")
    assert shell.run("dumpsys battery set nix 1").code == 255
    assert shell.run("dumpsys battery set level full").code == 255


# thermalservice


def test_temperatures_are_cached_rarely_and_the_hal_gives_them_now() -> None:
    shell = started()
    with shell.model.present():
        shell.model.work.call(5001, "d", "f", 20_000_000_000, 0)
    pass_seconds(shell, 20.0)
    thermal = read_thermal_service(shell.text("dumpsys thermalservice"))
    assert isinstance(thermal, Thermal)
    now = {sensor.name: sensor.temperature_millicelsius for sensor in thermal.sensors}
    cached = {sensor.name: sensor.temperature_millicelsius for sensor in thermal.cached_sensors}
    assert abs(now["BIG"] - shell.model.physics.temperatures.die * 1000) <= 1
    assert now["BIG"] > cached["BIG"] + 5000


def test_a_hal_that_is_not_ready_prints_what_the_capture_shows() -> None:
    text = Shell("low-ram-4gb").text("dumpsys thermalservice")
    wanted = capture("thermal_hal_not_ready").splitlines()
    assert [line for line in text.splitlines() if line in wanted or not line.startswith("\t")] == [
        line for line in wanted if not line.startswith("\t")
    ]


def test_a_vendors_daemon_throttles_while_status_and_hal_say_nothing() -> None:
    shell = started("xiaomi-14")
    shell.model.physics.temperatures = shell.model.physics.temperatures._replace(skin=48.0)
    pass_seconds(shell, 3.0)
    text = shell.text("dumpsys thermalservice")
    thermal = read_thermal_service(text)
    assert shell.model.physics.clock() < 1.0
    assert isinstance(thermal, Thermal)
    assert (thermal.status, thermal.sensors) == (0, ())
    assert "Current temperatures from HAL:\nCurrent cooling" in text


def test_a_sub_battery_that_is_not_there_reads_zero() -> None:
    assert "mValue=0.0, mType=2, mName=SUBBAT" in Shell("galaxy-s24").text("dumpsys thermalservice")


def test_status_follows_the_skin_with_hysteresis() -> None:
    shell = started()
    seen = []
    for skin_c in (30.0, 39.2, 38.0, 37.0, 47.0, 60.0):
        shell.model.physics.temperatures = shell.model.physics.temperatures._replace(skin=skin_c)
        pass_seconds(shell, 1.0)
        seen.append(shell.model.reported.thermal_status())
    assert seen == [0, 1, 1, 0, 3, 6]


def test_a_status_can_be_faked_and_cools_nothing() -> None:
    shell = Shell()
    shell.run("cmd thermalservice override-status 4")
    text = shell.text("dumpsys thermalservice")
    assert text.startswith(capture("thermal_override_active").splitlines()[0])
    assert "Thermal Status: 4\n" in text
    assert shell.model.physics.clock() == 1.0
    shell.run("cmd thermalservice reset")
    assert "IsStatusOverride: false\n" in shell.text("dumpsys thermalservice")
    assert shell.run("cmd thermalservice override-status 9").code == 255
    assert shell.run("cmd thermalservice nix").code == 255


@pytest.mark.parametrize(
    ("persona", "pattern"),
    [("pixel9", r"^\tTemperatureThreshold\{mType=3, mName=VIRTUAL-SKIN, mHot"), ("old-api29", r"^\t\{\.type = SKIN")],
)
def test_thresholds_have_the_shape_of_their_hal(persona: str, pattern: str) -> None:
    text = Shell(persona).text("dumpsys thermalservice")
    assert re.search(pattern, text, re.MULTILINE)
    thermal = read_thermal_service(text)
    assert isinstance(thermal, Thermal)
    assert thermal.thresholds[0].hot_millicelsius[3] == int(
        Shell(persona).model.persona.thermal_service.thresholds_c[2] * 1000
    )


# meminfo


@pytest.mark.parametrize(("persona", "captured"), [("pixel9", "meminfo_api30"), ("old-api29", "meminfo_api29")])
def test_meminfo_has_the_heads_of_its_version(persona: str, captured: str) -> None:
    text = started(persona).text(f"dumpsys meminfo {RUNNER}")
    heads = [line for line in capture(captured).splitlines() if re.search(r"Pss|Total  |---|App Summary", line)]
    assert heads
    assert [line for line in heads if line not in text.splitlines()] == []
    assert bool(re.search(r"TOTAL RSS:", text)) == (persona == "pixel9")


def test_meminfo_adds_up_to_the_ledger() -> None:
    shell = started()
    [process] = shell.model.memory.processes.values()
    for words in (RUNNER, f"-s {RUNNER}", str(process.pid)):
        memory = read_meminfo(shell.text(f"dumpsys meminfo {words}"))
        assert isinstance(memory, ProcessMemory)
        assert memory.pid == process.pid
        assert abs((memory.rss_bytes or 0) - process.resident_bytes) < 8192
        assert 0.9 < (memory.pss_bytes or 0) / process.resident_bytes <= 1.0


def test_a_process_that_is_gone_has_the_capture_s_words() -> None:
    text = Shell().text("dumpsys meminfo com.example.runner")
    assert text == capture("meminfo_gone")
    assert isinstance(read_meminfo(text), ProcessGone)


# activity


def test_ends_are_listed_as_on_a_phone() -> None:
    shell = started()
    shell.model.end_process(5001, "crash")
    shell.model.start_process(5002, RUNNER, 10123)
    shell.model.end_process(5002, "anr")
    text = shell.text(f"dumpsys activity exit-info {RUNNER}")
    captured = capture("exit_info").splitlines()
    assert text.splitlines()[0] == captured[0]
    assert re.sub(r"[\d.:-]+", "N", text.splitlines()[5]) == re.sub(r"[\d.:-]+", "N", captured[5])
    exits = read_exit_info(text)
    assert not isinstance(exits, Unavailable)
    assert [(one.pid, one.reason_code, one.status) for one in exits] == [(5002, 6, 0), (5001, 5, 11)]
    assert abs((exits[1].rss_bytes or 0) - 138_000_000) < 2_000_000


def test_exit_info_came_with_android_11() -> None:
    assert Shell("old-api29").text(f"dumpsys activity exit-info {RUNNER}").startswith("Bad activity command")
    assert "ApplicationExitInfo" not in Shell().text(f"dumpsys activity exit-info {RUNNER}")


def test_the_foreground_app_is_told_and_gone_when_the_screen_is_locked() -> None:
    shell = started()
    assert f"topResumedActivity=ActivityRecord{{c5d2f0 u0 {ACTIVITY} t42}}" in shell.text("dumpsys activity top")
    assert f"5001:{RUNNER}/u0a123" in shell.text("dumpsys activity processes")
    shell.run("input keyevent SLEEP")
    assert "topResumedActivity" not in shell.text("dumpsys activity activities")
    assert "nexuslauncher" in Shell().text("dumpsys activity")


# power, window, trust, deviceidle


def screen_of(shell: Shell) -> Screen:
    screen = read_screen(*(shell.text(f"dumpsys {name}") for name in ("power", "window policy", "trust", "deviceidle")))
    assert isinstance(screen, Screen)
    return screen


def test_screen_and_lock_are_read_through_all_their_states() -> None:
    shell = Shell(persona_with(screen={"lock": "pin"}))
    awake = screen_of(shell)
    assert (awake.awake, awake.keyguard_showing, awake.low_power) == (True, False, False)
    assert awake.screen_off_timeout_ms == 30_000
    shell.run("input keyevent SLEEP")
    asleep = screen_of(shell)
    assert (asleep.awake, asleep.keyguard_showing, asleep.keyguard_secure) == (False, True, True)
    shell.run("input keyevent WAKEUP")
    locked = screen_of(shell)
    assert (locked.awake, locked.keyguard_showing) == (True, True)


def test_stay_on_counts_only_while_the_phone_is_seen_as_plugged() -> None:
    shell = Shell()
    shell.run("svc power stayon usb")
    assert screen_of(shell).stays_on
    assert screen_of(shell).stay_on_setting == 2
    shell.run("dumpsys battery unplug")
    assert not screen_of(shell).stays_on


def test_the_focus_is_the_keyguards_while_it_shows() -> None:
    shell = started()
    assert ACTIVITY in re.findall(r"mCurrentFocus=.*", shell.text("dumpsys window"))[0]
    shell.run("input keyevent SLEEP")
    assert "NotificationShade" in re.findall(r"mCurrentFocus=.*", shell.text("dumpsys window"))[0]


# energy


def test_rails_count_what_was_drawn_since_boot() -> None:
    shell = started()
    start_ns = shell.model.boot_ns()
    pass_seconds(shell, 100.0)
    meter = read_energy_meter(shell.text(METER))
    assert isinstance(meter, EnergyMeter)
    drawn = shell.model.truth.energy_between(start_ns, shell.model.boot_ns()).total
    assert sum(meter.by_rail().values()) / 1e6 == pytest.approx(drawn, rel=0.001)
    assert {rail.subsystem for rail in meter.rails} >= {"Display", "TPU"}


def test_delta_counts_from_whoever_asked_last_and_rails_keep_their_sum() -> None:
    shell = started()
    shell.run(f"{METER} delta")
    pass_seconds(shell, 10.0)
    text = shell.text(f"{METER} delta")
    assert "Elapsed time: 10000 ms" in text
    deltas = [float(value) for value in re.findall(r"mWs \(\s*([\d.]+)\)", text)]
    totals = [float(value) for value in re.findall(r"([\d.]+) mWs", text)]
    assert sum(deltas) > 1_000
    pass_seconds(shell, 10.0)
    again = shell.text(f"{METER} delta")
    assert "Elapsed time: 10000 ms" in again
    assert sum(float(value) for value in re.findall(r"([\d.]+) mWs", again)) > sum(totals)


def test_bare_rail_names_stand_alone() -> None:
    shell = Shell(persona_with(dialect={"energy_meter": "hal2"}))
    meter = read_energy_meter(shell.text(METER))
    assert isinstance(meter, EnergyMeter)
    assert meter.rails[0].subsystem is None


def test_lshal_has_no_meter_to_debug() -> None:
    assert Shell().run("lshal debug android.hardware.power.stats@1.0::IPowerStats/default delta").code == 1


def test_batterystats_are_read_with_their_user() -> None:
    shell = started()
    with shell.model.present():
        shell.model.work.call(5001, "d", "f", 20_000_000_000, 0)
    pass_seconds(shell, 20.0)
    stats = read_batterystats(shell.text("dumpsys batterystats --charged --checkin"))
    assert isinstance(stats, BatteryStats)
    assert stats.capacity_microamperehours == 4_700_000
    assert stats.packages_by_uid == {10123: (RUNNER,)}
    assert (stats.modelled_use_microamperehours_by_uid or {})[10123] > 5_000


def test_cpuinfo_names_who_works() -> None:
    shell = started()
    assert RUNNER not in shell.text("dumpsys cpuinfo")
    with shell.model.present():
        shell.model.work.call(5001, "d", "f", 20_000_000_000, 0)
    assert f"  392% 5001/{RUNNER}: 372% user + 20% kernel\n" in shell.text("dumpsys cpuinfo")

"""The phone's programs answer in the words that phones use, and a host's parsers read the model out of them."""

from __future__ import annotations

import re
import shlex

import pytest

from profiler.devices.android.clocks import read_clocks
from profiler.devices.android.kill_lines import read_kill_lines
from profiler.devices.android.launching import Launch, Refusal, read_install, read_launch
from profiler.devices.android.memory import ProcessStatus, SystemMemory, read_process_status, read_system_memory
from profiler.devices.android.properties import facts_of, read_properties
from profiler.devices.android.storage import read_file_systems
from tests.devices.android.captures_for_tests import capture
from tests.phones.android.commands import Commands
from tests.phones.android.commands_answer import Answer
from tests.phones.models_for_tests import ACTIVITY, RUNNER, FakeApps, model_of, persona_with
from tests.phones.personas import Persona, persona_names


class Shell:
    """A phone's programs, asked by a line of words."""

    def __init__(self, persona: Persona | str = "pixel9") -> None:
        self.model = model_of(persona)
        self.apps = FakeApps(self.model)
        self.commands = Commands(self.model, self.apps)

    def run(self, line: str, stdin: bytes = b"") -> Answer:
        return self.commands.run(shlex.split(line), stdin)

    def text(self, line: str) -> str:
        return self.run(line).stdout.decode()

    def both(self, line: str) -> str:
        answer = self.run(line)
        return (answer.stdout + answer.stderr).decode()


def shape(text: str) -> str:
    """Return a text with its numbers and package names taken out."""
    text = text.replace("com.example.runner", RUNNER)
    return re.sub(r"\d+", "N", text)


def test_a_program_that_there_is_not_is_the_shells_127() -> None:
    answer = Shell().run("nix")
    assert answer == Answer(b"", b"/system/bin/sh: nix: inaccessible or not found\n", 127)


@pytest.mark.parametrize("name", Commands.names)
def test_no_program_falls_over_without_words(name: str) -> None:
    answer = Shell().run(name)
    assert isinstance(answer, Answer)
    assert b"Traceback" not in answer.stderr


@pytest.mark.parametrize("name", persona_names())
def test_properties_tell_who_the_phone_is_and_that_it_is_virtual(name: str) -> None:
    shell = Shell(name)
    properties = read_properties(shell.text("getprop"))
    assert isinstance(properties, dict)
    facts, persona = facts_of(properties), shell.model.persona
    assert (facts.serial, facts.api_level) == (persona.system.serial, persona.system.api)
    assert facts.model == persona.prop("ro.product.model")
    assert facts.virtual is not None
    assert facts.reports_low_memory_kills == persona.memory.low_memory_is_reported
    assert shell.text("getprop ro.serialno") == f"{persona.system.serial}\n"


def test_an_unset_property_is_an_empty_line_or_the_default() -> None:
    assert Shell().text("getprop ro.nix") == "\n"
    assert Shell().text("getprop ro.nix 7") == "7\n"


def test_properties_cannot_be_set() -> None:
    answer = Shell().run("setprop a b")
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr.startswith(b"Failed to set property 'a' to 'b'.")


def test_a_cold_start_prints_what_phones_print_and_makes_a_process() -> None:
    shell = Shell()
    text = shell.text(f"am start -W -S -n {ACTIVITY} --es storage /sdcard/x")
    assert shape(text) == shape(capture("am_start_cold"))
    assert shell.apps.extras == {"storage": "/sdcard/x"}
    assert isinstance(read_launch(text), Launch)
    assert list(shell.apps.running()) == list(shell.model.memory.processes)
    assert shell.text(f"pidof {RUNNER}") == "5001\n"


def test_a_start_of_what_runs_already_is_a_warning_and_no_second_process() -> None:
    shell = Shell()
    shell.run(f"am start -n {ACTIVITY}")
    launch = read_launch(shell.text(f"am start -W -n {ACTIVITY}"))
    assert isinstance(launch, Launch)
    assert launch.warning is not None
    assert len(shell.apps.running()) == 1


def test_stopping_first_makes_a_fresh_process() -> None:
    shell = Shell()
    shell.run(f"am start -n {ACTIVITY}")
    shell.run(f"am start -S -n {ACTIVITY}")
    assert list(shell.apps.running()) == [5002]
    assert [record.pid for record in shell.model.processes.exits.of(RUNNER)] == [5001]


def test_an_activity_that_there_is_not_is_told_in_words_with_exit_code_0() -> None:
    answer = Shell().run(f"am start -W -n {RUNNER}/.Missing")
    assert answer.code == 0
    expected = capture("am_start_missing").replace("RunnerActivity", "Missing")
    assert shape((answer.stdout + answer.stderr).decode()) == shape(expected)
    assert isinstance(read_launch((answer.stdout + answer.stderr).decode()), Refusal)


def test_other_wrong_starts_are_told_too() -> None:
    assert "unable to resolve" in Shell().both("am start -a android.intent.action.MAIN")
    assert "Bad component name" in Shell().both("am start -n nonsense")
    assert Shell().run("am dance").code == 255


def test_services_need_the_package_and_its_process() -> None:
    shell = Shell()
    assert "no service started" in shell.both("am start-foreground-service -n com.nix/.S")
    assert "background" in shell.both(f"am start-foreground-service -n {RUNNER}/.S")
    shell.run(f"am start -n {ACTIVITY}")
    assert shell.run(f"am start-foreground-service -n {RUNNER}/.S").code == 0
    assert "result=0" in shell.text("am broadcast -a org.x.PING")


def test_killing_spares_the_foreground_and_force_stop_does_not() -> None:
    shell = Shell()
    shell.run(f"am start -n {ACTIVITY}")
    shell.run(f"am kill {RUNNER}")
    assert len(shell.apps.running()) == 1
    shell.run(f"am force-stop {RUNNER}")
    assert (shell.apps.running(), shell.model.memory.processes) == ({}, {})
    assert shell.run(f"pidof {RUNNER}").code == 1


def test_home_sends_an_app_to_the_background_where_it_is_slow_and_may_be_killed() -> None:
    shell = Shell()
    shell.run(f"am start -n {ACTIVITY}")
    shell.run("input keyevent HOME")
    assert shell.model.physics.background
    assert "nexuslauncher" in shell.text("dumpsys activity top")
    shell.run(f"am start -n {ACTIVITY}")
    assert not shell.model.physics.background
    shell.run("input keyevent HOME")
    shell.run(f"am kill {RUNNER}")
    assert shell.apps.running() == {}


def test_packages_are_listed_found_and_removed() -> None:
    shell = Shell()
    assert shell.text("pm list packages -3") == f"package:{RUNNER}\n"
    assert "package:android\n" in shell.text("cmd package list packages")
    assert shell.text(f"pm path {RUNNER}") == "package:/data/app/~~phone/runner/base.apk\n"
    assert shell.run("pm path com.nix") == Answer(b"", b"", 1)
    assert shell.text(f"pm clear {RUNNER}") == "Success\n"
    assert shell.text(f"pm uninstall {RUNNER}") == "Success\n"
    assert shell.run(f"pm uninstall {RUNNER}").code == 1


def test_installing_wants_as_many_bytes_as_were_promised() -> None:
    shell = Shell()
    assert shell.run("cmd package install -r -S 3", b"apk") == Answer(b"Success\n")
    short = shell.run("pm install -S 4", b"apk")
    assert (short.code, short.stdout[:38]) == (1, b"Failure [INSTALL_FAILED_INVALID_APK: s")
    assert shell.run("pm install -S many", b"apk").code == 1
    assert "Unable to open" in shell.both("pm install /data/local/tmp/nix.apk")


def test_a_vendor_may_forbid_installing_over_usb() -> None:
    shell = Shell(persona_with("xiaomi-14", dialect={"user_restricted_install": True}))
    answer = shell.run("pm install -S 3", b"apk")
    refusal = read_install(answer.stdout.decode())
    assert isinstance(refusal, Refusal)
    assert refusal.code == "INSTALL_FAILED_USER_RESTRICTED"


def test_settings_read_null_where_they_are_not_set() -> None:
    shell = Shell()
    assert shell.text("settings get secure nix") == "null\n"
    assert shell.text("settings get system screen_off_timeout") == "30000\n"
    assert shell.run("settings put system screen_off_timeout 600000") == Answer()
    assert shell.text("settings get --user 0 system screen_off_timeout") == "600000\n"
    assert shell.text("settings delete system screen_off_timeout") == "Deleted 1 rows\n"
    assert shell.text("settings delete system screen_off_timeout") == "Deleted 0 rows\n"
    assert "low_power=0\n" in shell.text("settings list global")
    assert shell.run("settings get nix key").code == 255
    assert shell.run("settings get").code == 255


@pytest.mark.parametrize(("persona", "everything"), [("pixel9", "15"), ("old-api29", "7")])
def test_stay_on_is_a_setting_with_a_bit_for_each_plug(persona: str, everything: str) -> None:
    shell = Shell(persona)
    for order, value in (("usb", "2"), ("true", everything), ("false", "0")):
        shell.run(f"svc power stayon {order}")
        assert shell.text("settings get global stay_on_while_plugged_in") == f"{value}\n"


def test_keys_wake_darken_and_unlock_the_phone() -> None:
    shell, screen = Shell(), None
    screen = shell.model.screen
    shell.run("input keyevent 26")
    assert not screen.on
    shell.run("input keyevent KEYCODE_WAKEUP")
    assert (screen.on, screen.locked) == (True, True)
    shell.run("input keyevent 82")
    assert screen.usable
    shell.run("input keyevent KEYCODE_SLEEP")
    shell.run("input swipe 300 1000 300 300")
    assert screen.locked
    shell.run("input keyevent POWER")
    shell.run("input swipe 300 1000 300 300")
    assert screen.usable
    assert shell.run("input keyevent KEYCODE_NIX").code == 255


def test_a_pin_keeps_the_keyguard_where_it_is_and_says_nothing() -> None:
    shell = Shell(persona_with(screen={"lock": "pin"}))
    shell.run("input keyevent SLEEP")
    shell.run("input keyevent WAKEUP")
    assert shell.run("wm dismiss-keyguard") == Answer()
    assert shell.model.screen.locked
    assert shell.text("locksettings get-disabled") == "false\n"
    assert shell.run("locksettings verify").code == 255


def test_battery_saver_needs_a_phone_without_a_cable() -> None:
    shell = Shell()
    shell.run("cmd power set-mode 1")
    assert not shell.model.physics.power_save
    shell.model.unplug()
    shell.run("cmd power set-mode 1")
    assert shell.model.physics.power_save


def test_fixed_performance_is_refused_where_it_is_not_supported() -> None:
    shell = Shell()
    assert shell.run("cmd power set-fixed-performance-mode-enabled true") == Answer()
    assert shell.model.physics.clock() == shell.model.persona.power.fixed_performance_clock
    refused = Shell("xiaomi-14").run("cmd power set-fixed-performance-mode-enabled true")
    assert (refused.code, refused.stderr[:36]) == (255, b"Failed to set FIXED_PERFORMANCE mode")


def test_an_unknown_service_of_cmd_is_told_on_stderr() -> None:
    assert Shell().run("cmd nix x") == Answer(b"", b"cmd: Can't find service: nix\n", 20)


def test_the_log_is_read_by_buffer_tag_process_and_number() -> None:
    shell = Shell("low-ram-4gb")
    shell.run(f"am start -n {ACTIVITY}")
    [pid] = shell.apps.running()
    shell.model.drive()
    with shell.model.present():
        shell.model.work.load(pid, "big", 4_000_000_000, 1)
    shell.model.advance(shell.model.boot_ns() + 60 * 10**9)
    everything = shell.text("logcat -d -b main,system,events,crash -v threadtime -t 4000")
    assert everything.count("--------- beginning of") == 3
    assert [kill.killer for kill in read_kill_lines(everything)] == ["lmkd", "am_proc_died", "zygote"]
    kill = read_kill_lines(shell.text("logcat -d"))[0]
    assert (kill.pid, kill.process, kill.signal) == (pid, RUNNER, 9)
    assert "Zygote" not in shell.text("logcat -d -s lowmemorykiller:I")
    assert "Zygote" not in shell.text("logcat -d lowmemorykiller:I *:S")
    assert shell.text("logcat -d -s Zygote:E") == ""
    assert "Zygote" not in shell.text("logcat -d --pid=583")
    assert len(shell.text("logcat -d -b all -t 1").splitlines()) == 2
    assert shell.text("logcat -d -v brief -s Zygote").splitlines()[1].startswith("I/Zygote  ( 1022): Process")
    assert shell.text("logcat -d -b all -T '12-31 00:00:00.000'") == ""
    shell.run("logcat -c")
    assert shell.text("logcat -d -b all") == ""


def test_a_log_without_an_end_is_refused() -> None:
    assert Shell().run("logcat").code == 1


def test_dates_come_in_the_asked_format() -> None:
    shell = Shell()
    assert shell.text("date +%s") == "1700000000\n"
    assert shell.text("date +%s.%N") == "1700000000.000000000\n"
    assert shell.text("date -u +%Y-%m-%dT%H:%M:%S%z") == "2023-11-14T22:13:20+0000\n"
    assert shell.text("date") == "Tue Nov 14 22:13:20 UTC 2023\n"
    assert shell.run("date 010203042025").code == 1
    shell.model.jump(3600.0)
    assert shell.text("date +%s") == "1700003600\n"


def test_uptime_counts_from_the_last_boot() -> None:
    shell = Shell()
    assert " up 2 days,  3:44," in shell.text("uptime")
    shell.model.reboot()
    assert " up  0:00," in shell.text("uptime")


def test_space_is_that_of_the_data_partition() -> None:
    shell = Shell()
    [file_system] = read_file_systems(shell.text("df -k /data/local/tmp"))
    assert abs(file_system.free_bytes - shell.model.storage.free_bytes) < 1024
    shell.model.storage.fill(leaving_bytes=5_000_000)
    [file_system] = read_file_systems(shell.text("df /sdcard"))
    assert 4_900_000 < file_system.free_bytes <= 5_000_000
    assert shell.run("df /nix").code == 1


def test_processes_are_listed_with_their_memory() -> None:
    shell = Shell()
    shell.run(f"am start -n {ACTIVITY}")
    row = shell.text("ps -A").splitlines()[-1].split()
    assert (row[0], row[1], row[-1]) == ("u0_a123", "5001", RUNNER)
    assert int(row[4]) == shell.model.memory.processes[5001].resident_bytes // 1024


def test_process_files_tell_the_ledger() -> None:
    shell = Shell("low-ram-4gb")
    shell.run(f"am start -n {ACTIVITY}")
    [process] = shell.model.memory.processes.values()
    with shell.model.present():
        shell.model.memory.grow(process, 300_000_000, 1_500_000_000)
        shell.model.memory.grow(process, -100_000_000, 0)
    files = shell.commands.files()
    status = read_process_status((files[f"/proc/{process.pid}/status"] or b"").decode())
    assert isinstance(status, ProcessStatus)
    assert process.swapped_bytes > 0
    for told, true in (
        (status.resident_bytes, process.resident_bytes),
        (status.peak_resident_bytes, process.high_water_bytes),
        (status.swapped_bytes, process.swapped_bytes),
        (status.anonymous_bytes, process.anonymous_bytes),
        (status.file_backed_bytes, process.file_bytes),
    ):
        assert told is not None
        assert 0 <= true - told < 2048
    system = read_system_memory((files["/proc/meminfo"] or b"").decode())
    assert isinstance(system, SystemMemory)
    assert system.total_bytes // 1024 == shell.model.memory.total_bytes // 1024
    assert system.available_bytes == shell.model.memory.available_bytes() // 1024 * 1024
    shell.run(f"am force-stop {RUNNER}")
    assert not any(path.startswith(f"/proc/{process.pid}/") for path in shell.commands.files())


def test_clock_files_show_throttling() -> None:
    shell = Shell()
    shell.model.drive()
    shell.model.throttle_to(0.4)
    shell.model.advance(shell.model.boot_ns() + 10**8)
    files = shell.commands.files()
    lines = "\n".join(f"{path}:{(text or b'').decode().strip()}" for path, text in files.items() if "policy" in path)
    policies = read_clocks(lines)
    assert isinstance(policies, tuple)
    assert [policy.top_khz for policy in policies] == [1_950_000, 2_600_000, 3_105_000]
    assert [policy.limit_khz for policy in policies] == [820_000, 1_040_000, 1_242_000]
    assert files["/sys/devices/system/cpu/cpu7/cpufreq/scaling_max_freq"] == b"1242000\n"


def test_what_the_vendor_shuts_is_there_and_not_readable() -> None:
    files = Shell("unknown-soc").commands.files()
    assert files["/sys/class/thermal/thermal_zone0/temp"] is None
    assert files["/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"] is None
    assert files["/sys/class/power_supply/battery/uevent"] is None
    assert files["/sys/devices/system/cpu/cpu7/online"] == b"1\n"
    assert b"POWER_SUPPLY_CAPACITY=" in (Shell("xiaomi-14").commands.files()[
        "/sys/class/power_supply/battery/uevent"] or b"")  # fmt: skip


def test_the_processors_time_adds_up_with_work() -> None:
    shell = Shell()
    shell.run(f"am start -n {ACTIVITY}")
    shell.model.drive()

    def busy_jiffies() -> int:
        words = (shell.commands.files()["/proc/stat"] or b"").split()
        return int(words[1]) + int(words[3])

    before = busy_jiffies()
    with shell.model.present():
        shell.model.work.call(5001, "d", "f", 1_000_000_000, 0)
    shell.model.advance(shell.model.boot_ns() + 10**9)
    assert busy_jiffies() - before == 4 * 100
    own = (shell.commands.files()["/proc/5001/stat"] or b"").decode()
    assert own.startswith("5001 (profiler.runner) S ")
    assert sum(int(word) for word in own.rpartition(")")[2].split()[11:13]) == 4 * 100

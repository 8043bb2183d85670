"""The control channel: what a synthetic runner may ask, what it is told when it asks wrongly, and how it ends."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

import pytest

from profiler.clock import FakeClock
from tests.phones.control import ControlServer
from tests.phones.model import DeviceModel
from tests.phones.models_for_tests import PID, RUNNER, UID, model_of, persona_with


class Runner:
    """A runner's end of the channel."""

    def __init__(self, server: ControlServer) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=20.0)
        self._file = self._socket.makefile("rwb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def say(self, line: bytes) -> dict[str, Any] | None:
        """Send one line and return the reply, None at the end of the connection."""
        self._file.write(line + b"\n")
        self._file.flush()
        reply = self._file.readline()
        return json.loads(reply) if reply else None

    def ask(self, do: str, **values: object) -> dict[str, Any]:
        reply = self.say(json.dumps({"do": do, **values}).encode())
        assert reply is not None
        return reply

    def ended(self) -> bool:
        """Wait for the end of the connection."""
        return self._file.readline() == b""


class Bench:
    """A phone with a runner process, its channel and a runner's connection."""

    def __init__(self, model: DeviceModel, stack: ExitStack) -> None:
        self.model = model
        model.start_process(PID, RUNNER, UID)
        self.server = stack.enter_context(ControlServer(model))
        self._stack = stack

    def runner(self) -> Runner:
        return self._stack.enter_context(Runner(self.server))

    def attached(self) -> Runner:
        runner = self.runner()
        assert "error" not in runner.ask("attach", pid=PID)
        return runner


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def bench(stack: ExitStack) -> Bench:
    return Bench(model_of(), stack)


def freed(bench: Bench) -> bool:
    """Wait until the server has noticed the end of the connection."""
    return bench.server.wait_until_free(20.0) and not bench.model.driven


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'"attach"',
        b"\xff\xfe",
        b'{"do": "fly"}',
        b'{"do": ["attach"]}',
        b'{"do": "attach"}',
        b'{"do": "attach", "pid": "4242"}',
        b'{"do": "attach", "pid": true}',
        b'{"do": "attach", "pid": 1}',
        b'{"do": "advance", "boot_ns": 1}',
        b'{"do": "call"}',
        b'{"do": "read", "path": "/proc/self/status"}',
    ],
)
def test_a_wrong_request_gets_an_error_and_the_channel_goes_on(bench: Bench, line: bytes) -> None:
    runner = bench.runner()
    reply = runner.say(line)
    assert reply is not None
    assert set(reply) == {"error"}
    assert "boot_ns" in runner.ask("attach", pid=PID)


@pytest.mark.parametrize("request_", [{"do": "load", "component": 3}, {"do": "call", "component": "d", "function": "f",
    "parameters": -1, "output_bytes": 0}, {"do": "read"}, {"do": "canary", "rounds": 1.5}])  # fmt: skip
def test_wrong_values_of_an_attached_runner_change_nothing(bench: Bench, request_: dict[str, object]) -> None:
    runner = bench.attached()
    assert set(runner.ask(**request_)) == {"error"}  # type: ignore[arg-type]
    assert bench.model.work.job is None


def test_only_one_runner_drives_a_phone(bench: Bench) -> None:
    bench.attached()
    assert "drives" in bench.runner().ask("attach", pid=PID)["error"]


def test_time_moves_by_advance_only_and_both_clocks_together(bench: Bench) -> None:
    runner = bench.runner()
    start = runner.ask("attach", pid=PID)
    later = runner.ask("advance", boot_ns=start["boot_ns"] + 1_500_000_000)
    assert later == {"boot_ns": start["boot_ns"] + 1_500_000_000, "wall_ns": start["wall_ns"] + 1_500_000_000}
    assert runner.ask("advance", boot_ns=0) == later


def test_detaching_lets_time_run_free_and_another_runner_attach() -> None:
    clock = FakeClock()
    with ExitStack() as stack:
        bench = Bench(model_of(clock=clock), stack)
        first = bench.attached()
        assert first.ask("detach") == {}
        boot_ns = bench.model.boot_ns()
        clock.sleep(3.0)
        bench.model.sync()
        assert bench.model.boot_ns() == boot_ns + 3 * 10**9
        assert "boot_ns" in bench.runner().ask("attach", pid=PID)


def test_the_end_of_a_connection_lets_time_run_free(bench: Bench) -> None:
    with Runner(bench.server) as runner:
        runner.ask("attach", pid=PID)
        assert bench.model.driven
    assert freed(bench)


def test_a_torn_line_at_the_end_is_answered_by_nobody_and_harms_nothing(bench: Bench) -> None:
    with socket.create_connection(("127.0.0.1", bench.server.port), timeout=20.0) as torn:
        torn.sendall(b'{"do": "attach", "pi')
        torn.shutdown(socket.SHUT_WR)
        reply = b"".join(iter(lambda: torn.recv(4096), b""))
    assert b"error" in reply
    assert not bench.model.driven


def test_work_is_done_and_memory_seen_in_the_process_status(bench: Bench) -> None:
    runner = bench.runner()
    boot_ns = runner.ask("attach", pid=PID)["boot_ns"]
    loaded = runner.ask("load", component="denoiser", file_bytes=10**9, parameters=5 * 10**8)
    runner.ask("advance", boot_ns=boot_ns + loaded["duration_ns"])
    status = runner.ask("read", path="/proc/self/status")["text"]
    values = {line.split(":")[0]: line.split() for line in status.splitlines()}
    process = bench.model.memory.processes[PID]
    assert int(values["VmRSS"][1]) == process.resident_bytes // 1024
    assert int(values["VmHWM"][1]) == process.high_water_bytes // 1024
    called = runner.ask("call", component="denoiser", function="main", parameters=5 * 10**8, output_bytes=65_536)
    assert called["duration_ns"] > 10**8
    assert runner.ask("unload", component="denoiser") == {}
    assert runner.ask("canary", rounds=5)["duration_ns"] == bench.model.persona.work.canary_round_ns


def test_files_are_read_as_an_app_may(bench: Bench) -> None:
    runner = bench.attached()
    assert runner.ask("read", path="/sys/class/thermal/thermal_zone0/type") == {"text": "BIG\n", "reason": None}
    assert runner.ask("read", path="/sys/devices/system/cpu/cpu7/cpufreq/scaling_max_freq")["text"] == "3105000\n"
    assert runner.ask("read", path="/proc/self/stat")["text"].startswith(f"{PID} (")
    assert runner.ask("read", path=f"/proc/{PID}/cmdline")["text"] == f"{RUNNER}\0"
    assert runner.ask("read", path="/sys/class/power_supply/battery/uevent")["text"] is None
    denied = runner.ask("read", path="/proc/stat")
    assert denied == {"text": None, "reason": "/proc/stat: Permission denied"}
    missing = runner.ask("read", path="/proc/1/nix")
    assert missing == {"text": None, "reason": "/proc/1/nix: No such file or directory"}


def test_zones_are_shut_to_apps_where_the_vendor_says_so(stack: ExitStack) -> None:
    runner = Bench(model_of("galaxy-s24"), stack).attached()
    assert runner.ask("read", path="/sys/class/thermal/thermal_zone0/temp")["text"] is None


def test_the_battery_is_as_the_vendor_reports_it(stack: ExitStack) -> None:
    persona = persona_with("unknown-soc", gauge={"temperature": "whole"})
    reply = Bench(model_of(persona), stack).attached().ask("battery")
    assert reply["current_now"] is None
    assert reply["voltage_mv"] == 4
    assert reply["temperature_tenths"] == 27
    assert (reply["level"], reply["scale"], reply["plugged"], reply["status"]) == (64, 100, 2, 2)


def test_an_override_fakes_levels_but_not_the_gauges_own_values(bench: Bench) -> None:
    runner = bench.attached()
    with bench.model.present():
        bench.model.reported.fake_battery(level=5, plugged=0)
    bench.model.unplug()
    runner.ask("advance", boot_ns=bench.model.boot_ns() + 10**10)
    reply = runner.ask("battery")
    assert (reply["level"], reply["plugged"], reply["status"]) == (5, 0, 2)
    assert reply["current_now"] < 0


def test_headroom_is_refused_when_asked_too_often_and_where_it_is_not_supported(stack: ExitStack) -> None:
    bench = Bench(model_of(), stack)
    runner = bench.attached()
    first, second = runner.ask("thermal"), runner.ask("thermal")
    assert 0 < first["headroom"] < 1
    assert second["headroom"] is None
    runner.ask("advance", boot_ns=bench.model.boot_ns() + 10**9)
    assert runner.ask("thermal")["headroom"] is not None
    assert Bench(model_of("xiaomi-14"), stack).attached().ask("thermal") == {"status": 0, "headroom": None}


def test_power_monitors_are_there_from_android_15_on_and_count_up(stack: ExitStack) -> None:
    bench = Bench(model_of(), stack)
    runner = bench.attached()
    runner.ask("advance", boot_ns=bench.model.boot_ns() + 10**10)
    readings = runner.ask("power_monitors")["readings"]
    joules = bench.model.truth.energy_between(bench.model.boot_ns() - 10**10, bench.model.boot_ns()).total
    assert sum(readings.values()) / 1e6 == pytest.approx(joules, rel=0.001)
    older = Bench(model_of(persona_with("pixel9", system={"api": 34})), stack).attached()
    assert older.ask("power_monitors") == {"readings": None}


def test_screen_and_memory_are_told(bench: Bench) -> None:
    runner = bench.attached()
    assert runner.ask("screen") == {"interactive": True, "locked": False}
    with bench.model.present():
        bench.model.screen.sleep()
    assert runner.ask("screen") == {"interactive": False, "locked": True}
    limits = runner.ask("memory_limits")
    assert limits["total_bytes"] == bench.model.persona.memory.total_bytes
    assert 0 < limits["available_bytes"] < limits["total_bytes"]


def test_a_process_that_is_killed_while_it_waits_gets_no_reply(stack: ExitStack) -> None:
    bench = Bench(model_of("low-ram-4gb"), stack)
    runner = bench.runner()
    boot_ns = runner.ask("attach", pid=PID)["boot_ns"]
    duration_ns = runner.ask("load", component="big", file_bytes=4 * 10**9, parameters=1)["duration_ns"]
    line = json.dumps({"do": "advance", "boot_ns": boot_ns + duration_ns}).encode()
    assert runner.say(line) is None
    assert bench.model.truth.kills[0].why == "low memory"
    assert freed(bench)


def test_a_process_that_is_killed_from_outside_is_not_answered_either(bench: Bench) -> None:
    runner = bench.attached()
    bench.model.end_process(PID, "kill")
    assert runner.say(b'{"do": "battery"}') is None
    assert freed(bench)


def test_an_action_that_kills_the_runner_ends_its_connection_in_the_middle_of_an_advance(bench: Bench) -> None:
    runner = bench.attached()
    bench.model.at(1.0, lambda: bench.model.end_process(PID, "crash"))
    line = json.dumps({"do": "advance", "boot_ns": bench.model.boot_ns() + 5 * 10**9}).encode()
    assert runner.say(line) is None


def test_two_phones_are_driven_side_by_side(stack: ExitStack) -> None:
    one, other = Bench(model_of(), stack), Bench(model_of("galaxy-s24"), stack)
    first, second = one.attached(), other.attached()
    boot_ns = other.model.boot_ns()
    first.ask("advance", boot_ns=one.model.boot_ns() + 10**9)
    assert other.model.boot_ns() == boot_ns
    assert second.ask("advance", boot_ns=boot_ns + 5)["boot_ns"] == boot_ns + 5


def test_closing_ends_every_connection_and_listens_no_more(bench: Bench) -> None:
    runner = bench.attached()
    bench.server.close()
    assert runner.ended()
    assert freed(bench)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", bench.server.port), timeout=5.0)

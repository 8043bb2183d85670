"""Commands on a phone: what they print, how they end, and every way in which they do not."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import adbutils
import pytest

from profiler.clock import Deadline, RealClock
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.shell import Output, Shell, quoted
from profiler.devices.android.shell_protocol import Run, run_v1
from profiler.errors import DeviceError
from tests.phones.adb_server import Adb
from tests.phones.android.phone import VirtualAndroid

AWKWARD = [
    ("echo out; echo err >&2; exit 3", b"out\n", b"err\n", 3),
    ("printf 'no line end'", b"no line end", b"", 0),
    ("printf '\\n\\n'; printf 'x\\n\\n' >&2", b"\n\n", b"x\n\n", 0),
    ("cat", b"", b"", 0),  # standard input is empty and not the next command
    ("sleep 0 &", b"", b"", 0),
    ("echo a # not what follows", b"a\n", b"", 0),
    ("echo 'it'\"'\"'s'; echo \"b\nc\"", b"it's\nb\nc\n", b"", 0),
    ("false", b"", b"", 1),
    ("", b"", b"", 0),
    ("head -c 200000 /dev/zero", bytes(200_000), b"", 0),
]


@pytest.mark.parametrize(("command", "stdout", "stderr", "code"), AWKWARD)
def test_streams_and_exit_code_come_apart_on_the_kept_connection(
    shell: Shell, command: str, stdout: bytes, stderr: bytes, code: int
) -> None:
    assert shell.run(command) == Output(stdout, stderr, code)
    assert shell.run("echo next") == Output(b"next\n", b"", 0)


@pytest.mark.parametrize(("command", "stdout", "stderr", "code"), AWKWARD)
def test_streams_and_exit_code_come_apart_on_a_connection_of_their_own(
    shell: Shell, command: str, stdout: bytes, stderr: bytes, code: int
) -> None:
    assert shell.once(command) == Output(stdout, stderr, code)


@pytest.mark.parametrize(("command", "stdout", "stderr", "code"), AWKWARD)
def test_streams_and_exit_code_come_apart_on_a_phone_without_the_shell_protocol(
    transport: Transport, command: str, stdout: bytes, stderr: bytes, code: int
) -> None:
    run = Run(transport.serial, command, 5, 1 << 20, Deadline(5, RealClock()))

    assert run_v1(transport, run) == Output(stdout, stderr, code)


def test_a_broken_command_does_not_break_the_next_one(shell: Shell) -> None:
    broken = shell.run("echo 'and so on (")

    assert broken.code != 0
    assert b"quote" in broken.stderr
    assert shell.run("cd /data; X=1; set -e; exit").code == 0
    assert shell.run("echo $X; pwd").text == "\n/\n"


def test_a_killed_command_ends_with_its_signal(shell: Shell) -> None:
    assert shell.run("sh -c 'kill -9 $$'").code == 137
    assert shell.once("sh -c 'kill -9 $$'; exit $?").code == 137


def test_a_command_runs_in_a_kept_shell_and_not_in_a_new_one(shell: Shell) -> None:
    assert shell.run("echo $PPID $$").text == shell.run("echo $PPID $$").text
    assert shell.once("echo $$").text != shell.once("echo $$").text


def test_two_at_once_do_not_wait_for_each_other(shell: Shell, phone: VirtualAndroid) -> None:
    fifo = "/data/local/tmp/meet"
    shell.check(f"rm -f {fifo}; mkfifo {fifo}")
    found: list[str] = []
    other = threading.Thread(target=lambda: found.append(shell.run(f"cat {fifo}").text))
    other.start()

    shell.run(f"echo met >{fifo}", deadline_s=10)
    other.join(10)

    assert found == ["met\n"]


def test_a_long_command_goes_another_way(shell: Shell) -> None:
    words = "x" * 20_000

    assert shell.run(f"echo {words}").text == f"{words}\n"


@pytest.mark.parametrize("kept", [True, False])
def test_a_hung_command_is_named_with_the_seconds(shell: Shell, kept: bool) -> None:
    run = shell.run if kept else shell.once

    with pytest.raises(DeviceError, match=r"'sleep 30' gave no answer in 0\.2 s; it may still be running"):
        run("sleep 30", 0.2)

    assert shell.run("echo here").text == "here\n"


@pytest.mark.parametrize("kept", [True, False])
def test_too_much_output_is_cut_off(shell: Shell, kept: bool) -> None:
    run = shell.run if kept else shell.once

    with pytest.raises(DeviceError, match="'yes' printed more than 100000 bytes"):
        run("yes", limit_bytes=100_000)

    assert shell.run("echo here").text == "here\n"


def test_large_output_is_read_whole_where_the_shell_of_adbutils_mixes_streams(shell: Shell, adb: Adb) -> None:
    command = "head -c 5000000 /dev/zero; echo err >&2"

    output = shell.run(command)

    assert (len(output.stdout), output.stderr) == (5_000_000, b"err\n")
    oracle = adbutils.AdbClient(port=adb.port).device(shell._transport.serial).shell2(command, encoding=None, v2=True)
    assert (oracle.stdout, oracle.stderr) == (output.stdout, output.stderr)


def test_the_kept_shell_is_started_again_when_it_was_killed(shell: Shell) -> None:
    first = shell.run("echo $$").text.strip()

    with pytest.raises(DeviceError, match="connection broke while"):
        shell.run(f"kill -9 {first}")

    assert shell.run("echo $$").text.strip() != first


def test_what_a_left_process_prints_is_not_the_next_commands_output(shell: Shell) -> None:
    shell.run("(sleep 0.05; echo late) &")
    shell.once("sleep 0.2")

    assert shell.run("echo mine").text == "mine\n"


def test_a_batch_is_one_round_trip_with_each_commands_output_and_code(shell: Shell) -> None:
    outputs = shell.batch(["echo one", "nosuchprogram", "printf two", "exit 4", "echo $X"])

    assert [output.code for output in outputs] == [0, 127, 0, 4, 0]
    assert [output.text for output in outputs][::2] == ["one\n", "two", "\n"]
    assert b"not found" in outputs[1].stdout


def test_a_command_that_has_to_end_well_says_what_the_phone_complained_about(shell: Shell) -> None:
    assert shell.check("echo fine") == "fine\n"
    with pytest.raises(DeviceError, match=r"'ls /nowhere' failed: .*No such file or directory"):
        shell.check("ls /nowhere")
    with pytest.raises(DeviceError, match="'exit 9' failed: exit code 9, and not a word"):
        shell.check("exit 9")


def test_words_are_quoted_as_the_phone_reads_them(shell: Shell) -> None:
    words = ["a b", "$HOME", "it's", "*", "", "-n", "ü\n"]

    assert shell.run(f'for w in {quoted(*words)}; do echo "[$w]"; done').text == "".join(f"[{w}]\n" for w in words)


def test_an_old_phone_takes_commands_longer_than_its_packets(transport: Transport) -> None:
    words = " ".join(f"word{number}" for number in range(2000))
    run = Run(transport.serial, f"echo {words}; echo odd >&2; false", 20.0, 1 << 20, Deadline(20.0, RealClock()))
    assert run_v1(transport, run) == Output(f"{words}\n".encode(), b"odd\n", 1)


def test_a_phone_that_goes_while_a_command_runs_is_told(transport: Transport, phone: VirtualAndroid) -> None:
    shell = Shell(transport)
    shell.run("true")
    gone = threading.Timer(0.1, phone.adbd.drop_links)
    gone.start()

    with pytest.raises(DeviceError, match="connection broke while 'sleep 20' ran"):
        shell.run("sleep 20")

    gone.join()
    transport.wait(20, RealClock())
    assert shell.run("echo back").text == "back\n"
    shell.close()


def test_a_server_that_another_tool_restarts_costs_only_the_command_under_way(
    tmp_path: Path, phone: VirtualAndroid, adb: Adb
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = Server(environment={**adb.environment, "ANDROID_ADB_SERVER_PORT": str(port)})
    other_tool = Adb(adb.program, server._environment, port)
    shell = Shell(Transport(server, phone.address))
    try:
        assert shell.run("echo one").text == "one\n"
        other_tool.run("kill-server")
        assert shell.run("echo two").text == "two\n"  # none ran: we started one
        killing = threading.Timer(0.1, lambda: other_tool.run("kill-server"))
        killing.start()
        with pytest.raises(DeviceError, match="connection broke while 'sleep 20' ran"):
            shell.run("sleep 20")
        killing.join()
        other_tool.run("kill-server")
        other_tool.run("start-server")
        assert shell.run("echo three").text == "three\n"  # theirs, which knows no phones
    finally:
        shell.close()
        other_tool.run("kill-server")

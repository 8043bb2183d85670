"""A healthy virtual phone, seen through each real adb that is installed."""

from __future__ import annotations

import hashlib
import os
import shlex
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.phones.adb_server import Adb, adb_server
from tests.phones.android.packages import write_apk
from tests.phones.android.phones_for_tests import Seen, connected

TMP = "/data/local/tmp"
ODD_NAMES = ["two  words", 'quote\'d "twice"', "-rf", "ünïcödé 漢字", "$HOME;`id`", "back\\slash", "*"]


@pytest.fixture(scope="module")
def seen(adb: Adb) -> Iterator[Seen]:
    with connected(adb) as seen:
        yield seen


def test_it_is_listed_with_its_product(seen: Seen) -> None:
    line = next(
        line for line in seen.adb.run("devices", "-l").stdout.decode().splitlines() if seen.phone.address in line
    )
    assert " device product:tokay model:Pixel_9 device:tokay " in line
    assert seen.run("get-state").stdout == "device\n"


def test_it_offers_only_what_it_can_do(seen: Seen) -> None:
    offered = seen.run("features").stdout.split()
    assert {"shell_v2", "stat_v2", "ls_v2", "abb_exec"} <= set(offered)
    assert not [name for name in offered if name.endswith(("brotli", "lz4", "zstd"))]


# -- shell


def test_the_second_shell_keeps_output_errors_and_exit_code_apart(seen: Seen) -> None:
    assert seen.shell("echo out; echo err >&2; exit 42") == ("out\n", "err\n", 42)


def test_the_first_shell_mixes_them_and_has_no_exit_code(seen: Seen) -> None:
    done = seen.run("shell", "-x", "echo out; echo err >&2; exit 42")
    assert (done.stdout, done.code) == ("out\nerr\n", 0)


def test_standard_input_goes_to_the_command(seen: Seen) -> None:
    everything = bytes(range(256)) * 1000
    assert seen.run("shell", "sha256sum", stdin=everything).stdout.split() == [_sha256(everything), "-"]


def test_a_script_on_standard_input_is_run(seen: Seen) -> None:
    assert seen.run("shell", stdin=b"echo one\necho two\nexit 5\n") == ("one\ntwo\n", "", 5)


def test_exec_out_is_binary(seen: Seen) -> None:
    done = seen.adb.run("exec-out", "printf 'a\\r\\n\\000b'", serial=seen.phone.address)
    assert done.stdout == b"a\r\n\0b"


def test_large_output_arrives_whole(seen: Seen) -> None:
    done = seen.adb.run("exec-out", "head -c 3000000 /dev/zero", serial=seen.phone.address)
    assert done.stdout == bytes(3_000_000)


def test_a_command_that_dies_of_a_signal_ends_as_in_a_shell(seen: Seen) -> None:
    assert seen.shell("kill -9 $$").code == 128 + 9


def test_commands_run_as_the_shell_user(seen: Seen) -> None:
    assert seen.shell("id -u; id -un").stdout == "2000\nshell\n"
    assert "Permission denied" in seen.shell("echo x > /system/bin/new").text
    assert "cannot run as root" in seen.run("root").text


def test_the_model_answers_commands(seen: Seen) -> None:
    assert seen.shell("getprop ro.serialno").stdout.strip() == seen.phone.serial
    assert seen.shell("getprop ro.profiler.virtual").stdout == "1\n"
    assert "level: 63" in seen.shell("dumpsys battery").stdout
    assert seen.shell("dumpsys battery | grep -c '^  level'").stdout == "1\n"
    assert (
        seen.shell(
            "settings put global stay_on_while_plugged_in 7; settings get global stay_on_while_plugged_in"
        ).stdout
        == "7\n"
    )
    failed = seen.shell("cmd nothing-like-this")
    assert "Can't find service: nothing-like-this" in failed.stderr
    assert failed.code == 20


@pytest.mark.parametrize("value", ["", "two  words", "line\nbreak", "quote's", "-n", "\\0101", "漢字"])
def test_the_models_commands_get_their_words_as_they_were_given(seen: Seen, value: str) -> None:
    seen.shell(f"settings put system odd {shlex.quote(value)}")
    assert seen.phone.model.settings.get("system", "odd") == value


def test_proc_and_sys_are_the_models(seen: Seen) -> None:
    zones = seen.shell("cat /sys/class/thermal/thermal_zone*/type").stdout.split()
    assert zones == [zone.type for zone in seen.phone.model.persona.zones]
    assert "MemAvailable:" in seen.shell("cat /proc/meminfo").stdout
    assert seen.shell("cat /sys/class/power_supply/battery/current_now").text.endswith("Permission denied\n")


def test_the_toolbox_is_there(seen: Seen) -> None:
    script = (
        f"cd {TMP} && rm -rf box && mkdir -p box/a/b && echo hello > box/a/b/one && cp box/a/b/one box/two && "
        "mv box/two box/three && ln -s three box/link && sync && sync box/three && test -e box/link && "
        "cat box/link && stat -c '%s %F' box/three && ls -1 box && sha256sum < box/three && rm -rf box && test ! -e box"
    )
    expected = f"hello\n6 regular file\na\nlink\nthree\n{_sha256(b'hello' + bytes([10]))}  -\n"
    assert seen.shell(script) == (expected, "", 0)


def test_free_space_is_the_models_and_shrinks_by_what_is_pushed(seen: Seen, tmp_path: Path) -> None:
    def free() -> int:
        table = seen.shell("df -k /data").stdout.splitlines()
        return int(table[1].split()[3]) * 1024

    before = free()
    assert before == seen.phone.model.storage.free_bytes // 1024 * 1024
    (tmp_path / "file").write_bytes(bytes(8 << 20))
    seen.run("push", str(tmp_path / "file"), f"{TMP}/space")
    blocks, size = seen.shell("stat -f -c '%a %S' /data").stdout.split()
    assert (before - (8 << 20)) // 4096 == int(blocks)
    assert size == "4096"
    seen.shell(f"rm {TMP}/space")
    assert free() == before


# -- files


def test_a_file_goes_there_and_back(seen: Seen, tmp_path: Path) -> None:
    content = os.urandom(3 << 20) + b"odd end"
    (tmp_path / "file").write_bytes(content)
    os.utime(tmp_path / "file", (1_700_000_000, 1_700_000_000))
    assert seen.run("push", str(tmp_path / "file"), f"{TMP}/file").code == 0
    assert seen.shell(f"sha256sum {TMP}/file; stat -c '%Y %U %a' {TMP}/file").stdout.split() == [
        _sha256(content), f"{TMP}/file", "1700000000", "shell", "666",
    ]  # fmt: skip
    assert seen.run("pull", f"{TMP}/file", str(tmp_path / "back")).code == 0
    assert (tmp_path / "back").read_bytes() == content


def test_an_empty_file_and_a_tree_arrive(seen: Seen, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "empty").touch()
    (tree / "a/b/one").write_text("1")
    seen.run("push", str(tree), f"{TMP}/tree")
    assert seen.shell(f"cd {TMP}/tree && find . -type f | sort").stdout == "./a/b/one\n./empty\n"
    seen.run("pull", f"{TMP}/tree", str(tmp_path / "back"))
    assert (tmp_path / "back/a/b/one").read_text() == "1"
    assert (tmp_path / "back/empty").stat().st_size == 0


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_arrive_as_they_are(seen: Seen, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text(name)
    assert seen.run("push", str(tmp_path / "file"), f"{TMP}/odd/{name}").code == 0
    assert (seen.phone.root / "data/local/tmp/odd" / name).read_text() == name
    assert seen.shell(f"cat {TMP}/odd/{shlex.quote(name)}").stdout == name
    seen.shell(f"rm -- {TMP}/odd/{shlex.quote(name)}")


def test_sdcard_is_a_link_that_is_followed(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    seen.run("push", str(tmp_path / "file"), "/sdcard/Download/")
    assert (seen.phone.root / "storage/emulated/0/Download/file").read_text() == "x"


def test_sizes_over_four_gigabytes_are_right(seen: Seen) -> None:
    with (seen.phone.root / "data/local/tmp/large").open("wb") as file:
        file.truncate(5 << 30)
    assert seen.shell(f"stat -c %s {TMP}/large").stdout == f"{5 << 30}\n"
    listed = {line.split()[3]: line.split()[1] for line in seen.run("ls", TMP).stdout.splitlines()}
    # What adb prints is cut to eight digits' width at least, but whole: 140000000 is 5 GiB.
    assert int(listed["large"], 16) == 5 << 30
    (seen.phone.root / "data/local/tmp/large").unlink()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/system/bin/file", "couldn't create file: Permission denied"),
        ("/system/new/folder/file", "secure_mkdirs() failed: Permission denied"),
        (f"{TMP}/file/below", ": Not a directory"),
    ],
)
def test_a_push_to_where_nothing_may_be_written_gives_the_phones_reason(
    seen: Seen, tmp_path: Path, target: str, reason: str
) -> None:
    (tmp_path / "file").write_bytes(bytes(300_000))
    seen.run("push", str(tmp_path / "file"), f"{TMP}/file")
    done = seen.run("push", str(tmp_path / "file"), target)
    assert reason in done.text
    assert done.code == 1


@pytest.mark.parametrize(
    ("path", "reason"), [("/nowhere", "No such file"), ("/sys/class/power_supply/battery/temp", "Permission denied")]
)
def test_a_pull_of_what_cannot_be_read_gives_the_phones_reason(
    seen: Seen, tmp_path: Path, path: str, reason: str
) -> None:
    done = seen.run("pull", path, str(tmp_path / "back"))
    assert reason in done.text
    assert done.code == 1


# -- sockets


def test_a_forwarded_port_reaches_a_port_of_the_phone(seen: Seen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()
        with _forwarded(seen, f"tcp:{listener.getsockname()[1]}") as connection:
            content = os.urandom(2 << 20)
            threading.Thread(target=connection.sendall, args=(content,), daemon=True).start()
            assert _receive(connection, len(content)) == content
            connection.shutdown(socket.SHUT_WR)


def test_a_forwarded_abstract_socket_reaches_one_of_the_phone(seen: Seen) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + seen.phone.abstract_name("service"))
        listener.listen()
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()
        with _forwarded(seen, "localabstract:service") as connection:
            connection.sendall(b"hello")
            assert _receive(connection, 5) == b"hello"


def test_a_port_where_nothing_listens_is_closed_at_once(seen: Seen) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with _forwarded(seen, f"tcp:{unused.getsockname()[1]}") as connection:
            assert connection.recv(1) == b""


def test_when_the_phones_side_closes_the_host_sees_the_end(seen: Seen) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        _forwarded(seen, f"tcp:{listener.getsockname()[1]}") as ours,
    ):
        theirs, _ = listener.accept()
        theirs.sendall(b"last words")
        theirs.close()
        assert _receive(ours, 10) == b"last words"
        assert ours.recv(1) == b""


def test_a_reversed_port_of_the_phone_reaches_the_host(seen: Seen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()
        near = seen.run("reverse", "tcp:0", f"tcp:{listener.getsockname()[1]}").stdout.strip()
        assert f"tcp:{near} tcp:" in seen.run("reverse", "--list").stdout
        with socket.create_connection(("127.0.0.1", int(near)), timeout=20) as connection:
            connection.sendall(b"hello")
            assert _receive(connection, 5) == b"hello"
        assert seen.run("reverse", "--remove", f"tcp:{near}").code == 0
        assert "not found" in seen.run("reverse", "--remove", f"tcp:{near}").text


# -- packages


def test_packages_are_installed_replaced_and_removed(seen: Seen, tmp_path: Path) -> None:
    newer, older = (write_apk(tmp_path / f"{code}.apk", "org.example.app", code) for code in (8, 7))
    assert "Success" in seen.run("install", str(newer)).text
    assert "package:org.example.app" in seen.shell("pm list packages").stdout
    assert "INSTALL_FAILED_VERSION_DOWNGRADE" in seen.run("install", str(older)).text
    assert "Success" in seen.run("install", "-d", str(older)).text
    assert "Success" in seen.run("uninstall", "org.example.app").text
    assert "org.example.app" not in seen.shell("pm list packages").stdout


def test_a_pushed_package_is_installed_by_pm(seen: Seen, tmp_path: Path) -> None:
    seen.run("push", str(write_apk(tmp_path / "a.apk", "org.example.other", 1)), f"{TMP}/a.apk")
    assert seen.shell(f"pm install -r {TMP}/a.apk") == ("Success\n", "", 0)
    assert seen.shell("pm install /nowhere.apk").code == 1


def test_what_is_no_package_is_refused(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "a.apk").write_bytes(b"no zip" * 1000)
    assert "INSTALL_PARSE_FAILED_NOT_APK" in seen.run("install", str(tmp_path / "a.apk")).text


def test_an_ordered_failure_is_what_adb_prints(seen: Seen, tmp_path: Path) -> None:
    seen.phone.fail_next_install("INSTALL_FAILED_USER_RESTRICTED: Install canceled by user")
    done = seen.run("install", str(write_apk(tmp_path / "a.apk", "org.example.app", 1)))
    assert "Failure [INSTALL_FAILED_USER_RESTRICTED: Install canceled by user]" in done.text
    assert done.code == 1


# -- the delayed acknowledgement of newer servers


def test_burst_mode_carries_files_both_ways(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    content = os.urandom(40 << 20)  # more than the window, which has to move
    (tmp_path / "file").write_bytes(content)
    with adb_server(tmp_path / "home", ADB_BURST_MODE="1") as adb, connected(adb) as seen:
        assert seen.run("push", str(tmp_path / "file"), f"{TMP}/file").code == 0
        assert seen.run("pull", f"{TMP}/file", str(tmp_path / "back")).code == 0
        assert (tmp_path / "back").read_bytes() == content
        assert seen.shell("echo out; exit 3") == ("out\n", "", 3)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _forwarded(seen: Seen, far: str) -> socket.socket:
    port = int(seen.run("forward", "tcp:0", far).stdout)
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := connection.recv(size - len(data))):
        data += piece
    return data


def _echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(1 << 16):
            connection.sendall(data)

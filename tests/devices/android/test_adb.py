"""The adb server: started only where asked, never replaced, and every way that it fails is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.server_address import Address
from profiler.errors import DeviceError, InternalError
from tests.devices.android.servers_for_tests import ADB, end_server, free_port, hermetic, scripted_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a real server without any phone."""
    found = Server(environment=hermetic(tmp_path_factory.mktemp("home"), free_port()))
    found.version()
    yield found
    end_server(found)


def test_a_server_is_started_where_the_environment_says(server: Server) -> None:
    assert server.version() == 41
    assert server.warning() is None
    assert server.listed() == ()


def test_a_server_is_started_on_the_port_given_as_parameter_whatever_the_environment_says(tmp_path: Path) -> None:
    elsewhere, asked = free_port(), Address(port=free_port())
    server = Server(asked, environment=hermetic(tmp_path, elsewhere))
    try:
        assert server.version() == 41
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", elsewhere), timeout=1)
    finally:
        end_server(server)


def test_a_server_that_runs_is_used_and_not_started_again(server: Server) -> None:
    another = Server(server.address, environment={}, adb="/nowhere/adb")

    assert another.version() == 41


def test_a_server_that_another_tool_ended_is_started_again(tmp_path: Path) -> None:
    server = Server(environment=hermetic(tmp_path, free_port()))
    try:
        server.version()
        end_server(server)
        assert server.listed() == ()
    finally:
        end_server(server)


def test_without_any_adb_it_says_how_to_get_one(tmp_path: Path) -> None:
    server = Server(environment=hermetic(tmp_path, free_port()), adb=str(tmp_path / "adb"))

    with pytest.raises(DeviceError, match=r"cannot start an adb server with .*/adb: No such file") as caught:
        server.version()

    assert "ADBUTILS_ADB_PATH" in (caught.value.hint or "")


def test_an_adb_that_starts_nothing_is_named_with_the_address(tmp_path: Path) -> None:
    server = Server(environment=hermetic(tmp_path, free_port()), adb="/bin/false")

    with pytest.raises(DeviceError, match=rf"no adb server answers on 127\.0\.0\.1:{server.address.port}"):
        server.version()


def test_no_server_is_started_for_another_machines_address(tmp_path: Path) -> None:
    # 127.0.0.2 is this machine, but not by a name that says so.
    server = Server(Address("127.0.0.2", free_port()), environment=hermetic(tmp_path, 1), adb=ADB)

    with pytest.raises(DeviceError, match=r"no adb server runs on 127\.0\.0\.2") as caught:
        server.version()

    assert "on that machine" in (caught.value.hint or "")


def test_a_server_of_another_version_is_used_with_a_warning() -> None:
    older = b"OKAY00040028"
    with scripted_server([older, b"OKAY0021ABC device usb:1 transport_id:1\n\n\n", older]) as address:
        server = Server(address, environment={})

        warning = server.warning()

        assert warning is not None
        assert "1.0.40" in warning
        assert "adb kill-server" in warning
        assert [phone.serial for phone in server.listed()] == ["ABC"]
        assert server.version() == 40  # still the same one


def test_what_is_no_adb_server_is_told() -> None:
    with (
        scripted_server([b"HTTP/1.1 400 Bad Request\r\n\r\n"]) as address,
        pytest.raises(DeviceError, match="not an adb"),
    ):
        Server(address, environment={}).listed()


def test_a_server_that_says_nothing_is_not_waited_for_without_an_end() -> None:
    with scripted_server([b"..."]) as address, pytest.raises(DeviceError, match="no answer to 'shell:ls' in time"):
        Server(address, environment={}).open("ABC", "shell:ls", timeout_s=0.05)


def test_a_server_that_hangs_up_is_told() -> None:
    with scripted_server([b""]) as address, pytest.raises(DeviceError, match="hung up"):
        Server(address, environment={}).listed()


@pytest.mark.parametrize(
    ("said", "meaning", "next_step"),
    [
        ("device 'ABC' not found", "ABC is not connected", "cable"),
        (
            "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set",
            "does not trust",
            "Allow USB debugging",
        ),
        ("device still authorizing", "is being asked", "Allow USB debugging"),
        ("device still connecting", "still connecting", "Wait"),
        ("device offline", "offline", "Replug"),
        ("insufficient permissions for device: user in plugdev group", "may not be opened", "udev rules"),
        ("closed", "does not offer 'tcp:1', or has just gone", "profile devices"),
        ("what?", "adb refuses 'tcp:1': what\\?", "profile devices"),
        ("", "no reason given", "profile devices"),
    ],
)
def test_each_refusal_says_what_it_means_and_what_to_do(said: str, meaning: str, next_step: str) -> None:
    reply = b"FAIL%04x" % len(said) + said.encode()
    with scripted_server([reply]) as address, pytest.raises(DeviceError, match=meaning) as caught:
        Server(address, environment={}).open("ABC", "tcp:1", timeout_s=1)

    assert next_step in (caught.value.hint or "")


def test_a_phone_that_is_not_there_is_told_by_the_real_server(server: Server) -> None:
    transport = Transport(server, "ABC")

    for ask in (transport.features, transport.state, lambda: transport.open("shell:ls")):
        with pytest.raises(DeviceError, match="ABC is not connected"):
            ask()


def test_a_network_address_where_nothing_listens_is_told(server: Server) -> None:
    with pytest.raises(DeviceError, match="adb cannot connect to"):
        server.connect(f"127.0.0.1:{free_port()}")


def test_a_request_longer_than_the_protocol_takes_is_our_own_mistake(server: Server) -> None:
    with pytest.raises(InternalError, match="65535"):
        server.ask("ABC", "x" * 70_000)

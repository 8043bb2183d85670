"""One real adb server and one virtual phone a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.files import Files
from profiler.devices.android.shell import Shell
from tests.devices.android.faults_for_tests import CommandLine
from tests.devices.android.phones_for_tests import Desk
from tests.phones.adb_server import Adb, adb_server
from tests.phones.android.phone import VirtualAndroid


@pytest.fixture(scope="module")
def adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    """Give a real adb with a server of its own."""
    with adb_server(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def phone() -> Iterator[VirtualAndroid]:
    """Give a virtual phone that nobody has connected to; a process of its runner app does nothing."""
    with VirtualAndroid("pixel9", runner=lambda launching: ("sleep", "600")) as device:
        yield device


@pytest.fixture(scope="module")
def server(adb: Adb) -> Server:
    """Give the server as the product sees it."""
    return Server(environment=adb.environment)


@pytest.fixture(scope="module")
def transport(server: Server, phone: VirtualAndroid) -> Transport:
    """Give a way to the connected phone."""
    server.connect(phone.address)
    return Transport(server, phone.address)


@pytest.fixture
def shell(transport: Transport) -> Iterator[Shell]:
    """Give a shell on the phone."""
    running = Shell(transport)
    yield running
    running.close()


@pytest.fixture
def files(transport: Transport, shell: Shell) -> Files:
    """Give the phone's files."""
    return Files(transport, shell)


@pytest.fixture
def desk(adb: Adb, tmp_path: Path) -> Desk:
    """Give a store and the module's adb server."""
    return Desk(adb, tmp_path)


@pytest.fixture
def profile(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> CommandLine:
    """Give the command line over the desk's store and server."""
    return CommandLine(desk, tmp_path, monkeypatch, capfd)

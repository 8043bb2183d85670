"""Real adb programs, each with a server of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.phones.adb_server import Adb, adb_server, installed_adbs


@pytest.fixture(scope="module", params=installed_adbs().items(), ids=lambda item: item[0])
def adb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    """Each adb that is installed here: the bundled one always."""
    with adb_server(tmp_path_factory.mktemp("home"), request.param[1]) as adb:
        yield adb


@pytest.fixture(scope="module")
def adb36(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    """The bundled adb."""
    with adb_server(tmp_path_factory.mktemp("home")) as adb:
        yield adb

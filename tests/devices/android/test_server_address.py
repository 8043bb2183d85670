"""Where the adb server is: as adb itself takes it from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.devices.android.server_address import Address, address_from, find_adb
from profiler.errors import InputError


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, Address("127.0.0.1", 5037)),
        ({"ANDROID_ADB_SERVER_PORT": "5999"}, Address("127.0.0.1", 5999)),
        ({"ANDROID_ADB_SERVER_PORT": "", "ANDROID_ADB_SERVER_ADDRESS": "lab"}, Address("lab", 5037)),
        ({"ADB_SERVER_SOCKET": "tcp:5040", "ANDROID_ADB_SERVER_PORT": "5999"}, Address("127.0.0.1", 5040)),
        ({"ADB_SERVER_SOCKET": "tcp:lab:5040"}, Address("lab", 5040)),
    ],
)
def test_the_environment_says_where_the_server_is(environment: dict[str, str], address: Address) -> None:
    assert address_from(environment) == address


@pytest.mark.parametrize(
    "environment",
    [
        {"ANDROID_ADB_SERVER_PORT": "usb"},
        {"ANDROID_ADB_SERVER_PORT": "0"},
        {"ANDROID_ADB_SERVER_PORT": "65536"},
        {"ADB_SERVER_SOCKET": "localfilesystem:/run/adb"},
    ],
)
def test_what_names_no_server_is_refused_with_the_variables_name(environment: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        address_from(environment)

    (name, value) = next(iter(environment.items()))
    assert f"{name}={value}" in str(caught.value)


def test_the_users_adb_goes_before_the_one_that_adbutils_brings(tmp_path: Path) -> None:
    own = str(tmp_path / "adb")

    assert find_adb({"ADBUTILS_ADB_PATH": own}) == own
    brought = find_adb({"PATH": str(tmp_path)})
    assert brought is not None
    assert Path(brought).parent.name == "binaries"

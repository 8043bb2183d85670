from __future__ import annotations

from pathlib import Path

import pytest

from profiler.devices.power_switch import PowerSwitch
from profiler.errors import DeviceError, InputError


def test_the_command_gets_off_and_on_and_on_only_after_off(tmp_path: Path) -> None:
    switch = PowerSwitch(f"sh -c 'echo $2 $3 >> \"$1\"' sh {tmp_path}/said port")
    switch.on()
    switch.off()
    switch.on()
    switch.on()
    assert (tmp_path / "said").read_text().split("\n") == ["port off", "port on", ""]


@pytest.mark.parametrize("command", ["", "  ", "uhubctl 'unclosed"])
def test_what_is_no_command_is_refused_before_anything_is_measured(command: str) -> None:
    with pytest.raises(InputError, match="--usb-power"):
        PowerSwitch(command)


@pytest.mark.parametrize("command", ["/no/such/program", "false"])
def test_a_switch_that_fails_is_an_error_of_the_device(command: str) -> None:
    with pytest.raises(DeviceError, match="cannot switch USB power off"):
        PowerSwitch(command).off()

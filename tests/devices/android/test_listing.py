"""What an adb server lists: serials with blanks, permissions that are missing, states not heard of."""

from __future__ import annotations

import pytest

from profiler.devices.android.listing import STATES, advice, parse_listing


def test_a_phone_on_a_cable_is_read_with_its_details() -> None:
    (phone,) = parse_listing("0A1B2C       device usb:1-2 product:tokay model:Pixel_9 device:tokay transport_id:7\n")

    assert (phone.serial, phone.state, phone.transport_id) == ("0A1B2C", "device", 7)
    assert phone.by_usb
    assert phone.details["model"] == "Pixel_9"


def test_missing_permissions_are_one_state_with_the_servers_explanation() -> None:
    line = (
        "????????????           no permissions (user in plugdev group; are your udev rules wrong?); see"
        " [http://developer.android.com/tools/device.html] usb:1-4 transport_id:3"
    )
    (phone,) = parse_listing(line)

    assert (phone.serial, phone.state, phone.transport_id) == ("????????????", "no permissions", 3)
    assert phone.explanation.startswith("(user in plugdev group; are your udev rules wrong?)")
    assert phone.by_usb


def test_an_explanation_without_details_is_kept_whole() -> None:
    (phone,) = parse_listing("0123456789 no permissions (missing udev rules? user is in the plugdev group)")

    assert phone.explanation == "(missing udev rules? user is in the plugdev group)"
    assert phone.transport_id is None


@pytest.mark.parametrize("serial", ["adb-1A2B3C-x7Yz (2)._adb-tls-connect._tcp", "(no serial number)"])
def test_a_serial_may_hold_blanks(serial: str) -> None:
    (phone,) = parse_listing(f"{serial:<22} unauthorized transport_id:12")

    assert (phone.serial, phone.state, phone.transport_id) == (serial, "unauthorized", 12)
    assert not phone.by_usb


def test_a_serial_that_is_longer_than_the_column_is_whole() -> None:
    serial = "adb-4A271FDAS000AB-KyLq0Q._adb-tls-connect._tcp"

    assert parse_listing(f"{serial} offline transport_id:1")[0].serial == serial


def test_a_state_not_heard_of_is_named_with_something_to_do() -> None:
    (phone,) = parse_listing("ABC hibernating transport_id:1")

    assert phone.state == "hibernating"
    assert "hibernating" in advice(phone.state).meaning
    assert advice(phone.state).next_step


def test_every_state_but_ready_says_what_to_do() -> None:
    assert [state for state, found in STATES.items() if not found.next_step] == ["device"]


def test_lines_that_are_no_phones_are_left_out() -> None:
    assert parse_listing("List of devices attached\n\n   \n") == ()

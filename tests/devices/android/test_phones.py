"""Who is there: one unit for each phone however it is connected, and a next step for each that is not ready."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from profiler.clock import RealClock
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.listing import READY, Listed, parse_listing
from profiler.devices.android.phones import ZOMBIE_STATE, Answer, find_phones, gather, own_identity
from profiler.devices.android.properties import Facts, facts_of
from profiler.errors import DeviceError
from tests.devices.android.servers_for_tests import scripted_server
from tests.phones.android.adbd import Trust
from tests.phones.android.phone import VirtualAndroid

FACTS = facts_of({"ro.serialno": "0A1B2C", "ro.product.model": "Pixel 9"})


def listed(line: str) -> Listed:
    """Read one line of a server's listing."""
    (found,) = parse_listing(line)
    return found


CABLE = listed("0A1B2C                 device usb:1-2 transport_id:1")
NETWORK = listed("192.168.1.7:5555       device product:tokay transport_id:2")
WIRELESS = "adb-0A1B2C-x7YzQ1._adb-tls-connect._tcp"


@pytest.fixture
def lone(server: Server) -> Iterator[VirtualAndroid]:
    """Give a connected phone for one test, that may be spoilt."""
    with VirtualAndroid("pixel9") as phone:
        server.connect(phone.address)
        yield phone
        server.disconnect(phone.address)


def test_a_phone_is_known_by_its_own_serial_and_not_by_its_address(server: Server, lone: VirtualAndroid) -> None:
    (phone,) = find_phones(server)

    assert phone.serial == lone.serial
    assert phone.ways[0].serial == lone.address
    assert phone.ready
    assert phone.facts is not None
    assert phone.facts.virtual == "ro.profiler.virtual"
    assert phone.transport(server).state() == "device"


def test_two_phones_are_two_units_in_order_of_their_serials(server: Server) -> None:
    with ExitStack() as both:
        connected = [both.enter_context(VirtualAndroid(persona)) for persona in ("pixel9", "galaxy-s24")]
        for phone in connected:
            server.connect(phone.address)
            both.callback(server.disconnect, phone.address)

        found = find_phones(server)

        assert [phone.serial for phone in found] == sorted(phone.serial for phone in connected)


def test_a_phone_on_a_cable_and_on_the_network_is_one_unit_and_the_cable_is_preferred() -> None:
    (phone,) = gather([Answer(NETWORK, "0A1B2C", FACTS, None), Answer(CABLE, "0A1B2C", FACTS, None)])

    assert (phone.serial, phone.state) == ("0A1B2C", READY)
    assert phone.ways == (CABLE, NETWORK)


def test_a_dead_cable_beside_a_network_that_works_leaves_the_phone_ready() -> None:
    (phone,) = gather([Answer(CABLE, "0A1B2C", None, "gave no answer"), Answer(NETWORK, "0A1B2C", FACTS, None)])

    assert phone.ready
    assert phone.ways[0] == NETWORK


def test_one_phone_over_two_addresses_is_one_unit(server: Server, lone: VirtualAndroid) -> None:
    again = lone.address.replace("127.0.0.1", "localhost")
    server.connect(again)
    try:
        (phone,) = find_phones(server)
        assert {way.serial for way in phone.ways} == {lone.address, again}
    finally:
        server.disconnect(again)


def test_a_phone_that_does_not_trust_the_computer_is_told_with_what_to_tap(server: Server) -> None:
    with VirtualAndroid("pixel9", trust=Trust.ASKS) as unknown:
        with pytest.raises(DeviceError):
            server.connect(unknown.address)
        (phone,) = find_phones(server)
        assert phone.state == "unauthorized"
        with pytest.raises(DeviceError, match="does not trust this computer yet") as caught:
            phone.transport(server)
        assert "Allow USB debugging" in (caught.value.hint or "")

        unknown.authorize()
        Transport(server, unknown.address).wait(20, RealClock())
        assert find_phones(server)[0].ready
        server.disconnect(unknown.address)


def test_an_offline_phone_is_told(server: Server, lone: VirtualAndroid) -> None:
    lone.go_offline()
    while server.listed()[0].state == READY:  # adb takes a moment to see it
        pass

    (phone,) = find_phones(server)

    assert phone.state == "offline"
    with pytest.raises(DeviceError, match=f"phone {lone.address} is listed but offline") as caught:
        phone.transport(server)
    assert "Replug" in (caught.value.hint or "")


def test_a_phone_that_is_listed_but_does_not_answer_is_a_zombie_and_holds_nobody_up(
    server: Server, lone: VirtualAndroid
) -> None:
    with VirtualAndroid("galaxy-s24") as deaf, VirtualAndroid("xiaomi-14") as alive:
        for phone in (deaf, alive):
            server.connect(phone.address)
        deaf.become_zombie()
        lone.hang_shell()

        found = find_phones(server, liveness_s=2.0)

        for phone in (deaf, alive):
            server.disconnect(phone.address)
    assert [(phone.serial, phone.ready) for phone in found if phone.ready] == [(alive.serial, True)]
    dead = {phone.serial: phone for phone in found if phone.state == ZOMBIE_STATE}
    assert set(dead) == {deaf.address, lone.address}
    for phone in dead.values():
        with pytest.raises(DeviceError, match=r"is listed as ready but does not answer .*gave no answer") as caught:
            phone.transport(server)
        assert "restart the phone" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("line", "meaning", "next_step"),
    [
        (
            "????? no permissions (missing udev rules?); see [http://x] usb:1-1 transport_id:1",
            "may not be opened",
            "udev",
        ),
        ("ABC recovery usb:1-1 transport_id:1", "recovery mode", "adb reboot"),
        ("ABC sideload usb:1-1 transport_id:1", "sideload", "adb reboot"),
        ("ABC bootloader usb:1-1 transport_id:1", "bootloader", "fastboot reboot"),
    ],
)
def test_each_state_that_only_a_cable_has_is_told(line: str, meaning: str, next_step: str) -> None:
    text = f"{line}\n".encode()
    with scripted_server([b"OKAY%04x" % len(text) + text]) as address:
        server = Server(address, environment={})
        (phone,) = find_phones(server)

    with pytest.raises(DeviceError, match=meaning) as caught:
        phone.transport(server)
    assert next_step in (caught.value.hint or "")


def test_a_phone_that_is_dead_on_wireless_debugging_is_still_the_one_of_the_cable() -> None:
    text = f"0A1B2C unauthorized usb:1-1 transport_id:1\n{WIRELESS} offline transport_id:2\n".encode()
    with scripted_server([b"OKAY%04x" % len(text) + text]) as address:
        (phone,) = find_phones(Server(address, environment={}))

    assert phone.serial == "0A1B2C"
    assert len(phone.ways) == 2


@pytest.mark.parametrize("serial", ["0123456789ABCDEF", "unknown", ""])
def test_a_serial_that_many_phones_share_tells_none_of_them_apart(serial: str) -> None:
    facts = facts_of({"ro.serialno": serial, "ro.product.model": "A1", "ro.product.device": "a1"})

    first = own_identity(facts, lambda: "8d3f0a2b9c4e1f67\n")

    assert first == own_identity(facts, lambda: "8d3f0a2b9c4e1f67\n")
    assert first is not None
    assert first.startswith("a1-")
    assert first != own_identity(facts, lambda: "8d3f0a2b9c4e1f68\n")
    assert own_identity(facts, lambda: "null\n") is None


def test_without_any_phone_there_is_no_unit(server: Server) -> None:
    assert find_phones(server) == ()


def test_phones_without_any_serial_are_kept_apart_by_the_servers_number() -> None:
    lines = [f"(no serial number)     unauthorized usb:1-{n} transport_id:{n}\n" for n in (1, 2)]
    text = "".join(lines).encode()
    with scripted_server([b"OKAY%04x" % len(text) + text]) as address:
        assert len(find_phones(Server(address, environment={}))) == 2


def test_facts_are_none_where_nobody_answered() -> None:
    (phone,) = gather([Answer(CABLE, "0A1B2C", None, "no answer")])

    assert isinstance(FACTS, Facts)
    assert (phone.facts, phone.state, phone.trouble) == (None, ZOMBIE_STATE, "no answer")

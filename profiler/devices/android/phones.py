"""Who is there: units by their own serial, each over one or several ways, and what state they are in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from profiler.clock import Clock
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.listing import NO_SERIAL, READY, ZOMBIE, Advice, Listed, advice
from profiler.devices.android.properties import COMMAND, Facts, facts_of, read_properties
from profiler.devices.android.shell import Shell
from profiler.devices.android.unavailable import Unavailable
from profiler.errors import DeviceError

ZOMBIE_STATE = "zombie"
_LIVENESS_S = 3.0
# Boards that were never given a serial share these.
_PLACEHOLDERS = ("0123456789abcdef", "123456789abcdef", "1234567890abcdef", "0000000000000000", "unknown", "null")
_TLS_SERIAL = re.compile(r"^adb-(?P<serial>.+)-\w{6}(?: \(\d+\))?\._adb-tls-connect\._tcp\.?$")


class Phone(NamedTuple):
    """One unit: ways to it, best first, and what it says about itself where it answers.

    `serial` is its own; while it does not answer, what it is listed under.
    """

    serial: str
    state: str
    ways: tuple[Listed, ...]
    facts: Facts | None = None
    trouble: str | None = None

    @property
    def ready(self) -> bool:
        """Tell whether it answers."""
        return self.state == READY

    @property
    def advice(self) -> Advice:
        """Return what its state means and calls for."""
        return ZOMBIE if self.state == ZOMBIE_STATE else advice(self.state)

    def transport(self, server: Server) -> Transport:
        """Return the best way to it. Raises DeviceError where it does not answer."""
        if not self.ready:
            detail = f" ({self.trouble})" if self.trouble else ""
            raise DeviceError(f"phone {self.serial} {self.advice.meaning}{detail}", hint=self.advice.next_step)
        return _transport(server, self.ways[0], self.ways)


class Answer(NamedTuple):
    """What came back over one way; `trouble` is why nothing did."""

    way: Listed
    identity: str
    facts: Facts | None
    trouble: str | None


def find_phones(server: Server, *, liveness_s: float = _LIVENESS_S, clock: Clock | None = None) -> tuple[Phone, ...]:
    """Return all units that the server lists, each once. Whether one lives is asked of all at once.

    Raises DeviceError where no server answers.
    """
    ways = server.listed()
    with ThreadPoolExecutor(max_workers=max(1, len(ways))) as pool:
        answers = list(pool.map(lambda way: _ask(server, way, ways, liveness_s, clock), ways))
    return gather(answers)


def gather(answers: Iterable[Answer]) -> tuple[Phone, ...]:
    """Make units of what came back over the ways: a phone on a cable and on Wi-Fi is one."""
    units: dict[str, list[Answer]] = {}
    for answer in answers:
        units.setdefault(answer.identity, []).append(answer)
    return tuple(_phone(identity, found) for identity, found in sorted(units.items()))


def _ask(server: Server, way: Listed, ways: Sequence[Listed], liveness_s: float, clock: Clock | None) -> Answer:
    if way.state != READY:
        return Answer(way, _listed_identity(way), None, way.explanation or None)
    shell = Shell(_transport(server, way, ways), clock)
    try:
        properties = read_properties(shell.once(COMMAND, liveness_s).text)
        if isinstance(properties, Unavailable):
            return Answer(way, _listed_identity(way), None, properties.reason)
        facts = facts_of(properties)
        identity = own_identity(facts, lambda: shell.once("settings get secure android_id", liveness_s).text)
        return Answer(way, identity or _listed_identity(way), facts, None)
    except DeviceError as error:
        return Answer(way, _listed_identity(way), None, str(error).splitlines()[0])


def _transport(server: Server, way: Listed, ways: Sequence[Listed]) -> Transport:
    """Name a way by its serial; by its number only where several share the serial, since numbers begin anew."""
    alone = way.serial != NO_SERIAL and sum(other.serial == way.serial for other in ways) == 1
    return Transport(server, way.serial, None if alone else way.transport_id)


def own_identity(facts: Facts, ask_android_id: Callable[[], str]) -> str | None:
    """Return what is a phone's alone: its serial, else a hash of what stays with it; None where there is neither."""
    if facts.serial is not None and facts.serial.lower() not in _PLACEHOLDERS:
        return facts.serial
    android_id = ask_android_id().strip()
    if not re.fullmatch(r"[0-9a-f]{8,16}", android_id):
        return None
    known = "\n".join(str(fact) for fact in (android_id, facts.manufacturer, facts.model, facts.device))
    return f"{facts.device or 'phone'}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"


def _listed_identity(way: Listed) -> str:
    """Return what a way is listed under; on wireless debugging the phone's serial is in it."""
    wireless = _TLS_SERIAL.match(way.serial)
    if way.serial == NO_SERIAL:
        return f"{way.serial} {way.transport_id}"
    return wireless["serial"] if wireless else way.serial


def _phone(identity: str, answers: Sequence[Answer]) -> Phone:
    best_first = sorted(answers, key=lambda answer: (answer.facts is None, not answer.way.by_usb, answer.way.serial))
    best = best_first[0]
    dead = best.facts is None and best.way.state == READY
    return Phone(
        serial=identity,
        state=ZOMBIE_STATE if dead else best.way.state,
        ways=tuple(answer.way for answer in best_first),
        facts=best.facts,
        trouble=best.trouble,
    )

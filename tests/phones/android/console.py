"""What a person may do to a virtual phone by typing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.phones.android.phone import VirtualAndroid
from tests.phones.heat import Temperatures


class Doing(NamedTuple):
    """One word that may be typed; `argument` is what follows it, empty where nothing may."""

    argument: str
    what: str
    do: Callable[[VirtualAndroid, str], object]


class WrongArgument(Exception):
    """What follows a word is not what it needs; the text says what it needs."""


def _heat(phone: VirtualAndroid, argument: str) -> None:
    celsius = _number(argument, -20, 90)
    with phone.model.present():
        phone.model.physics.temperatures = Temperatures(celsius, celsius, celsius)


def _charge(phone: VirtualAndroid, argument: str) -> None:
    percent = _number(argument, 0, 100)
    with phone.model.present():
        phone.model.physics.charge_c = phone.model.physics.cell.capacity_c * percent / 100


def _throttle(phone: VirtualAndroid, argument: str) -> None:
    phone.model.throttle_to(_number(argument, 1, 100) / 100)


def _lock(phone: VirtualAndroid, _argument: str) -> None:
    with phone.model.present():
        phone.model.screen.sleep()


def _unlock(phone: VirtualAndroid, _argument: str) -> None:
    with phone.model.present() as now_ns:
        phone.model.screen.wake(now_ns)
        phone.model.screen.enter_pin()


def _fill(phone: VirtualAndroid, argument: str) -> None:
    phone.fill_storage(leaving_bytes=round(_number(argument or "0", 0, 1e6) * 1_000_000))


def _clock(phone: VirtualAndroid, argument: str) -> None:
    phone.model.jump(_number(argument, -1e9, 1e9))


DOINGS: dict[str, Doing] = {
    "unplug": Doing("", "pull the cable: adb is cut off, the phone lives on its battery", lambda p, _: p.unplug()),
    "plug": Doing("", "put the cable in again (also ends offline and zombie)", lambda p, _: p.plug()),
    "lock": Doing("", "switch the screen off, which locks it", _lock),
    "unlock": Doing("", "switch it on and unlock it", _unlock),
    "heat": Doing("CELSIUS", "make the whole phone so hot", _heat),
    "charge": Doing("PERCENT", "fill the battery so far", _charge),
    "throttle": Doing("PERCENT", "let cores run at so much of their clock; 100: freely", _throttle),
    "fill": Doing("[MB]", "fill the storage up, leaving so much", _fill),
    "jump": Doing("SECONDS", "set the time of day forward or back", _clock),
    "kill": Doing("", "end the runner app as by kill -9", lambda p, _: p.kill_app()),
    "crash": Doing("", "let the runner app crash", lambda p, _: p.kill_app("crash")),
    "anr": Doing("", "let the runner app be ended for not answering", lambda p, _: p.kill_app("anr")),
    "freeze": Doing("", "stop the runner app where it stands", lambda p, _: p.freeze_app()),
    "thaw": Doing("", "let it go on", lambda p, _: p.thaw_app()),
    "authorize": Doing("", 'tap "Allow USB debugging"', lambda p, _: p.authorize()),
    "offline": Doing("", "be listed as offline", lambda p, _: p.go_offline()),
    "zombie": Doing("", "stay connected and answer nothing", lambda p, _: p.become_zombie()),
    "hang": Doing("", "let shells hang", lambda p, _: p.hang_shell()),
    "unhang": Doing("", "let shells answer again", lambda p, _: p.unhang_shell()),
    "reboot": Doing("", "restart", lambda p, _: p.reboot()),
    "state": Doing("", "print how the phone is", lambda p, _: None),
    "help": Doing("", "print this", lambda p, _: None),
    "quit": Doing("", "end the phone and all that runs on it", lambda p, _: None),
}


def help_text() -> str:
    """Return what may be typed, a line each."""
    return "\n".join(f"  {f'{name} {doing.argument}':<18} {doing.what}" for name, doing in DOINGS.items())


def state_of(phone: VirtualAndroid) -> str:
    """Return how the phone is in one line; what matters least stands last, where narrow terminals cut."""
    model = phone.model
    with model.present():
        temperatures, plug = model.physics.temperatures, model.physics.plug
        screen = "screen on" if model.screen.usable else "locked" if model.screen.locked else "screen off"
        parts = [
            f"skin {temperatures.skin:.1f}, chip {temperatures.die:.1f} °C",
            f"battery {model.reported.battery().level} %" + (f" on {plug}" if plug != "none" else ""),
            f"clock {model.physics.clock():.0%}",
            screen,
        ]
        free = f"{model.storage.free_bytes / 1e9:.1f} GB free"
    adb = f"adb {len(phone.adbd.links())}" if phone.adbd.listening else "adb off"
    running = [f"{name.rpartition('.')[2]} {pid}" for pid, name in phone.apps.running().items()]
    return " · ".join([*parts, adb, *running, free])


def obey(phone: VirtualAndroid, line: str) -> str | None:
    """Do what a line says and return what to print; None to quit."""
    name, _, argument = line.strip().partition(" ")
    if name == "quit":
        return None
    if name == "help":
        return help_text()
    doing = DOINGS.get(name)
    if doing is None:
        return f"{name!r} is no word for this phone; type help" if name else state_of(phone)
    if argument and not doing.argument:
        return f"{name} stands alone"
    try:
        doing.do(phone, argument.strip())
    except WrongArgument as error:
        return f"{name} {doing.argument}: {error}"
    return state_of(phone)


def _number(text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise WrongArgument(f"{text!r} is no number") from None
    if not least <= value <= most:
        raise WrongArgument(f"{text} is not between {least:g} and {most:g}")
    return value

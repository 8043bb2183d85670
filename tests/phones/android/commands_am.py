"""`am`: start, stop, kill and crash apps; most errors end with exit code 0 and are told in words only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.model import DeviceModel

_START_MS = 412
_TEXT_EXTRAS = ("--es", "-e", "--ei", "--el", "--ef", "--ez")
_ONE_WORD = ("-a", "-c", "-d", "-t", "-f", "--user", "--display", "-p")


class Intent(NamedTuple):
    """What an intent on the command line says."""

    component: str | None
    action: str | None
    extras: dict[str, str]
    wait: bool
    stop_first: bool

    def shown(self) -> str:
        """Return the intent as Android prints it: extras only hinted at."""
        parts = [f"act={self.action}"] if self.action else []
        parts += [f"cmp={_short(self.component)}"] if self.component else []
        return f"Intent {{ {' '.join([*parts, '(has extras)'] if self.extras else parts)} }}"


def am(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Run one of the activity manager's commands."""
    match list(words):
        case [("start" | "start-activity"), *rest]:
            return _start(model, apps, _intent(rest))
        case ["start-foreground-service" | "start-service" | "startservice", *rest]:
            return _service(model, apps, _intent(rest))
        case ["broadcast", *rest]:
            return said(f"Broadcasting: {_intent(rest).shown()}\nBroadcast completed: result=0")
        case ["force-stop", *rest] if names := _names(rest):
            _end(model, apps, names[0], "force-stop")
            return said("")
        case ["kill", *rest] if names := _names(rest):
            _kill_hidden(model, names[0])
            return said("")
        case ["crash", *rest] if names := _names(rest):
            _end(model, apps, names[0], "crash")
            return said("")
        case ["get-current-user"]:
            return said("0")
    name = words[0] if words else ""
    return complained(
        f"Unknown command: {name}\nActivity manager (activity) commands:\n  help\n      Print this help", 255
    )


def _start(model: DeviceModel, apps: Apps, intent: Intent) -> Answer:
    if intent.component is None:
        return complained(f"Error: Activity not started, unable to resolve {intent.shown()}", 0)
    if "/" not in intent.component:
        return complained(f"Error: Bad component name: {intent.component}", 255)
    package = intent.component.split("/")[0]
    lines = [f"Starting: {intent.shown()}"]
    if intent.stop_first:
        _end(model, apps, package, "force-stop")
        lines.insert(0, f"Stopping: {package}")
    running = package in apps.running().values()
    if running:
        _bring_to_front(model, package)
        lines.append("Warning: Activity not started, intent has been delivered to currently running top-most instance.")
    else:
        try:
            apps.start(_full(intent.component), intent.extras)
        except LookupError:
            missing = f"Error type 3\nError: Activity class {{{_full(intent.component)}}} does not exist."
            return Answer("\n".join([*lines, ""]).encode(), f"{missing}\n".encode(), 0)
    return said("\n".join([*lines, *(_waited(intent.component, running) if intent.wait else [])]))


def _bring_to_front(model: DeviceModel, package: str) -> None:
    with model.present():
        for process in model.memory.processes.values():
            process.foreground = process.foreground or process.package == package


def _waited(component: str, running: bool) -> list[str]:
    """List what -W adds once the activity is drawn."""
    took = 0 if running else _START_MS
    state = "UNKNOWN (0)" if running else "COLD"
    times = [f"LaunchState: {state}", f"Activity: {_short(component)}"]
    times += [] if running else [f"TotalTime: {took}"]
    return ["Status: ok", *times, f"WaitTime: {took + 5}", "Complete"]


def _service(model: DeviceModel, apps: Apps, intent: Intent) -> Answer:
    """Start a service of a process that runs already; the runner's needs its activity first."""
    first = f"Starting service: {intent.shown()}\n".encode()
    package = (intent.component or "").split("/")[0]
    if package not in apps.installed():
        return Answer(first, b"Error: Not found; no service started.\n", 255)
    if package not in apps.running().values():
        text = f"Error: app is in background uid UidRecord{{6b1f {package} idle}}\n"
        return Answer(first, text.encode(), 255)
    return Answer(first)


def _kill_hidden(model: DeviceModel, package: str) -> None:
    """Kill what is not in the foreground, which `am kill` spares."""
    with model.present():
        found = [one.pid for one in model.memory.processes.values() if one.package == package and not one.foreground]
    for pid in found:
        model.end_process(pid, "kill")


def _end(model: DeviceModel, apps: Apps, package: str, why: str) -> None:
    for pid in [pid for pid, name in apps.running().items() if name == package]:
        model.end_process(pid, why)
    apps.stop(package)


def _intent(words: Iterable[str]) -> Intent:
    component = action = None
    extras: dict[str, str] = {}
    wait = stop_first = False
    left = iter(words)
    for word in left:
        if word == "-n":
            component = next(left, None)
        elif word in _TEXT_EXTRAS:
            name = next(left, "")  # apart: Python takes the value before the key
            extras[name] = next(left, "")
        elif word in _ONE_WORD:
            value = next(left, None)
            action = value if word == "-a" else action
        elif word == "-W":
            wait = True
        elif word == "-S":
            stop_first = True
        elif not word.startswith("-"):
            component = word
    return Intent(component, action, extras, wait, stop_first)


def _names(words: Sequence[str]) -> list[str]:
    """Return what is neither an option nor its value."""
    words = list(words)
    if words[:1] == ["--user"]:
        words = words[2:]
    return [word for word in words if not word.startswith("-")]


def _full(component: str) -> str:
    """Return `package/full.Class`."""
    package, _, name = component.partition("/")
    return f"{package}/{package}{name}" if name.startswith(".") else component


def _short(component: str | None) -> str:
    """Return `package/.Class` where the class lies in the package."""
    package, _, name = (component or "").partition("/")
    inside = name.startswith(f"{package}.")
    return f"{package}/{name[len(package) :]}" if inside else f"{package}/{name}"

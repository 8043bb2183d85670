"""Models of phones on a clock that a test moves, and their apps without processes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from profiler.clock import FakeClock
from tests.phones.model import DeviceModel
from tests.phones.model_processes import Ended
from tests.phones.personas import Persona, load_persona

RUNNER = "org.ondeviceprofiler.runner"
ACTIVITY = f"{RUNNER}/.RunnerActivity"
PID, UID = 4242, 10123


def persona_with(name: str = "pixel9", **tables: Mapping[str, object]) -> Persona:
    """Return a persona with some facts changed: `persona_with(gauge={"refresh_s": 5.0})`."""
    persona = load_persona(name)
    changed = {table: msgspec.structs.replace(getattr(persona, table), **facts) for table, facts in tables.items()}
    return msgspec.structs.replace(persona, **changed)


def model_of(persona: Persona | str = "pixel9", *, clock: FakeClock | None = None, speed: float = 1.0) -> DeviceModel:
    """Return a phone that runs free on a fake clock."""
    persona = load_persona(persona) if isinstance(persona, str) else persona
    return DeviceModel(persona, speed=speed, clock=clock or FakeClock())


def driven_model(persona: Persona | str = "pixel9") -> DeviceModel:
    """Return a driven phone with a runner process."""
    model = model_of(persona)
    model.start_process(PID, RUNNER, UID)
    model.drive()
    return model


def pass_seconds(model: DeviceModel, seconds: float) -> None:
    """Let a driven phone's time pass."""
    model.advance(model.boot_ns() + round(seconds * 1e9))


def call(model: DeviceModel, parameters: int = 400_000_000, output_bytes: int = 50_000) -> int:
    """Make one call to its end and return how long it took."""
    with model.present():
        duration_ns = model.work.call(PID, "denoiser", "main", parameters, output_bytes)
    model.advance(model.boot_ns() + duration_ns)
    return duration_ns


def load(model: DeviceModel, file_bytes: int, component: str = "denoiser") -> int:
    """Load a component to its end and return how long it took."""
    with model.present():
        duration_ns = model.work.load(PID, component, file_bytes, file_bytes // 2)
    model.advance(model.boot_ns() + duration_ns)
    return duration_ns


class FakeApps:
    """One installed runner whose processes are numbers only."""

    def __init__(self, model: DeviceModel) -> None:
        self._model = model
        self._running: dict[int, str] = {}
        self._packages = {RUNNER: "/data/app/~~phone/runner/base.apk"}
        self._next_pid = 5000
        self.extras: Mapping[str, str] = {}
        model.on_end(self._ended)

    def _ended(self, ended: Ended) -> None:
        self._running.pop(ended.pid, None)

    def installed(self) -> Mapping[str, str]:
        return dict(self._packages)

    def versions(self) -> Mapping[str, int]:
        return dict.fromkeys(self.installed(), 1)

    def start(self, component: str, extras: Mapping[str, str]) -> int:
        if component != f"{RUNNER}/{RUNNER}.RunnerActivity":
            raise LookupError(component)
        self._next_pid += 1
        self._running[self._next_pid] = RUNNER
        self.extras = extras
        self._model.start_process(self._next_pid, RUNNER, UID)
        return self._next_pid

    def stop(self, package: str) -> None:
        self._running = {pid: name for pid, name in self._running.items() if name != package}

    def running(self) -> Mapping[int, str]:
        return dict(self._running)

    def install(self, apk: bytes, *, downgrade: bool = False) -> str:
        return RUNNER

    def install_from(self, path: str, *, downgrade: bool = False) -> str:
        raise FileNotFoundError(path)

    def uninstall(self, package: str) -> bool:
        return self._packages.pop(package, None) is not None

    def clear(self, package: str) -> bool:
        return package in self._packages

"""The least that a synthetic runner needs of a phone: a clock it drives, fixed costs, memory that grows with loads."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from profiler.quantities import MIB, NS_PER_MS

BOOT_NS, WALL_NS = 1_000_000_000_000, 1_750_000_000_000_000_000
LOAD_NS, CALL_NS, CANARY_NS = 30 * NS_PER_MS, 7 * NS_PER_MS, 200_000
IDLE_BYTES = 50 * MIB
SYSTEM_FILES = {
    "/sys/class/thermal/thermal_zone0/type": "battery\n",
    "/sys/class/thermal/thermal_zone1/type": "cpu-0-0\n",
    "/sys/class/thermal/thermal_zone1/temp": "41500\n",
    "/sys/devices/system/cpu/possible": "0-7\n",
    "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "1800000\n",
    "/sys/devices/system/cpu/cpufreq/policy4/cpuinfo_max_freq": "3100000\n",
    "/sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq": "2900000\n",
    "/sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq": "2700000\n",
}

# Sees a request first: it may do something, answer in the model's place, or leave it (None).
Before = Callable[[dict[str, Any]], dict[str, Any] | None]


class StandInModel:
    """Answers one runner's control channel, in order; `before` sees each request first."""

    def __init__(self, before: Before | None = None) -> None:
        self._before = before or (lambda request: None)
        self.asked: list[dict[str, Any]] = []
        self.boot_ns, self.peak_bytes = BOOT_NS, IDLE_BYTES
        self.loaded: dict[str, int] = {}
        self.attached = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up on whoever comes next."""
        self._listener.close()

    def _serve(self) -> None:
        try:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    connection.sendall(self._reply(json.loads(line)))
        except OSError:
            pass  # the runner is gone, or never came

    def _reply(self, request: dict[str, Any]) -> bytes:
        self.asked.append(request)
        return json.dumps(self._before(request) or self._answer(**request)).encode() + b"\n"

    def _answer(self, do: str, **members: Any) -> dict[str, Any]:
        action: Callable[..., dict[str, Any]] | None = getattr(self, f"_{do}", None)
        return action(**members) if action else {"error": f"nothing to do with {do}"}

    def _attach(self, pid: int) -> dict[str, Any]:
        self.attached = True
        return self._time()

    def _detach(self) -> dict[str, Any]:
        self.attached = False
        return {}

    def _advance(self, boot_ns: int) -> dict[str, Any]:
        assert boot_ns > self.boot_ns
        self.boot_ns = boot_ns
        return self._time()

    def _time(self) -> dict[str, Any]:
        return {"boot_ns": self.boot_ns, "wall_ns": self.boot_ns - BOOT_NS + WALL_NS}

    def _load(self, component: str, file_bytes: int, parameters: int) -> dict[str, Any]:
        self.loaded[component] = file_bytes
        self.peak_bytes = max(self.peak_bytes, self._resident_bytes())
        return {"duration_ns": LOAD_NS}

    def _unload(self, component: str) -> dict[str, Any]:
        del self.loaded[component]
        return {}

    def _call(self, component: str, function: str, parameters: int, output_bytes: int) -> dict[str, Any]:
        return {"duration_ns": CALL_NS}

    def _canary(self, rounds: int) -> dict[str, Any]:
        return {"duration_ns": CANARY_NS}

    def _read(self, path: str) -> dict[str, Any]:
        if path == "/proc/self/status":
            resident, peak = self._resident_bytes() // 1024, self.peak_bytes // 1024
            text = f"Name:\trunner\nVmHWM:\t{peak} kB\nVmRSS:\t{resident} kB\nVmSwap:\t{100} kB\n"
            return {"text": text, "reason": None}
        text = SYSTEM_FILES.get(path)
        return {"text": text, "reason": None if text else "No such file or directory"}

    def _resident_bytes(self) -> int:
        return IDLE_BYTES + sum(self.loaded.values())

    def _battery(self) -> dict[str, Any]:
        return {
            "current_now": -412_000,
            "charge_counter": 3_210_000,
            "voltage_mv": 4_012,
            "temperature_tenths": 293,
            "level": 57,
            "scale": 100,
            "plugged": 0,
            "status": 3,
        }

    def _thermal(self) -> dict[str, Any]:
        return {"status": 0, "headroom": 0.41}

    def _power_monitors(self) -> dict[str, Any]:
        return {"readings": None}

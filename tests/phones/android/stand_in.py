"""Until the device model lands: the same interface, and a phone on which nothing ever changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.phones.android.ask_server import Answer

FEATURES = [
    "shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "fixed_push_symlink_timestamp", "abb", "abb_exec", "apex",
    "sendrecv_v2", "sendrecv_v2_brotli", "sendrecv_v2_dry_run_send", "remount_shell", "delayed_ack",
]  # fmt: skip
PROPS = {
    "ro.serialno": "4A171FDAS00VP9",
    "ro.product.name": "tokay",
    "ro.product.model": "Pixel 9",
    "ro.product.device": "tokay",
    "ro.build.version.sdk": "36",
    "ro.build.version.release": "16",
    "ro.profiler.virtual": "1",
}


class SystemFacts:
    serial = "4A171FDAS00VP9"
    props = PROPS


class Persona:
    name = "pixel9"
    system = SystemFacts()

    def __init__(self, name: str) -> None:
        self.system.adb_features = [] if name == "old-api29" else FEATURES

    def prop(self, name: str) -> str:
        return PROPS.get(name, "")


class Storage:
    total_bytes = 118_000_000_000
    free_bytes = 61_000_000_000

    def give_back(self, size_bytes: int) -> None:
        self.free_bytes = min(self.total_bytes, self.free_bytes + size_bytes)

    def fill(self, *, leaving_bytes: int = 0) -> None:
        self.free_bytes = leaving_bytes


class DeviceModel:
    def __init__(self, persona: Persona, *, seed: int = 0, speed: float = 1.0) -> None:
        self.persona = persona
        self.storage = Storage()
        self.ended: list[tuple[int, str, int]] = []
        self.boots = 0

    def start_process(self, pid: int, package: str, uid: int) -> None:
        pass

    def end_process(self, pid: int, why: str = "exit", *, status: int = 0) -> None:
        self.ended.append((pid, why, status))

    def on_end(self, told: Callable[..., None]) -> None:
        pass

    def reboot(self) -> None:
        self.boots += 1


class Commands:
    names = ("getprop", "am", "pidof", "pm", "cmd", "dumpsys", "settings")

    def __init__(self, model: DeviceModel, apps) -> None:
        self._model = model
        self._apps = apps

    def files(self) -> dict[str, bytes | None]:
        return {"/sys/class/thermal/thermal_zone0/temp": b"31000\n", "/sys/devices/secret": None}

    def run(self, argv: Sequence[str], stdin: bytes = b"") -> Answer:
        if argv[0] == "getprop":
            if len(argv) > 1:
                return Answer(f"{PROPS.get(argv[1], '')}\n".encode())
            return Answer("".join(f"[{k}]: [{v}]\n" for k, v in PROPS.items()).encode())
        if argv[:2] == ["am", "start"]:
            extras = {argv[i + 1]: argv[i + 2] for i, word in enumerate(argv) if word == "--es"}
            if "-S" in argv:
                self._apps.stop(argv[argv.index("-n") + 1].partition("/")[0])
            self._apps.start(argv[argv.index("-n") + 1], extras)
            return Answer(b"Starting: Intent\nStatus: ok\nLaunchState: COLD\nTotalTime: 100\nComplete\n")
        if argv[:2] == ["am", "force-stop"]:
            self._apps.stop(argv[2])
            return Answer()
        if argv[0] == "pidof":
            pids = [str(app.pid) for app in self._apps.running() if app.package == argv[1]]
            return Answer((" ".join(pids) + "\n").encode(), code=not pids)
        return Answer(b"", f"{argv[0]}: inaccessible or not found\n".encode(), 127)

"""A virtual Android phone: what tests and people hold in their hand."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from tests.phones.android.adbd import Adbd, Identity, Terms, Trust
from tests.phones.android.apps import RUNNER_PACKAGE, RUNNERS, Apps, RunnerArgv
from tests.phones.android.ask_server import FOLDER, AskServer
from tests.phones.android.commands import Commands
from tests.phones.android.commands_answer import Answer
from tests.phones.android.installed import Installed
from tests.phones.android.packages import Apk
from tests.phones.android.packets import CHECKSUMMED_VERSION, MAX_PAYLOAD_BYTES, OLD_MAX_PAYLOAD_BYTES, VERSION
from tests.phones.android.rootfs import Rootfs
from tests.phones.android.services import Services
from tests.phones.android.shown_files import ShownFiles
from tests.phones.android.storage_meter import StorageMeter
from tests.phones.android.streams import Stream
from tests.phones.android.userland import Userland
from tests.phones.control import ControlServer
from tests.phones.model import DeviceModel
from tests.phones.model_pacer import Pacer
from tests.phones.model_processes import Ended
from tests.phones.personas import load_persona

IMPLEMENTED_FEATURES = frozenset({
    "shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "fixed_push_symlink_timestamp", "apex", "abb",
    "abb_exec", "remount_shell", "sendrecv_v2", "sendrecv_v2_dry_run_send", "delayed_ack",
})  # fmt: skip
"""What a persona may offer; packing (brotli, lz4, zstd) is not there, so files come as they are."""

_PRODUCT_PROPS = ("ro.product.name", "ro.product.model", "ro.product.device")


class VirtualAndroid:
    """A phone on a port of 127.0.0.1; a context manager, at whose end all that it started is gone.

    The runner app is installed from the start. Faults that a test may cause are methods; what happens inside the phone
    is `model`. `speed`: how much faster than this machine's the model's clock runs while no synthetic runner drives it.
    `entered`: see Userland.
    """

    def __init__(
        self,
        persona: str = "pixel9",
        *,
        runner: str | RunnerArgv = "kotlin",
        speed: float = 1.0,
        seed: int = 0,
        port: int = 0,
        trust: Trust = Trust.OPEN,
        entered: bool | None = None,
    ) -> None:
        if runner == "python" and speed != 1.0:
            raise ValueError(
                "the python runner computes on this machine's clock, which no phone can outrun: speed 1 only"
            )
        self._closing = ExitStack()
        self.model = DeviceModel(load_persona(persona), seed=seed, speed=speed)
        self.root = Path(tempfile.mkdtemp(prefix="phone-"))
        self._closing.callback(shutil.rmtree, self.root)
        self._files = Rootfs(self.root)
        self._closing.callback(self._files.close)
        self._meter = StorageMeter(self._files, self.model.storage)
        self._packages = Installed(self._files, self._meter.free_bytes)
        self._control = self._closing.enter_context(ControlServer(self.model))
        argv = RUNNERS[runner] if isinstance(runner, str) else runner
        self.apps = Apps(self._files, self._packages, self.model, argv, self._control.address)
        self.commands = Commands(self.model, self.apps)
        self._userland = Userland(self.root, entered=entered)
        self._shown = ShownFiles(self.root, self.commands.files)
        self.services = Services(self._files, self._shown, self._userland, self._meter.free_bytes, self)
        self.adbd = Adbd(Terms(self._identity, self.services.find, trust), port=port)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._closing.close()
            raise
        return self

    def _start(self) -> None:
        self._userland.build([*self.commands.names, "remount"])
        asked = AskServer(self.root, self._userland.seen_as(f"/{FOLDER}"), self._answer)
        for close in (asked.close, self.adbd.await_served, self.services.close, self.apps.close, self.adbd.cut):
            self._closing.callback(close)  # the last one is called first
        self.model.on_end(self._end_real)
        self._packages.add(Apk(RUNNER_PACKAGE, 1, "1", (".RunnerActivity",)))
        asked.start()
        self._shown.start()
        self._closing.enter_context(Pacer(self.model))
        self.adbd.listen()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closing.close()

    @property
    def address(self) -> str:
        """Return what `adb connect` takes; it is also the transport's serial."""
        return f"127.0.0.1:{self.adbd.port}"

    @property
    def serial(self) -> str:
        """Return the phone's own serial, whatever it is connected by."""
        return self.model.persona.system.serial

    def host_path(self, path: str) -> Path:
        """Return where a path of the phone is on this machine."""
        return self._files.host_path(path)

    def abstract_name(self, name: str) -> str:
        """Return the abstract unix socket of this machine that is `localabstract:NAME` on this phone."""
        return f"phone-{self.adbd.port}-{name}"

    # cable and adbd

    def unplug(self) -> None:
        """Pull the cable: every connection is cut at once, nothing listens, and the phone lives on its battery."""
        self.adbd.cut()
        self.model.unplug()

    def plug(self) -> None:
        """Put the cable back in: the phone charges and listens on the same port; no zombie and not offline any more."""
        self.adbd.terms.offline = self.adbd.terms.deaf = False
        self.model.plug("usb")
        self.adbd.cut()
        self.adbd.listen()

    def unplug_during_push(self, after_bytes: int) -> None:
        """Pull the cable once so many more bytes of files have arrived."""
        left = after_bytes

        def count(size: int) -> None:
            nonlocal left
            left -= size
            if left <= 0:
                self.services.taken = lambda size: None
                self.unplug()

        self.services.taken = count

    def close_port(self) -> None:
        """Let adb be gone while the cable stays: USB debugging switched off. `plug` switches it on again."""
        self.adbd.cut()

    def drop_connections(self) -> None:
        """Drop the connections but go on listening, as a loose contact does."""
        self.adbd.drop_links()

    def authorize(self) -> None:
        """Tap "Allow USB debugging", for hosts that have asked."""
        self.adbd.authorize()

    def go_offline(self) -> None:
        """Let adb list the phone as offline, until it is plugged in anew."""
        self.adbd.go_offline()

    def become_zombie(self) -> None:
        """Keep connections up and answer nothing any more, until plugged in anew."""
        self.adbd.terms.deaf = True

    def hang_shell(self) -> None:
        """Let shells open and never answer; files and sockets go on."""
        self.services.shell_hangs = True

    def unhang_shell(self) -> None:
        """Let shells that are opened from now on answer again."""
        self.services.shell_hangs = False

    def reboot(self, *, down_s: float = 0.0) -> None:
        """Restart the phone: processes and reversed sockets are gone, files stay; adbd is back after `down_s`."""
        self.adbd.cut()
        self.services.reversed.close()
        self.model.reboot()
        self.apps.close()
        if down_s:
            timer = threading.Timer(down_s, self.adbd.listen)
            self._closing.callback(timer.cancel)
            timer.start()
        else:
            self.adbd.listen()

    # apps and storage

    def kill_app(self, why: str = "kill", package: str = RUNNER_PACKAGE) -> None:
        """End an app's process: `kill`, `force-stop`, `crash` or `anr`; the phone's logs say so."""
        for pid, name in self.apps.running().items():
            if name == package:
                self.apps.kill(pid, why)

    def freeze_app(self, package: str = RUNNER_PACKAGE) -> None:
        """Stop an app's process where it stands: it lives and answers nothing."""
        self.apps.freeze(package)

    def thaw_app(self, package: str = RUNNER_PACKAGE) -> None:
        """Let a frozen process go on."""
        self.apps.thaw(package)

    def fail_next_install(self, text: str) -> None:
        """Let the next installation fail with `INSTALL_…`, whatever the file."""
        self._packages.next_failure = text

    def fill_storage(self, *, leaving_bytes: int = 0) -> None:
        """Fill the phone up."""
        self._meter.free_bytes()
        self.model.storage.fill(leaving_bytes=leaving_bytes)

    # what adbd asks of the phone

    def restart(self, _how: str) -> None:
        """Do what `adb reboot` asks."""
        self.reboot()

    def framework(self, words: list[str], stream: Stream) -> None:
        """Answer `abb:` and `abb_exec:`, which reach `cmd` without a shell."""
        answer = self._answer(["cmd", *words], stream.as_file())
        stream.write(answer.stdout + answer.stderr)

    def _answer(self, words: Sequence[str], incoming: BinaryIO) -> Answer:
        if words[0] == "remount":
            return Answer(stderr=b'Not running as root. Try "adb root" first.\n', code=1)
        if words[0] == "stat":
            return self._meter.statfs(words)
        if words[0] in ("df", "pm", "cmd"):
            self._meter.free_bytes()
        return self.commands.run(words, _streamed(words, incoming))

    def _end_real(self, ended: Ended) -> None:
        # One that the model says left by itself (0) is still there where a test said so, and would be waited for.
        self.apps.end_real(ended.pid, ended.signal or signal.SIGKILL)

    def _identity(self) -> Identity:
        persona = self.model.persona
        features = [name for name in persona.system.adb_features if name in IMPLEMENTED_FEATURES]
        products = "".join(f"{name}={persona.prop(name)};" for name in _PRODUCT_PROPS)
        if not features:  # such an old adbd sums every payload up and takes small ones only
            return Identity(f"device::{products}", CHECKSUMMED_VERSION, OLD_MAX_PAYLOAD_BYTES)
        return Identity(f"device::{products}features={','.join(features)}", VERSION, MAX_PAYLOAD_BYTES)


def _streamed(words: Sequence[str], incoming: BinaryIO) -> bytes:
    """Read what a command is sent on standard input, which is only a package whose size it is told."""
    if "-S" not in words[:-1]:
        return b""
    size = words[list(words).index("-S") + 1]
    return incoming.read(int(size)) if size.isdigit() else b""

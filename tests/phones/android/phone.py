"""A virtual Android phone: what tests and people hold in their hand."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from tests.phones.android import userland
from tests.phones.android.adbd import Adbd, Identity, Trust
from tests.phones.android.apps import RUNNER_PACKAGE, Apps, RunnerArgv, kotlin_runner, python_runner
from tests.phones.android.ask_server import FOLDER, Answer, AskServer
from tests.phones.android.install import Installer
from tests.phones.android.packages import Apk
from tests.phones.android.packets import CHECKSUMMED_VERSION, MAX_PAYLOAD_BYTES, OLD_MAX_PAYLOAD_BYTES, VERSION
from tests.phones.android.rootfs import Rootfs
from tests.phones.android.services import Services
from tests.phones.android.shown_files import ShownFiles
from tests.phones.android.stand_in import Commands, DeviceModel, Persona
from tests.phones.android.storage_meter import StorageMeter
from tests.phones.android.streams import Stream

IMPLEMENTED_FEATURES = frozenset({
    "shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "fixed_push_symlink_timestamp", "apex", "abb",
    "abb_exec", "remount_shell", "sendrecv_v2", "sendrecv_v2_dry_run_send", "delayed_ack",
})  # fmt: skip
"""What a persona may offer; packing (brotli, lz4, zstd) is not there, so files come as they are."""

_PRODUCT_PROPS = ("ro.product.name", "ro.product.model", "ro.product.device")
_KOTLIN_JAR = Path(__file__).parents[3] / "build" / "android" / "virtual.jar"
RUNNERS: dict[str, RunnerArgv] = {"python": python_runner, "kotlin": kotlin_runner(_KOTLIN_JAR)}
"""What may be the runner app's process on the phone."""


class VirtualAndroid:
    """A phone on a port of 127.0.0.1; a context manager, at whose end all that it started is gone.

    The runner app is installed from the start. Faults that a test may cause are methods; the model is `model`.
    """

    def __init__(
        self,
        persona: str = "pixel9",
        *,
        runner: str | RunnerArgv = "python",
        speed: float = 1.0,
        seed: int = 0,
        port: int = 0,
        trust: Trust = Trust.OPEN,
    ) -> None:
        self._closing = ExitStack()
        self.root = Path(tempfile.mkdtemp(prefix="phone-"))
        self._closing.callback(shutil.rmtree, self.root)
        self.files = Rootfs(self.root)
        self._closing.callback(self.files.close)
        self.model = DeviceModel(Persona(persona), seed=seed, speed=speed)
        argv = RUNNERS[runner] if isinstance(runner, str) else runner
        self.apps = Apps(self.files, self.model, argv, self._control_address)
        self.commands = Commands(self.model, self.apps)
        self._meter = StorageMeter(self.files, self.model.storage)
        self.installer = Installer(self.files, self.apps, self._meter.free_bytes)
        self._shown = ShownFiles(self.root, self.commands.files)
        self.services = Services(
            self.files, self._shown, self._meter.free_bytes, reboot=lambda how: self.reboot(),
            framework=self._framework, abstract_name=self.abstract_name,
        )  # fmt: skip
        self.adbd = Adbd(self._identity, self.services.find, trust=trust, port=port)

    def __enter__(self) -> Self:
        userland.build(self.root, [*self.commands.names, "remount"])
        asked = AskServer(self.root, userland.seen_as(self.root, f"/{FOLDER}"), self._answer)
        self._closing.callback(asked.close)
        self._closing.callback(self.services.reversed.close)
        self._closing.callback(self.apps.close)
        self._closing.callback(self.adbd.cut)
        self.model.on_end(lambda ended: self.apps.end_without_telling(ended.pid))
        self.apps.add(Apk(RUNNER_PACKAGE, 1, "1", (".RunnerActivity",)))
        asked.start()
        self.adbd.listen()
        return self

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

    def abstract_name(self, name: str) -> str:
        """Return the abstract unix socket of this machine that is `localabstract:NAME` on this phone."""
        return f"phone-{self.adbd.port}-{name}"

    # cable and adbd

    def unplug(self) -> None:
        """Pull the cable: every connection is cut at once, and nothing listens."""
        self.adbd.cut()

    def plug(self) -> None:
        """Put the cable back in: the phone listens on the same port."""
        self.adbd.offline = self.adbd.deaf = False
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

    def flicker(self) -> None:
        """Drop the connections but go on listening, as a loose contact does."""
        self.adbd.drop_links()

    def authorize(self) -> None:
        """Tap "Allow USB debugging"."""
        self.adbd.authorize()

    def go_offline(self) -> None:
        """Let adb list the phone as offline until it is unplugged and plugged in."""
        self.adbd.go_offline()

    def become_zombie(self) -> None:
        """Keep the connection up and answer nothing any more, until plugged in anew."""
        self.adbd.deaf = True

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
        self.apps.close()
        self.model.reboot()
        if down_s:
            timer = threading.Timer(down_s, self.adbd.listen)
            self._closing.callback(timer.cancel)
            timer.start()
        else:
            self.adbd.listen()

    # storage and packages

    def fill_storage(self, *, leaving_bytes: int = 0) -> None:
        """Fill the phone up."""
        self._meter.free_bytes()
        self.model.storage.fill(leaving_bytes=leaving_bytes)

    def fail_next_install(self, text: str) -> None:
        """Let the next installation fail with `INSTALL_…`, whatever the file."""
        self.installer.next_failure = text

    def restrict_user(self) -> None:
        """Let the user forbid installing over USB."""
        self.installer.user_restricted = True

    # inside

    def _identity(self) -> Identity:
        persona = self.model.persona
        features = [name for name in persona.system.adb_features if name in IMPLEMENTED_FEATURES]
        products = "".join(f"{name}={persona.prop(name)};" for name in _PRODUCT_PROPS)
        if not features:  # such an old phone knows no versions either
            return Identity(f"device::{products}", CHECKSUMMED_VERSION, OLD_MAX_PAYLOAD_BYTES)
        return Identity(f"device::{products}features={','.join(features)}", VERSION, MAX_PAYLOAD_BYTES)

    def _control_address(self) -> str:
        return ""

    def _answer(self, words: Sequence[str], incoming: BinaryIO) -> Answer:
        if self.installer.serves(words):
            return self.installer.run(words, incoming)
        own = {"df": self._meter.df, "stat": self._meter.statfs, "remount": _refuse_remount}.get(words[0])
        if own is not None:
            return own(words)
        answer = self.commands.run(words, incoming.read() if "-S" in words else b"")
        return Answer(*answer)

    def _framework(self, words: list[str], stream: Stream) -> None:
        """Answer `abb:` and `abb_exec:`, which leave the shell out."""
        incoming = stream.as_file()
        argv = ["cmd", *words] if words[:1] != ["package"] else words
        if self.installer.serves(argv):
            answer = self.installer.run(argv, incoming)
        else:
            answer = Answer(*self.commands.run(["cmd", *words], b""))
        stream.write(answer.stdout + answer.stderr)


def _refuse_remount(_words: Sequence[str]) -> Answer:
    return Answer(stderr=b'Not running as root. Try "adb root" first.\n', code=1)

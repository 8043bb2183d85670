"""A virtual Android phone: what tests and people hold in their hand."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.phones.android import userland
from tests.phones.android.adbd import Adbd, Identity, Trust
from tests.phones.android.packets import CHECKSUMMED_VERSION, OLD_MAX_PAYLOAD_BYTES
from tests.phones.android.rootfs import Rootfs
from tests.phones.android.services import Services
from tests.phones.android.streams import Stream
from tests.phones.android.userland import AskServer, Shown

IMPLEMENTED_FEATURES = frozenset({
    "shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "apex", "abb", "fixed_push_symlink_timestamp", "abb_exec",
    "remount_shell", "sendrecv_v2", "sendrecv_v2_dry_run_send", "delayed_ack",
})  # fmt: skip
"""What a persona may offer; packing (brotli, lz4, zstd) is not there, so files come as they are."""


class VirtualAndroid:
    """A phone on a port of 127.0.0.1; a context manager, at whose end all that it started is gone."""

    def __init__(self, persona: str = "pixel9", *, port: int = 0) -> None:
        self.persona = persona
        self.root = Path(tempfile.mkdtemp(prefix="phone-"))
        self._files = Rootfs(self.root)
        self._shown = Shown(self.root, dict)
        self._commands = AskServerStandIn()
        (self.root / ".sim").mkdir()
        self._asked = AskServer(self.root, self._commands.run)
        self.services = Services(
            self._files, self._shown, lambda: 1 << 40, reboot=lambda how: None, framework=_no_framework,
            abstract_name=lambda name: f"phone-{self.adbd.port}-{name}",
        )  # fmt: skip
        self.adbd = Adbd(self._identity, self.services.find, port=port)

    def __enter__(self) -> Self:
        userland.build(self.root, self._commands.names)
        self._asked.start()
        self.adbd.listen()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.adbd.cut()
        self.services.reversed.close()
        self._asked.close()
        self._files.close()
        shutil.rmtree(self.root)

    @property
    def address(self) -> str:
        """Return what `adb connect` takes; it is also the transport's serial."""
        return f"127.0.0.1:{self.adbd.port}"

    def _identity(self) -> Identity:
        features = ",".join(sorted(IMPLEMENTED_FEATURES))
        return Identity(
            f"device::ro.product.name=tokay;ro.product.model=Pixel 9;ro.product.device=tokay;features={features}"
        )


class AskServerStandIn:
    names = ("getprop",)

    def run(self, argv, stdin):
        if argv[0] == "getprop":
            props = {
                "ro.serialno": "4A171FDAS00VP9",
                "ro.product.model": "Pixel 9",
                "ro.build.version.sdk": "36",
                "ro.profiler.virtual": "1",
            }
            if len(argv) > 1:
                return userland.Answer(f"{props.get(argv[1], '')}\n".encode())
            return userland.Answer("".join(f"[{k}]: [{v}]\n" for k, v in props.items()).encode())
        return userland.Answer(b"", b"no such thing\n", 1)


def _no_framework(words: list[str], stream: Stream) -> None:
    stream.write(b"cmd: Can't find service\n")

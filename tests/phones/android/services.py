"""Which service of adbd answers which name that a host opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tests.phones.android import shell, sockets
from tests.phones.android.adbd import Link, Service
from tests.phones.android.rootfs import Rootfs
from tests.phones.android.shown_files import ShownFiles
from tests.phones.android.streams import Stream
from tests.phones.android.sync import SyncService
from tests.phones.android.userland import Userland

_NO_ROOT = b"adbd cannot run as root in production builds\n"


class Phone(Protocol):
    """What adbd asks of the phone that it runs on."""

    def restart(self, how: str) -> None:
        """Restart; `how` is empty, or `bootloader` and the like."""

    def framework(self, words: list[str], stream: Stream) -> None:
        """Call a service of the framework, as `cmd` does."""

    def abstract_name(self, name: str) -> str:
        """Return the abstract unix socket of this machine that is one of the phone."""


class Services:
    """The services of one phone; tests make some of them fail."""

    def __init__(
        self,
        files: Rootfs,
        shown: ShownFiles,
        userland: Userland,
        free_bytes: Callable[[], int],
        phone: Phone,
    ) -> None:
        self.reversed = sockets.Reversed()
        self.shell_hangs = False
        self.taken: Callable[[int], object] = lambda size: None
        self._files = files
        self._shown = shown
        self._userland = userland
        self._free_bytes = free_bytes
        self._phone = phone

    def find(self, name: str, link: Link) -> Service | None:
        """Return what serves `name`, None for what this phone has not or where nothing listens."""
        head, _, rest = name.partition(":")
        find = _FINDERS.get(head.partition(",")[0])
        return find(self, name, rest, link) if find else None

    def close(self) -> None:
        """Stop showing files, give up reversed sockets, and end all that shells have started."""
        self._shown.close()
        self.reversed.close()
        self._userland.end_all()

    def _shell(self, name: str, _rest: str, _link: Link) -> Service:
        return lambda stream: self._run_shell(stream, shell.parse(name))

    def _run_shell(self, stream: Stream, request: shell.Request) -> None:
        if self.shell_hangs:
            stream.await_closed()
            return
        with self._shown.kept_fresh():
            shell.ShellService(stream, request, self._userland).run()

    def _sync(self, _name: str, _rest: str, _link: Link) -> Service:
        def serve(stream: Stream) -> None:
            self._shown.refresh()
            SyncService(stream, self._files, self._free_bytes, lambda size: self.taken(size)).run()

        return serve

    def _tcp(self, _name: str, rest: str, _link: Link) -> Service | None:
        connection = sockets.connect_tcp(int(rest)) if rest.isdigit() else None
        return (lambda stream: sockets.join(stream, connection)) if connection else None

    def _abstract(self, _name: str, rest: str, _link: Link) -> Service | None:
        connection = sockets.connect_abstract(self._phone.abstract_name(rest))
        return (lambda stream: sockets.join(stream, connection)) if connection else None

    def _reverse(self, _name: str, rest: str, link: Link) -> Service:
        return lambda stream: stream.write(self.reversed.answer(rest, link.open_from_phone))

    def _restart(self, _name: str, rest: str, _link: Link) -> Service:
        def serve(stream: Stream) -> None:
            stream.close()
            self._phone.restart(rest)

        return serve

    def _refuse_root(self, _name: str, _rest: str, _link: Link) -> Service:
        return lambda stream: stream.write(_NO_ROOT)

    def _abb(self, _name: str, rest: str, _link: Link) -> Service:
        return lambda stream: self._phone.framework(rest.split("\0"), stream)


_FINDERS: Mapping[str, Callable[[Services, str, str, Link], Service | None]] = {
    "shell": Services._shell,
    "exec": Services._shell,
    "sync": Services._sync,
    "tcp": Services._tcp,
    "localabstract": Services._abstract,
    "reverse": Services._reverse,
    "reboot": Services._restart,
    "root": Services._refuse_root,
    "remount": Services._refuse_root,
    "abb_exec": Services._abb,
    "abb": Services._abb,
}

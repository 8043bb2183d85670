"""The phone's end of the ADB transport, on a port of 127.0.0.1."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from tests.phones.android.link import Identity, Link, Service, Terms, Trust

__all__ = ["Adbd", "Identity", "Link", "Service", "Terms", "Trust"]


class Adbd:
    """Listen for adb servers; several may be connected at once, as over USB and Wi-Fi."""

    def __init__(self, terms: Terms, *, port: int = 0) -> None:
        self.terms = terms
        self.port = port
        self._listener: socket.socket | None = None
        self._serving: set[threading.Thread] = set()
        self._links: list[Link] = []
        self._lock = threading.Lock()

    def listen(self) -> None:
        """Listen on the port of before, or on a free one the first time."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=16)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), name="adbd", daemon=True).start()

    @property
    def listening(self) -> bool:
        """Tell whether a host may connect."""
        return self._listener is not None

    def cut(self) -> None:
        """Stop listening and drop every link at once, as a pulled cable does."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
            listener.close()
        self.drop_links()

    def await_served(self) -> None:
        """Wait until no service runs any more; `cut` before."""
        for thread in tuple(self._serving):
            thread.join()

    def drop_links(self) -> None:
        """Reset every connection; the port stays open."""
        for link in self.links():
            link.cut()

    def links(self) -> list[Link]:
        """Return the connections that are up."""
        with self._lock:
            return list(self._links)

    def authorize(self) -> None:
        """Answer "Allow USB debugging?" with yes, for the hosts that are connected now and for good."""
        self.terms.trust = Trust.ASKS if self.terms.trust is Trust.DENIES else self.terms.trust
        for link in self.links():
            link.authorize()

    def go_offline(self) -> None:
        """Let hosts list the phone as offline until `cut` and `listen`."""
        self.terms.offline = True
        for link in self.links():
            link.say_offline()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(connection, self.terms, self._in_thread)
            with self._lock:
                if self._listener is not listener:  # cut while this one was on its way
                    connection.close()
                    return
                self._links.append(link)
            threading.Thread(target=self._run, args=(link,), name="adbd-link", daemon=True).start()

    def _run(self, link: Link) -> None:
        link.run()
        with self._lock:
            self._links.remove(link)

    def _in_thread(self, serve: Callable[[], None]) -> None:
        """Run a service in a thread of its own, so that none waits for another."""

        def serving() -> None:
            try:
                serve()
            finally:
                self._serving.discard(threading.current_thread())

        thread = threading.Thread(target=serving, name="adbd-service", daemon=True)
        self._serving.add(thread)
        thread.start()

"""Files of /proc and /sys as the model has them now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.phones.android.ask_server import FOLDER

_REFRESH_S = 0.05


class ShownFiles:
    """Keep files up to date with what `files` says; None: nobody but the system may read it."""

    def __init__(self, root: Path, files: Callable[[], Mapping[str, bytes | None]]) -> None:
        self._root = root
        self._files = files
        self._written: dict[str, bytes | None] = {}
        self._closed = False
        self._watching = 0
        self._watched = threading.Condition()
        self._lock = threading.Lock()
        self._temporary = root / FOLDER / "new"

    def close(self) -> None:
        """Write no more: the folder is about to go."""
        with self._lock:
            self._closed = True
        with self._watched:
            self._watched.notify_all()

    @contextmanager
    def kept_fresh(self) -> Iterator[None]:
        """Refresh now, and every 50 ms as long as somebody looks."""
        self.refresh()
        with self._watched:
            self._watching += 1
            self._watched.notify_all()
        try:
            yield
        finally:
            with self._watched:
                self._watching -= 1

    def start(self) -> None:
        """Refresh for those who look, from now on."""
        threading.Thread(target=self._keep_fresh, name="phone-files", daemon=True).start()

    def _keep_fresh(self) -> None:
        while not self._closed:
            with self._watched:
                self._watched.wait_for(lambda: self._watching or self._closed)
                self._watched.wait_for(lambda: self._closed, timeout=_REFRESH_S)
            self.refresh()

    def refresh(self) -> None:
        """Write what has changed, each file whole before it is seen, and remove what is gone."""
        with self._lock:
            if self._closed:
                return
            now = dict(self._files())
            for path in self._written.keys() - now.keys():
                self._remove(self._root / path.lstrip("/"))
            for path, content in now.items():
                if path not in self._written or self._written[path] != content:
                    self._write(self._root / path.lstrip("/"), content)
            self._written = now

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()  # `/proc/PID` of a process that is gone

    def _write(self, target: Path, content: bytes | None) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._temporary.write_bytes(content or b"")
        self._temporary.chmod(0o000 if content is None else 0o444)
        self._temporary.rename(target)

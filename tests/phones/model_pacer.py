"""A free-running phone lives on while nobody looks: screens go dark and what was planned happens on time."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from tests.phones.model import DeviceModel


class Pacer:
    """Bring a phone to the present every so many real seconds, in a thread; a context manager."""

    def __init__(self, model: DeviceModel, *, period_s: float = 0.02) -> None:
        self._model = model
        self._period_s = period_s
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="phone-pacer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(self._period_s):
            self._model.sync()

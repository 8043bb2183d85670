"""Signals that ask `profile` to stop: the first ends it in good order, the second at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class QuitNow(BaseException):
    """A second signal came: leave everything as it is, the next command tidies up."""


class Signals:
    """Turns SIGTERM and SIGHUP into what Ctrl-C is, while it is entered; `received` are their numbers in order.

    One that the parent chose to ignore, as nohup does, stays ignored.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        for number in _NUMBERS:
            former = signal.getsignal(number)
            if former in (signal.SIG_DFL, signal.default_int_handler):
                try:
                    signal.signal(number, self._take)
                except ValueError:  # on another thread than the main one, which alone hears of signals
                    return self
                self._former[number] = former
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.received.append(number)
        if len(self.received) > 1:
            raise QuitNow
        raise KeyboardInterrupt

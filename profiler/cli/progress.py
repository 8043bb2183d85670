"""How far a session is: a bar with the time left on a terminal, a line for each phase elsewhere."""

from __future__ import annotations

import contextlib
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from profiler.devices.device import Transfer
from profiler.quantities import NS_PER_S, format_bytes
from profiler.records.event import Begin, IterationDone, Stop, Waiting
from profiler.report.words import foreign
from profiler.session import Order
from profiler.session import Progress as SessionState

Trace = TracebackType | None


class ExportProgress:
    """Counts an export's stages; silent until there is one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = _bar(console)
        self._task: TaskID | None = None

    def __enter__(self) -> ExportProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Trace) -> None:
        self._bar.stop()
        if isinstance(error, KeyboardInterrupt):  # what was stopped says what is left of it
            for note in getattr(error, "__notes__", ()):
                self._console.print(note, style="dim", markup=False, highlight=False)

    def report(self, stage: str, done: int, total: int) -> None:
        """Take in that a stage begins."""
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("export", total=total)
        self._bar.update(self._task, description=f"export: {stage}", completed=done, total=total)
        if not self._console.is_terminal:
            self._console.print(f"export, {stage}", style="dim")


_AWAY = "the phone is away and goes on by itself: connect it again to collect; Ctrl-C leaves that for later"


def _on_battery(order: Order) -> str:
    """Say how long a phone is to be left unplugged, where the protocol tells."""
    minutes = order.measurement.minutes
    until = "its images are made" if minutes is None else f"{minutes + order.rest_s / 60:.0f} min are over"
    return f"measuring on its battery: leave it unplugged until {until}, then connect it again"


class SessionProgress:
    """Counts images, or seconds where a protocol lasts for a time."""

    def __init__(self, console: Console, order: Order) -> None:
        self._order = order
        self._console = console
        self._bar = _bar(console)
        self._task: TaskID = self._bar.add_task("check", total=self._total())
        self._phase = ""
        self._said = ""

    def __enter__(self) -> SessionProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Trace) -> None:
        with contextlib.suppress(OSError):
            self._bar.stop()

    def report(self, state: SessionState) -> None:
        """Take in what the session says; a terminal that was closed is no reason to end it."""
        with contextlib.suppress(OSError):
            self._take(state)

    def _take(self, state: SessionState) -> None:
        event = state.event
        if isinstance(event, IterationDone):
            self._bar.update(self._task, advance=self._advance(event))
        elif isinstance(event, Begin):
            self._enter(f"{event.phase}, process {state.process + 1} of {self._order.cold_starts}")
            self._describe(f"{self._phase}: {event.stage}")
        elif isinstance(event, Waiting):
            self._describe(f"waiting: {event.reason}")
            self._say(f"waiting: {event.reason}")
        elif state.transfer is not None:
            self._push(state.transfer)
        elif event is None or isinstance(event, Stop):
            self._enter(self._words(state.phase) if event is None else "finishing")

    def _words(self, phase: str) -> str:
        if phase != "away":
            return phase
        return _on_battery(self._order) if self._order.untethered else _AWAY

    def _push(self, transfer: Transfer) -> None:
        self._enter("push the bundle")
        done, total = format_bytes(transfer.done_bytes), format_bytes(transfer.total_bytes)
        self._describe(f"push {transfer.file}: {done} of {total}")

    def _enter(self, phase: str) -> None:
        if phase == self._phase:
            return
        self._phase = phase
        self._describe(phase)
        self._say(phase)

    def _describe(self, text: str) -> None:
        """Show at the bar what is done; a phone's words are among it."""
        self._bar.update(self._task, description=foreign(text))

    def _say(self, line: str) -> None:
        """Print a line where no bar is drawn, unless it was the last one."""
        if not self._console.is_terminal and line != self._said:
            self._console.print(foreign(line), style="dim", markup=False)
        self._said = line

    def _total(self) -> float:
        order = self._order
        images = order.cold_starts + order.warmups + 2 * order.observer_pairs
        if order.measurement.kind == "sustained":
            return images + (order.measurement.minutes or 0) * 60
        return images + order.repeats

    def _advance(self, event: IterationDone) -> float:
        if event.phase != "timed" or self._order.measurement.kind != "sustained":
            return 1
        return (event.duration_ns + (event.gap_ns or 0)) / NS_PER_S


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
        refresh_per_second=2,  # drawing takes time from the model on the same cores
    )

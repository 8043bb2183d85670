"""The runner app at work: its folder on the phone, and how its process ends."""

from __future__ import annotations

import contextlib

from profiler import codec
from profiler.clock import Clock, Deadline
from profiler.devices.android.app import App
from profiler.devices.android.files import Files
from profiler.devices.android.numerals import number
from profiler.devices.android.shell import Shell, quoted
from profiler.devices.device import Away, Ended, Place
from profiler.devices.link import Link
from profiler.errors import DeviceError, InvalidRecord
from profiler.journal import JOURNAL_FILE
from profiler.records.message import ADDRESS_FILE, TOKEN_FILE, RunnerAddress, RunnerHello
from profiler.records.run import ProcessExit, SystemMemory
from profiler.store import is_plain_name

SESSIONS = "/sdcard/Android/data/org.ondeviceprofiler.runner/files/sessions"
LOG_FILE = "runner.log"
_LOOK_S = 0.1
_FETCHED = (JOURNAL_FILE, LOG_FILE)
_IMAGES = ".ppm"


class RunnerFolder:
    """A runner process's folder on the phone, in the app's own storage, and its twin here."""

    def __init__(self, shell: Shell, files: Files, place: Place) -> None:
        self.name = place.name
        self.path = f"{SESSIONS}/{place.name}"
        self._shell = shell
        self._files = files
        self._here = place.folder

    def prepare(self, token: str) -> None:
        """Make the folder and put the token and what else is in its twin into it. Raises DeviceError."""
        (self._here / TOKEN_FILE).write_text(token)
        self._shell.check(f"rm -rf {quoted(self.path)} && mkdir -p {quoted(self.path)}")
        for file in sorted(self._here.iterdir()):
            self._files.push(file, f"{self.path}/{file.name}")

    def read(self, name: str) -> bytes | None:
        """Return a small file's content, or None where it is not there (yet)."""
        output = self._shell.run(f"cat {quoted(f'{self.path}/{name}')} 2>/dev/null")
        return output.stdout if output.code == 0 else None

    def address(self) -> RunnerAddress | None:
        """Return where the runner said that it listens; None where it did not, or in no words of the protocol."""
        said = self.read(ADDRESS_FILE)
        try:
            return None if said is None else codec.decode(said, RunnerAddress, where=ADDRESS_FILE)
        except InvalidRecord:
            return None

    def log_tail(self, nothing: str | None = "it printed nothing") -> str | None:
        """Return the last line that the runner printed."""
        lines = (self.read(LOG_FILE) or b"").decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else nothing

    def has_ended(self) -> bool:
        """Tell whether the journal holds its last event."""
        output = self._shell.run(f"tail -n 1 {quoted(f'{self.path}/{JOURNAL_FILE}')} 2>/dev/null")
        return b'"event":"stop"' in output.stdout

    def fetch(self) -> None:
        """Pull journal, images and log into the twin. Raises Away or DeviceError."""
        try:
            listed = self._shell.run(f"ls -1 {quoted(self.path)} 2>/dev/null").text.splitlines()
            for name in filter(is_plain_name, listed):  # a phone must not say where files go here
                if name in _FETCHED or name.endswith(_IMAGES):
                    self._files.pull(f"{self.path}/{name}", self._here / name)
        except DeviceError as error:
            raise _away(error) from error


class AndroidRunner:
    """One process of the runner app and the conversation with it."""

    link: Link
    hello: RunnerHello
    launch_ns: int

    def __init__(self, app: App, shell: Shell, clock: Clock, pid: int, end_s: float) -> None:
        self._app = app
        self._shell = shell
        self._clock = clock
        self._pid = pid
        self._end_s = end_s
        self._uptime_s = self._uptime()

    def meet(self, link: Link, token: str) -> None:
        """Shake hands over a link. Raises ProtocolError or RunnerLost."""
        self.link = link
        with contextlib.ExitStack() as undo:
            undo.callback(link.close)
            self.hello = link.hello(token)
            undo.pop_all()

    def lives(self) -> bool:
        """Tell whether the process is there; a phone that cannot be reached may well be at work."""
        try:
            return not self._restarted() and self._app.pid() == self._pid
        except DeviceError:
            return True

    def end(self) -> Ended:
        """Hang up, give the process time to leave, and tell how it ended by what the phone says. Raises Away."""
        memory = self._memory()
        self.link.close()
        try:
            if self._restarted():
                return Ended(None, RESTARTED, memory)
            if self._left():
                return self._app.exit_of(self._pid)._replace(memory=memory)
            self._app.stop()
            return Ended(None, None, memory)
        except DeviceError as error:
            raise _away(error) from error

    def _memory(self) -> SystemMemory | None:
        """Ask between the job's end and good-bye: the model is still in memory, and nothing is timed any more."""
        if not self.link.over or self.link.cut:
            return None
        with contextlib.suppress(DeviceError):
            return self._app.memory_of(self._pid)
        return None

    def _left(self) -> bool:
        deadline = Deadline(self._end_s, self._clock)
        while self._app.pid() == self._pid:
            if deadline.passed():
                return False
            self._clock.sleep(_LOOK_S)
        return True

    def _restarted(self) -> bool:
        now = self._uptime()
        return now is not None and self._uptime_s is not None and now < self._uptime_s

    def _uptime(self) -> float | None:
        said = self._shell.run("cat /proc/uptime").text.split()
        return number(said[0]) if said else None


RESTARTED = ProcessExit(
    kind="restarted",
    detail="the phone was restarted meanwhile",
    signal=None,
    resident_bytes=None,
    evidence="/proc/uptime began anew",
)


def _away(error: DeviceError) -> Away:
    return Away(
        str(error).splitlines()[0],
        hint="The run is kept on the phone: connect it again, and the next profile command collects it.",
    )

"""How app processes come and go: start, kills, crashes, and the traces that each leaves in logs and exit records."""

from __future__ import annotations

from typing import NamedTuple

from tests.phones.memory import MemoryLedger, Process
from tests.phones.model_log import (
    ANR,
    CRASH_NATIVE,
    EXIT_SELF,
    FORCE_STOP,
    LOW_MEMORY,
    SIGNALED,
    USER_REQUESTED,
    Exit,
    ExitHistory,
    LogLine,
    SystemLog,
)
from tests.phones.personas import Persona
from tests.phones.truth import Killed, Truth

SIGKILL, SIGSEGV = 9, 11
SYSTEM_SERVER_PID, LMKD_PID, ZYGOTE_PID, INIT_PID = 1487, 583, 1022, 1
_LMKD_NEW = "reason: min watermark is breached even after kill"


class Ended(NamedTuple):
    """A process that must be ended for real: by a signal, or 0 where it ended by itself."""

    pid: int
    package: str
    signal: int
    why: str


class Processes:
    """The app processes of a phone; those in `waiting` have ended and their real ones must be ended yet."""

    def __init__(self, persona: Persona, memory: MemoryLedger, truth: Truth) -> None:
        self._persona = persona
        self._memory = memory
        self._truth = truth
        self.log = SystemLog()
        self.exits = ExitHistory()
        self.waiting: list[Ended] = []

    def start(self, pid: int, package: str, uid: int, now_ns: int, wall_ns: int) -> Process:
        """Note a started app process."""
        process = self._memory.start(pid, package, uid, now_ns)
        self._truth.note_memory(process)
        self._event(wall_ns, "am_proc_start", f"[0,{pid},{uid},{package},top-activity,{{{package}/.RunnerActivity}}]")
        return process

    def kill_for_memory(self, now_ns: int, wall_ns: int) -> None:
        """Let the low-memory killer do what it must."""
        for process in self._memory.victims():
            self._write_lmkd(process, wall_ns)
            reported = self._persona.memory.low_memory_is_reported
            reason, status = (LOW_MEMORY, 0) if reported else (SIGNALED, SIGKILL)
            self._end(process, Reason(reason, 0, status, None), SIGKILL, "low memory", now_ns, wall_ns)

    def kill(self, pid: int, now_ns: int, wall_ns: int) -> None:
        """Kill a process by a signal from nowhere."""
        self._end_pid(pid, Reason(SIGNALED, 0, SIGKILL, None), SIGKILL, "killed", now_ns, wall_ns)

    def force_stop(self, pid: int, now_ns: int, wall_ns: int) -> None:
        """Stop a process as `am force-stop` does."""
        process = self._memory.processes.get(pid)
        text = f"stop {process.package} due to from pid {SYSTEM_SERVER_PID}" if process else None
        self._event(wall_ns, "am_kill", f"[0,{pid},{process.package if process else ''},0,{text}]")
        self._end_pid(pid, Reason(USER_REQUESTED, FORCE_STOP, 0, text), SIGKILL, "force-stop", now_ns, wall_ns)

    def crash(self, pid: int, now_ns: int, wall_ns: int) -> None:
        """Let an app die of its own native fault."""
        process = self._memory.processes.get(pid)
        name = process.package if process else ""
        text = (
            f"Fatal signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0 in tid {pid} (runner), pid {pid} ({name})"
        )
        self._write(wall_ns, "crash", pid, "F", "libc", text)
        self._event(wall_ns, "am_crash", f"[{pid},0,{name},0,Native crash,Segmentation fault,unknown,0]")
        self._end_pid(pid, Reason(CRASH_NATIVE, 0, SIGSEGV, "crash"), SIGSEGV, "crash", now_ns, wall_ns)

    def stop_answering(self, pid: int, now_ns: int, wall_ns: int) -> None:
        """Let the system kill an app that does not answer input (ANR)."""
        process = self._memory.processes.get(pid)
        name = process.package if process else ""
        text = f"user request after error: Input dispatching timed out ({name}/{name}.RunnerActivity is not responding)"
        self._event(wall_ns, "am_anr", f"[0,{pid},{name},0,Input dispatching timed out]")
        self._write(wall_ns, "main", SYSTEM_SERVER_PID, "E", "ActivityManager", f"ANR in {name}")
        self._end_pid(pid, Reason(ANR, 0, 0, text), SIGKILL, "anr", now_ns, wall_ns)

    def exited(self, pid: int, status: int, now_ns: int, wall_ns: int) -> None:
        """Note a process that ended by itself; one that is gone already is no news."""
        self._end_pid(pid, Reason(EXIT_SELF, 0, status, None), 0, "exit", now_ns, wall_ns)

    def end_all(self) -> None:
        """Let a reboot end everything; nobody writes down why."""
        for process in list(self._memory.processes.values()):
            self._memory.end(process.pid)
            self.waiting.append(Ended(process.pid, process.package, SIGKILL, "reboot"))
        self.log.clear()

    def _end_pid(self, pid: int, reason: Reason, signal: int, why: str, now_ns: int, wall_ns: int) -> None:
        if (process := self._memory.processes.get(pid)) is not None:
            self._end(process, reason, signal, why, now_ns, wall_ns)

    def _end(self, process: Process, reason: Reason, signal: int, why: str, now_ns: int, wall_ns: int) -> None:
        self._memory.end(process.pid)
        self._truth.kills.append(Killed(now_ns, process.pid, why))
        self.exits.add(_exit_of(process, reason, wall_ns))
        self.waiting.append(Ended(process.pid, process.package, signal, why))
        self._event(wall_ns, "am_proc_died", f"[0,{process.pid},{process.package},{process.badness},2]")
        text = f"Process {process.package} (pid {process.pid}) has died: fg  TOP "
        self._write(wall_ns, "system", SYSTEM_SERVER_PID, "I", "ActivityManager", text)
        if signal:
            name = {SIGKILL: "Killed", SIGSEGV: "Segmentation fault"}[signal]
            text = f"Process {process.pid} exited due to signal {signal} ({name})"
            self._write(wall_ns, "main", ZYGOTE_PID, "I", "Zygote", text)

    def _write_lmkd(self, process: Process, wall_ns: int) -> None:
        """Write the killer's own lines; sizes in kB."""
        rss, anonymous, swap = (
            size // 1024 for size in (process.resident_bytes, process.anonymous_bytes, process.swapped_bytes)
        )
        head = f"Kill '{process.package}' ({process.pid}), uid {process.uid}, oom_score_adj {process.badness} to free "
        new = f"{rss}kB rss, {anonymous}kB anon rss, {swap}kB swap, 0kB dmabuf_pss, 0kB dmabuf_rss; {_LMKD_NEW}"
        old = f"{rss}kB rss, {swap}kB swap; {_LMKD_NEW}"
        text = head + (new if self._persona.dialect.lmkd == "new" else old)
        self._write(wall_ns, "main", LMKD_PID, "I", "lowmemorykiller", text)
        self._event(wall_ns, "killinfo", f"[{process.pid},{process.uid},{process.badness},{process.badness},{rss},7]")

    def _event(self, wall_ns: int, tag: str, text: str) -> None:
        self._write(wall_ns, "events", SYSTEM_SERVER_PID, "I", tag, text)

    def _write(self, wall_ns: int, buffer: str, pid: int, level: str, tag: str, text: str) -> None:
        self.log.write(LogLine(buffer, wall_ns, pid, level, tag, text))


class Reason(NamedTuple):
    """Why a process ended, in ApplicationExitInfo's numbers."""

    reason: int
    subreason: int
    status: int
    description: str | None


def _exit_of(process: Process, reason: Reason, wall_ns: int) -> Exit:
    """Build the exit record; pss is 0 unless the system sampled it before, which it rarely did."""
    importance = 100 if process.foreground else 400
    return Exit(
        wall_ns,
        process.pid,
        process.uid,
        process.package,
        reason.reason,
        reason.subreason,
        reason.status,
        importance,
        0,
        process.resident_bytes,
        reason.description,
    )

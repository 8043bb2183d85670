"""Work of a synthetic runner: what loading and calling cost in time and memory under the present heat."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

from tests.phones.memory import MemoryLedger
from tests.phones.model_physics import BUSY_CORES, FULL_SPEED, Physics
from tests.phones.personas import WorkFacts
from tests.phones.truth import Done, Truth

Kind = Literal["load", "call", "canary"]


@dataclass
class Job:
    """Work under way; `file_bytes` and `anonymous_bytes` come in steadily and of them `back_bytes` go at the end."""

    kind: Kind
    pid: int
    component: str
    function: str
    start_ns: int
    end_ns: int
    file_bytes: int = 0
    anonymous_bytes: int = 0
    back_bytes: int = 0
    steady: bool = True
    given: list[int] = field(default_factory=lambda: [0, 0])


class Workbench:
    """Begins and ends work; one job at a time, since one runner drives the phone."""

    def __init__(self, facts: WorkFacts, physics: Physics, memory: MemoryLedger, truth: Truth, seed: int) -> None:
        self._facts = facts
        self._physics = physics
        self._memory = memory
        self._truth = truth
        self._noise = random.Random(f"work:{seed}")
        self._loaded: dict[tuple[int, str], tuple[int, int]] = {}
        self._worked_ns: dict[int, int] = {}
        self.job: Job | None = None

    def load(self, pid: int, component: str, file_bytes: int, parameters: int) -> int:
        """Begin loading and return how long it takes, in ns; bound by storage, so heat does not slow it."""
        facts = self._facts
        steady_ns = facts.load_overhead_ns + file_bytes / facts.load_bytes_per_s * 1e9
        duration_ns = max(1, round(steady_ns * self._noisy(facts.load_noise)))
        kept = round(file_bytes * facts.load_anonymous_share)
        passing = round(file_bytes * facts.load_transient_share)
        self._loaded[pid, component] = (file_bytes, kept)
        job = self._new(Job("load", pid, component, "", self._physics.now_ns, 0))
        job.file_bytes, job.anonymous_bytes, job.back_bytes = file_bytes, kept + passing, passing
        return self._begin(job, duration_ns)

    def unload(self, pid: int, component: str) -> None:
        """Free what a component holds; one that is not loaded holds nothing."""
        file_bytes, kept = self._loaded.pop((pid, component), (0, 0))
        if (process := self._memory.processes.get(pid)) is not None:
            self._memory.grow(process, -file_bytes, -kept)

    def call(self, pid: int, component: str, function: str, parameters: int, output_bytes: int) -> int:
        """Begin a call and return how long it takes, in ns, under the heat that it makes itself."""
        facts = self._facts
        full_ns = facts.call_overhead_ns + parameters * facts.ns_per_parameter + output_bytes * facts.ns_per_output_byte
        work_ns = max(1, round(full_ns * self._noisy(facts.call_noise)))
        job = self._new(Job("call", pid, component, function, self._physics.now_ns, 0, steady=False))
        job.anonymous_bytes = job.back_bytes = round(
            parameters * facts.activation_bytes_per_parameter + output_bytes * facts.activation_bytes_per_output_byte
        )
        return self._begin(job, self.look_ahead(work_ns))

    def canary(self, pid: int, rounds: int) -> int:
        """Begin the small workload and return its fastest round in ns; the job lasts for all rounds."""
        job = self._new(Job("canary", pid, "", "", self._physics.now_ns, 0))
        round_ns = max(1, round(self._facts.canary_round_ns * FULL_SPEED / self._physics.speed()))
        self._begin(job, round_ns * max(1, rounds))
        return round_ns

    def look_ahead(self, work_ns: int) -> int:
        """Return how long `work_ns` of full-speed work lasts from now on, with its own heat and throttling.

        What somebody does to the phone meanwhile is not foreseen; clocks ordered with a moment are.
        """
        twin = self._physics.copy()
        twin.load = "call"
        left = work_ns * FULL_SPEED
        while True:
            speed, tick_ns = twin.speed(), twin.next_tick_ns()
            room = (tick_ns - twin.now_ns) * speed
            if room >= left:
                return twin.now_ns + -(-left // speed) - self._physics.now_ns
            left -= room
            twin.spend(tick_ns)
            twin.tick()

    def busy_ns(self, pid: int) -> int:
        """Return the processor time that a process has used, all cores together."""
        job, worked_ns = self.job, self._worked_ns.get(pid, 0)
        if job is None or job.pid != pid:
            return worked_ns
        return worked_ns + BUSY_CORES[job.kind] * (min(self._physics.now_ns, job.end_ns) - job.start_ns)

    def grow(self) -> None:
        """Give the process what the job has taken in by now."""
        job = self.job
        if job is None or (process := self._memory.processes.get(job.pid)) is None:
            return
        share = 1.0 if not job.steady else (self._physics.now_ns - job.start_ns) / max(1, job.end_ns - job.start_ns)
        wanted = [round(job.file_bytes * share), round(job.anonymous_bytes * share)]
        self._memory.grow(process, wanted[0] - job.given[0], wanted[1] - job.given[1])
        job.given = wanted

    def finish(self) -> None:
        """End the job, if it has not been ended meanwhile, and give back what was only for its while."""
        self._end(cut=False)

    def drop(self, pid: int) -> None:
        """Forget a process that is gone: its job, and what it had loaded."""
        if self.job is not None and self.job.pid == pid:
            self._end(cut=True)
        for key in [key for key in self._loaded if key[0] == pid]:
            del self._loaded[key]

    def _new(self, job: Job) -> Job:
        """Cut a job that was not waited for; the new one takes its place."""
        if self.job is not None:
            self._end(cut=True)
        return job

    def _begin(self, job: Job, duration_ns: int) -> int:
        job.end_ns = job.start_ns + duration_ns
        self.job = job
        self._physics.load = job.kind
        self.grow()
        return duration_ns

    def _end(self, *, cut: bool) -> None:
        job = self.job
        if job is None:
            return
        self._worked_ns[job.pid] = self.busy_ns(job.pid)
        self.job, self._physics.load = None, "idle"
        if (process := self._memory.processes.get(job.pid)) is not None:
            self._memory.grow(process, 0, -min(job.back_bytes, job.given[1]))
        duration_ns = min(self._physics.now_ns, job.end_ns) - job.start_ns
        self._truth.done.append(Done(job.kind, job.component, job.function, job.start_ns, duration_ns, cut))

    def _noisy(self, spread: float) -> float:
        """Return a factor around 1; scatter to the slow side only, as in life."""
        return 1.0 + abs(self._noise.gauss(0.0, spread))

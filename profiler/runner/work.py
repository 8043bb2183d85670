"""One job, from its first load to its stop event."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from profiler.bundle_files import MANIFEST, load_manifest, sha256_of, sync_file
from profiler.clock import Clock
from profiler.errors import ProfilerError
from profiler.journal import Journal
from profiler.plan_rules import check_plan
from profiler.quantities import NS_PER_MS
from profiler.records.event import (
    Artifact,
    Begin,
    Canary,
    Idle,
    IterationDone,
    LoadDone,
    Outcome,
    Phase,
    Rest,
    Stop,
    Waiting,
)
from profiler.records.job import Job
from profiler.records.plan import Port
from profiler.runner import canary
from profiler.runner.engines.engine import Engine, EngineFailure
from profiler.runner.gauges import MemoryGauge, WorkGauge, usable_cores
from profiler.runner.interpreter import BrokenImage, Cancelled, Image, Interpreter, Iteration, Watcher, file_constants
from profiler.runner.patience import NotReady, Patience, wait_untethered
from profiler.runner.readiness import Readiness
from profiler.runner.repetitions import Repetitions
from profiler.runner.tracer import Tracer

_DISTINCT_IMAGES = 8


def refuse(journal: Journal, clock: Clock, reason: str) -> None:
    """End a job that cannot begin. Raises OSError where that cannot be written."""
    memory = MemoryGauge(clock).read()
    journal.append(Stop, outcome="refused", reason=reason, stage=None, component=None, memory=memory)
    journal.close()


class JobWatcher(Watcher):
    """Writes `begin` and `load` events while the interpreter works, and carries the cancel signal."""

    def __init__(self, journal: Journal, memory: MemoryGauge, cancelled: threading.Event) -> None:
        self._journal = journal
        self._memory = memory
        self._cancelled = cancelled
        self.phase: Phase = "load"
        self.iteration: int | None = None
        self.stage: str | None = None
        self.component: str | None = None

    def begin(self, stage: str, component: str | None) -> None:
        """Say where the job is before it goes there."""
        self.stage, self.component = stage, component
        self._journal.append(Begin, phase=self.phase, iteration=self.iteration, stage=stage, component=component)
        if self.phase == "load":
            self._journal.sync()

    def loaded(self, component: str, duration_ns: int) -> None:
        """Say that a component is ready and what the process holds now."""
        self._journal.append(LoadDone, component=component, duration_ns=duration_ns, memory=self._memory.read())

    def check(self) -> None:
        """Stop where the host asked for it."""
        if self._cancelled.is_set():
            raise Cancelled


class Work:
    """A job under way in this process."""

    def __init__(
        self,
        job: Job,
        folder: Path,
        journal: Journal,
        engine: Engine,
        clock: Clock,
        cancelled: threading.Event,
        *,
        locate: Callable[[str], Path] | None = None,
        other_cpu_percent: Callable[[], float | None] | None = None,
    ) -> None:
        self._job = job
        self._folder = folder
        self._locate = locate or folder.joinpath
        self._journal = journal
        self._engine = engine
        self._clock = clock
        self._cancelled = cancelled
        self._tracer = Tracer(journal, job.sampling, clock)
        self._watcher = JobWatcher(journal, self._tracer.memory, cancelled)
        self._canary = canary.Canary(clock)
        self._cool_canary_ns = 0
        self._last_canary_ns: int | None = None
        self._others = other_cpu_percent or WorkGauge().others_percent
        self._last_end_ns: int | None = None
        self._images_kept: set[str] = set()
        self._size = (0, 0)

    def run(self) -> None:
        """Do the whole job; every way it can end is a stop event. Raises OSError where that cannot be written."""
        outcome, reason = self._outcome()
        with contextlib.suppress(OSError):  # where there is no room for the last samples, the end may still find some
            self._tracer.end()
        failed = outcome != "completed"
        self._journal.append(
            Stop,
            outcome=outcome,
            reason=reason,
            stage=self._watcher.stage if failed else None,
            component=self._watcher.component if failed else None,
            memory=self._tracer.memory.read(),
        )
        self._journal.close()

    def _outcome(self) -> tuple[Outcome, str | None]:
        try:
            self._do()
        except Cancelled:
            return "interrupted", "cancelled"
        except NotReady as error:
            return "aborted", str(error)
        except EngineFailure as error:
            self._watcher.component = error.component  # a stage may use several
            return "failed", f"{error.reason}: {error}"
        except BrokenImage as error:
            return "failed", f"broken_image: {error}"
        except MemoryError:
            return "failed", "out_of_memory: the runner could not allocate"
        except ProfilerError as error:
            return "refused", str(error)
        except OSError as error:
            return "aborted", f"storage: {error.strerror or error}, on the device"
        except Exception as error:  # noqa: BLE001 - the process edge: the journal must say that the job ended
            return "failed", f"runner_error: {type(error).__name__}: {error}"
        return "completed", None

    def _do(self) -> None:
        self._journal.append(Idle, memory=self._tracer.memory.read())
        self._cool_canary_ns = self._run_canary("cool", canary.COOL_ROUNDS)
        inputs = self._inputs()
        interpreter = self._interpreter()
        self._tracer.resume()
        interpreter.prepare()
        self._iterate(interpreter, inputs, "cold", 0)
        for number in range(self._job.warmups):
            self._iterate(interpreter, inputs, "warmup", number)
        self._rest()
        self._tracer.look()
        for number in self._repetitions():
            self._iterate(interpreter, inputs, "timed", number)
        self._tracer.look()
        self._run_canary("between", canary.BETWEEN_ROUNDS)
        for number in range(2 * self._job.observer_pairs):
            self._iterate(interpreter, inputs, "observer", number, traced=_traced_in_pair(number))

    def _inputs(self) -> dict[str, Any]:
        path = self._locate(self._job.inputs.path)
        if sha256_of(path) != self._job.inputs.sha256:
            raise ProfilerError(f"{path} is not the input file that the job names")
        tensors = dict(load_file(str(path)))
        for port in self._job.plan.inputs:
            _check_input(path, port, tensors.get(port.name))
        return tensors

    def _interpreter(self) -> Interpreter:
        bundle_folder = self._locate(self._job.bundle)
        bundle = load_manifest(bundle_folder)
        if sha256_of(bundle_folder / MANIFEST) != self._job.bundle_sha256:
            raise ProfilerError(f"{bundle_folder} is not the bundle that the job names")
        self._size = (bundle.recipe.height, bundle.recipe.width)
        check_plan(self._job.plan, bundle.components, file_constants(self._job.plan, bundle_folder))
        return Interpreter(
            self._job.plan, bundle.components, bundle_folder, self._engine, watcher=self._watcher, clock=self._clock
        )

    def _repetitions(self) -> Repetitions:
        job = self._job
        return Repetitions(job.measurement, job.repeats, self._clock, self._readiness(), self._patience())

    def _patience(self) -> Patience:
        return Patience(self._clock, self._watcher.check, lambda reason: self._journal.append(Waiting, reason=reason))

    def _rest(self) -> None:
        """Wait for the cable to be pulled where the job is untethered, then idle, while the gauges are read."""
        patience = self._patience()
        if self._job.untethered:
            wait_untethered(patience, lambda: self._tracer.environment.battery()[1])
        if self._job.rest_s:
            start_ns = self._clock.boot_ns()
            patience.wait(self._job.rest_s, f"a rest of {self._job.rest_s:g} s, as a baseline for energy")
            self._journal.append(Rest, start_boot_ns=start_ns, end_boot_ns=self._clock.boot_ns())

    def _readiness(self) -> Readiness:
        return Readiness(
            self._tracer.environment.temperature_millicelsius,
            self._others,
            lambda: self._canary.run(canary.BETWEEN_ROUNDS),
            cool_canary_ns=self._cool_canary_ns,
            cores=len(usable_cores()),
        )

    def _run_canary(self, when: Literal["cool", "between"], rounds: int) -> int:
        duration_ns = self._canary.run(rounds)
        self._last_canary_ns = self._clock.boot_ns()
        self._journal.append(Canary, when=when, duration_ns=duration_ns)
        return duration_ns

    def _canary_is_due(self) -> bool:
        interval_ns = self._job.sampling.canary_interval_ms * NS_PER_MS
        return self._last_canary_ns is None or self._clock.boot_ns() - self._last_canary_ns >= interval_ns

    def _iterate(
        self, interpreter: Interpreter, inputs: dict[str, Any], phase: Phase, number: int, *, traced: bool = True
    ) -> None:
        self._tracer.resume() if traced else self._tracer.pause()
        self._watcher.phase, self._watcher.iteration = phase, number
        iteration = interpreter.iterate(inputs)
        output = iteration.output
        shown = output.pixels if isinstance(output, Image) else np.ascontiguousarray(output)
        digest = hashlib.sha256(shown.data).hexdigest()
        self._record(iteration, phase, number, traced, digest)
        if isinstance(output, Image):
            self._keep(output, phase, number, digest)
        else:
            _check_finite(output, "output")
        if phase != "observer" and self._canary_is_due():  # pairs differ in their samplers alone
            self._run_canary("between", canary.BETWEEN_ROUNDS)
        self._tracer.flush()
        self._journal.sync()

    def _record(self, iteration: Iteration, phase: Phase, number: int, traced: bool, digest: str) -> None:
        gap_ns = None if self._last_end_ns is None else iteration.start_ns - self._last_end_ns
        self._last_end_ns = iteration.end_ns
        self._journal.append(
            IterationDone,
            phase=phase,
            iteration=number,
            start_boot_ns=iteration.start_ns,
            duration_ns=iteration.end_ns - iteration.start_ns,
            gap_ns=gap_ns,
            stages=iteration.stages,
            image_sha256=digest,
            traced=traced,
        )

    def _keep(self, image: Image, phase: Phase, number: int, digest: str) -> None:
        """Write each distinct image once, so that a run that is not deterministic shows it."""
        height, width, _ = image.pixels.shape
        if (height, width) != self._size:
            raise BrokenImage(f"the image has the shape {[height, width]}, its bundle says {list(self._size)}")
        _check_finite(image.float_image, "image")
        if digest in self._images_kept or len(self._images_kept) == _DISTINCT_IMAGES:
            return
        self._images_kept.add(digest)
        path = self._folder / f"{phase}-{number}.ppm"
        path.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + image.pixels.tobytes())
        sync_file(path)
        self._journal.append(
            Artifact,
            path=path.name,
            sha256=sha256_of(path),
            media="image/x-portable-pixmap",
            phase=phase,
            iteration=number,
        )


def _check_input(path: Path, port: Port, tensor: npt.NDArray[Any] | None) -> None:
    if tensor is None:
        raise ProfilerError(f"{path} has no input {port.name!r}")
    if (tensor.dtype.name, tensor.shape) != (port.dtype, port.shape):
        found = f"{port.name!r} is {tensor.dtype.name} {list(tensor.shape)}"
        raise ProfilerError(f"{path}: {found}, the plan takes {port.dtype} {list(port.shape)}")


def _check_finite(values: npt.NDArray[Any], what: str) -> None:
    if not np.isfinite(values).all():
        raise BrokenImage(f"the {what} has values that are not finite")


def _traced_in_pair(number: int) -> bool:
    """Order the pairs on-off, off-on, … so that a drift does not favour either."""
    return number % 4 in (0, 3)

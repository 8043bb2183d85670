"""Does one step of an export in a process of its own: its memory goes back with it, and its end is not the export's.

    python -m exporters.child

A job comes as one line on standard input, which stays open while the parent lives; lines with what happens go to
standard output.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TextIO

import msgspec

from profiler.bundle_files import written_whole
from profiler.errors import InputError, ProfilerError, first_line
from profiler.records.bundle import Component, Difference, ImageDifference, TaskPlan
from profiler.records.recipe import Recipe
from profiler.records.record import Record, Task
from profiler.records.spec import ModelSpec, TaskDefaults

MADE = "made.json"
_NO_ROOM = "Make room, or name a folder on another disk with --out; components that are done are kept."


class Origin(Record):
    """What is exported; `folder` is the pipeline's, `weights` is empty or `random:SEED`."""

    spec: ModelSpec
    recipe: Recipe
    folder: str
    weights: str


class ComponentJob(Record, tag="component", tag_field="kind"):
    """Make a component in a new folder.

    `identity` stands for weights and toolchain, so that what was made from others is not taken for it.
    """

    origin: Origin
    identity: str
    part: str
    destination: str


class ImagesJob(Record, tag="images", tag_field="kind"):
    """Compare the whole images of a bundle that has everything but its manifest."""

    origin: Origin
    bundle: str
    components: dict[str, Component]
    differences: dict[str, Difference]
    settings: dict[Task, TaskDefaults]
    tasks: dict[Task, TaskPlan]


class MadeComponent(Record):
    """A component below its folder; `difference` is None where it cannot run here."""

    component: Component
    difference: Difference | None


class Told(Record):
    """One line of a child: a stage and how many began before it, what was found, or the error that ended it."""

    stage: str = ""
    done: int = 0
    images: dict[Task, ImageDifference] | None = None
    error: str | None = None
    hint: str | None = None


Job = ComponentJob | ImagesJob


def read_made(folder: Path) -> MadeComponent | None:
    """Return what was made in a folder, or None where nothing whole is there."""
    try:
        return msgspec.json.decode((folder / MADE).read_bytes(), type=MadeComponent)
    except (OSError, msgspec.DecodeError):
        return None


def main() -> int:
    """Do what standard input asks for."""
    job: Job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")  # whatever the locale
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # toolchains print; only our lines go to the parent
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        _do(job, lines)
    except ProfilerError as error:
        _tell(lines, Told(stage=str(error.args[0]), error=type(error).__name__, hint=error.hint))
        return error.exit_code
    except OSError as error:
        told = Told(stage=f"cannot write the bundle: {first_line(error)}", error=InputError.__name__, hint=_NO_ROOM)
        _tell(lines, told)
        return InputError.exit_code
    return 0


def _end_with_the_parent() -> None:
    # Not through a stream, whose lock an interpreter that ends would wait for.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _tell(lines: TextIO, told: Told) -> None:
    lines.write(msgspec.json.encode(told).decode() + "\n")
    lines.flush()


def _do(job: Job, lines: TextIO) -> None:
    _tell(lines, Told(stage="start a process"))
    from exporters.quiet import quiet

    with quiet():
        from exporters import steps
        from exporters.progress import Stages

        opened = steps.open_origin(job.origin)
    stages = Stages(lambda stage, done, total: _tell(lines, Told(stage=stage, done=done + 1)))
    if isinstance(job, ImagesJob):
        _tell(lines, Told(images=steps.compare_images(opened, job, stages)))
        return
    with written_whole(Path(job.destination)) as folder:
        made = steps.make_component(opened.model.parts[job.part], opened.target, folder, opened.recipe, stages)
        (folder / MADE).write_bytes(msgspec.json.encode(made))


if __name__ == "__main__":
    sys.exit(main())

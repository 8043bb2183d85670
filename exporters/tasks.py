"""A task of a bundle: its plan, its default inputs, and the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exporters.default_inputs import Pixels, source_picture, words_of, write_default_inputs
from exporters.parts import Model
from exporters.plans import build_plan
from exporters.schedules import ScheduleTable
from profiler import codec
from profiler.prompts import PLAIN
from profiler.records.bundle import Component, DefaultInputs, TaskPlan
from profiler.records.plan import Plan
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

TOKENIZER = "tokenizer.json"
SCHEDULES = "plans/schedules.json"


@dataclass(frozen=True, kw_only=True)
class PlannedTask:
    """One task, ready to run; `source` is the edit's picture, uint8 [H, W, 3]."""

    settings: TaskDefaults
    source: Pixels | None
    plan: Plan
    defaults: DefaultInputs


@dataclass(frozen=True, kw_only=True)
class Planner:
    """What all tasks of a bundle share."""

    model: Model
    recipe: Recipe
    table: ScheduleTable
    components: Mapping[str, Component]
    pictures: Path
    folder: Path

    def plan(self, task: Task, settings: TaskDefaults) -> PlannedTask:
        """Build a task's plan and write its default inputs."""
        plan = build_plan(self.model, task, settings, self.table, self.components, self.recipe)
        source = source_picture(task, settings, self.pictures, self.model)
        words = words_of(self.folder / TOKENIZER, self.model.prompts.get(task, PLAIN))
        defaults = write_default_inputs(plan, settings, source, words, self.folder)
        return PlannedTask(settings=settings, source=source, plan=plan, defaults=defaults)

    def write(self, planned: PlannedTask) -> TaskPlan:
        """Write a task's plan; the schedules for other step counts are the same for all tasks."""
        path = f"plans/{planned.plan.task}.json"
        (self.folder / "plans").mkdir(exist_ok=True)
        (self.folder / path).write_bytes(codec.encode_pretty(planned.plan))
        # One line: tens of thousands of numbers that nobody reads one below the other.
        (self.folder / SCHEDULES).write_bytes(codec.encode(self.table.record()) + b"\n")
        return TaskPlan(plan=path, schedules=SCHEDULES, defaults=planned.defaults)

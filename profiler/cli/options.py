"""The options that commands share, and the closed sets that can be typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup


class TaskName(StrEnum):
    """What the model is asked to do."""

    generate = "generate"
    edit = "edit"


class ProtocolName(StrEnum):
    """How repetitions follow one another."""

    burst = "burst"
    spaced = "spaced"
    sustained = "sustained"


class LoadPolicyName(StrEnum):
    """When components are in memory."""

    resident = "resident"
    sequential = "sequential"


class BackendName(StrEnum):
    """What an ExecuTorch program hands its work to."""

    xnnpack = "xnnpack"
    coreml = "coreml"
    vulkan = "vulkan"


class PrecisionName(StrEnum):
    """How precise the networks are."""

    fp32 = "fp32"
    fp16 = "fp16"


class SchemeName(StrEnum):
    """How the text encoder's weights are stored."""

    fp32 = "fp32"
    fp16 = "fp16"
    int8 = "int8"
    nf4 = "nf4"


class RangeName(StrEnum):
    """Which values stand for black and white in a foreign graph's image."""

    unit = "0..1"
    signed = "-1..1"
    pixels = "0..255"


class MetricName(StrEnum):
    """What a policy may be told not to require."""

    latency = "latency"
    peak_memory = "peak-memory"
    size = "size"


class OutcomeName(StrEnum):
    """How a run ended."""

    completed = "completed"
    failed = "failed"
    aborted = "aborted"
    interrupted = "interrupted"
    refused = "refused"


class TierChoice(StrEnum):
    """What a policy can say of a run."""

    D4 = "D4"
    D3 = "D3"
    D2 = "D2"
    D1 = "D1"
    none = "none"
    unknown = "unknown"


class OrderName(StrEnum):
    """What a list of runs can be sorted by."""

    time = "time"
    latency = "latency"
    memory = "memory"
    size = "size"
    model = "model"
    tier = "tier"


ONLY = "Which runs"
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]
WHAT, HOW, WHERE = "What is measured", "How it is measured", "Where, and what is printed"
MADE = "How its bundle is made"
FOREIGN = "A graph from elsewhere (with --file)"

Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        envvar="PROFILER_STORE",
        help="Folder of all runs.",
        rich_help_panel=WHERE,
        show_default="your data folder",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line on stdout.", rich_help_panel=WHERE)]
PolicyName = Annotated[
    str, typer.Option("--policy", help="Tier limits: a name, or a TOML file.", rich_help_panel=WHERE)
]
NotRequired = Annotated[
    list[MetricName] | None,
    typer.Option("--not-required", help="Judge without this metric (may be repeated).", rich_help_panel=WHERE),
]

RUNTIMES = ("onnx", "executorch", "coreml")


def known_runtime(text: str) -> str:
    """Refuse the name of a runtime that nobody brings, or that two do."""
    from profiler import plugins
    from profiler.errors import InputError

    try:
        plugins.find(plugins.RUNTIMES, text, RUNTIMES)
    except InputError as error:
        raise typer.BadParameter(" ".join(str(error).split())) from error
    return text


def _name_runtimes(command: Any) -> None:
    """Put every runtime into the help: plug-ins are looked for only when somebody reads it."""
    from profiler import plugins

    for parameter in command.params:
        if parameter.name == "runtime":
            parameter.metavar = f"<{'|'.join([*RUNTIMES, *plugins.plugins(plugins.RUNTIMES)])}>"


class Command(TyperCommand):
    """A command whose help names the runtimes of plug-ins."""

    def format_help(self, *arguments: Any) -> None:
        """Write the help."""
        _name_runtimes(self)
        super().format_help(*arguments)


class Group(TyperGroup):
    """The program, whose help names the runtimes of plug-ins."""

    def format_help(self, *arguments: Any) -> None:
        """Write the help."""
        _name_runtimes(self)
        super().format_help(*arguments)


RuntimeOption = Annotated[
    str | None,
    typer.Option(
        "--runtime",
        parser=known_runtime,
        metavar="NAME",
        help="Format of its graphs.",
        rich_help_panel=MADE,
        show_default="onnx",
    ),
]
BackendOption = Annotated[
    BackendName | None,
    typer.Option(
        "--backend",
        help="What ExecuTorch programs run on; coreml and vulkan are not verified here.",
        rich_help_panel=MADE,
        show_default="xnnpack",
    ),
]
PrecisionOption = Annotated[
    PrecisionName | None,
    typer.Option(
        "--precision",
        help="What its networks compute in.",
        rich_help_panel=MADE,
        show_default="the model's own for the runtime",
    ),
]
SchemeOption = Annotated[
    SchemeName | None,
    typer.Option(
        "--text-encoder",
        help="The text encoder's weights: int8 per channel, or nf4 with a scale per 64.",
        rich_help_panel=MADE,
        show_default="the model's own for the runtime",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="PATTERN",
        help="Text-encoder weights that stay as --precision has them, such as '*layers.0.*' (may be repeated).",
        rich_help_panel=MADE,
    ),
]

WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="random:SEED",
        help="Draw the weights from a seed: full size, for latency, memory and size where they cannot be had.",
        rich_help_panel=MADE,
        show_default="the model's own",
    ),
]


def shapes_of(typed: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read NAME=1,3,512,512."""
    found: dict[str, tuple[int, ...]] = {}
    for text in typed:
        name, _, sizes = text.rpartition("=")
        if not name or not re.fullmatch(r"\d{1,9}(,\d{1,9})*", sizes):
            raise typer.BadParameter(f"{text!r} is no shape; one looks like sample=1,3,512,512.")
        if name in found:
            raise typer.BadParameter(f"{name} is given two shapes.")
        found[name] = tuple(int(size) for size in sizes.split(","))
    return found


def range_of(chosen: StrEnum | None) -> tuple[float, float] | None:
    """Return the values for black and white."""
    if chosen is None:
        return None
    low, high = chosen.value.split("..")
    return float(low), float(high)


def value(chosen: StrEnum | None) -> Any:
    """Return what was chosen as the word itself; None where nothing was."""
    return chosen.value if chosen else None


def values(chosen: Sequence[StrEnum] | None) -> tuple[str, ...]:
    """Return all that was chosen."""
    return tuple(choice.value for choice in chosen or ())


def end_of(text: str) -> datetime:
    """Read a time; a day without one is meant to its end. The calendar's last day ends with the calendar."""
    for shape in DATES:
        try:
            moment = datetime.strptime(text, shape)
        except ValueError:
            continue
        if shape != DATES[0]:
            return moment
        return moment + timedelta(days=1) if moment.date() < date.max else datetime.max
    shapes = ", ".join(map(repr, DATES))
    raise typer.BadParameter(f"{text!r} does not match the formats {shapes}.")


def wall_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970 of a moment in UTC."""
    return int(moment.replace(tzinfo=UTC).timestamp()) * 1_000_000_000

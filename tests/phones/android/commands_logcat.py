"""`logcat -d`: the log buffers, filtered and in the formats that hosts ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.model import DeviceModel
from tests.phones.model_log import LogLine

_LEVELS = "VDIWEFS"
_DEFAULT = frozenset({"main", "system", "crash"})
_ALL = frozenset({"main", "system", "crash", "events", "radio", "kernel"})
_WITH_VALUE = ("-b", "-v", "-t", "-T", "--pid", "-m")


def logcat(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print and end; without -d or -t it would go on for ever, which this phone refuses."""
    options, filters = _parse(words)
    if "-c" in options:
        with model.present():
            model.processes.log.clear()
        return said("")
    if not {"-d", "-t", "-T"} & options.keys():
        return complained("logcat: only -d, -t and -c end by themselves; this phone runs no other", 1)
    buffers = _buffers(options.get("-b"))
    with model.present():
        found = model.processes.log.lines(buffers)
    kept = [line for line in found if _wanted(line, options, filters)]
    if (count := options.get("-t", "")).isdigit():
        kept = kept[-int(count) :]
    return said("\n".join(_headed(kept, options.get("-v", "threadtime"))))


def _parse(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return options by name, repeated ones joined by commas, and filters such as `lowmemorykiller:I`."""
    options: dict[str, str] = {}
    filters: list[str] = []
    left = iter(words)
    for word in left:
        name, joined, value = word.partition("=")
        if name in _WITH_VALUE:
            value = value if joined else next(left, "")
            options[name] = f"{options[name]},{value}" if name in options else value
        elif word == "-s":
            filters.insert(0, "*:S")
        elif word.startswith("-"):
            options[word] = ""
        else:
            filters.append(word)
    return options, filters


def _buffers(names: str | None) -> frozenset[str]:
    chosen = set((names or "").split(",")) - {""}
    return _ALL if "all" in chosen else (_DEFAULT if not chosen or "default" in chosen else frozenset()) | chosen


def _wanted(line: LogLine, options: dict[str, str], filters: Iterable[str]) -> bool:
    if "--pid" in options and str(line.pid) != options["--pid"]:
        return False
    since = options.get("-T") or options.get("-t", "")
    # A moment compares as text: both are written alike, and the log holds no other year.
    if ":" in since and _stamp(line) < since.strip("'\""):
        return False
    least = _least(line.tag, filters)
    return least in _LEVELS[:-1] and _LEVELS.index(line.level) >= _LEVELS.index(least)


def _least(tag: str, filters: Iterable[str]) -> str:
    """Return the lowest level shown of a tag: its own filter's, else that of `*`, else everything."""
    levels = {name: level[:1] or "V" for name, _, level in (each.partition(":") for each in filters)}
    return levels.get(tag, levels.get("*", "V"))


def _headed(lines: Sequence[LogLine], form: str) -> list[str]:
    """List the lines, each buffer's first one below the divider that logcat prints."""
    seen: set[str] = set()
    shown = []
    for line in lines:
        if line.buffer not in seen:
            seen.add(line.buffer)
            shown.append(f"--------- beginning of {line.buffer}")
        shown.append(_shown(line, form))
    return shown


def _shown(line: LogLine, form: str) -> str:
    if form == "brief":
        return f"{line.level}/{line.tag:<8}({line.pid:5d}): {line.text}"
    when = f"{line.wall_ns / 1e9:14.3f}" if "epoch" in form else _stamp(line)
    return f"{when} {line.pid:5d} {line.pid:5d} {line.level} {line.tag:<8}: {line.text}"


def _stamp(line: LogLine) -> str:
    whole = datetime.fromtimestamp(line.wall_ns // 10**9, UTC)
    return f"{whole:%m-%d %H:%M:%S}.{line.wall_ns // 10**6 % 1000:03d}"

"""What outside packages add: entry points, found by name and imported only when asked for."""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from profiler.errors import InputError, ProfilerError, UnknownName, first_line
from profiler.records.record import NAME_PATTERN

FAMILIES, RUNTIMES, ENGINES = (f"ondevice_profiler.{kind}" for kind in ("families", "runtimes", "engines"))
_NAME = re.compile(NAME_PATTERN)
WORDS = {FAMILIES: "model family", RUNTIMES: "runtime", ENGINES: "engine"}


def plugins(group: str) -> dict[str, str]:
    """Return the names that plug-ins bring, and the package of each, without importing any."""
    return {entry.name: _package(entry) for entry in sorted(entry_points(group=group))}


def version_of(group: str, name: str) -> dict[str, str]:
    """Return the package that brings a name, with its version; empty for what no plug-in brings."""
    return {_package(entry): entry.dist.version for entry in entry_points(group=group, name=name) if entry.dist}


def find(group: str, name: str, built_in: Collection[str]) -> EntryPoint | None:
    """Return the plug-in that brings a name, or None where the product has it itself.

    Raises UnknownName where nobody brings it, InputError where two do: which of them is meant would be a guess.
    """
    found = list(entry_points(group=group, name=name))
    if name not in built_in and not found:
        raise UnknownName(WORDS[group], name, {*built_in, *plugins(group)})
    bring = [*(["the product itself"] if name in built_in else []), *map(_package, found)]
    if len(bring) > 1:
        raise InputError(
            f"the {WORDS[group]} {name!r} is brought by {' and '.join(bring)}",
            hint=f"Uninstall {' or '.join(dict.fromkeys(map(_package, found)))}, or have it renamed.",
        )
    for entry in found:
        if not _NAME.fullmatch(name):
            raise broken(entry, "has a name that no record takes: lower-case letters, digits, - and _, a letter first")
        return entry
    return None


def load(entry: EntryPoint) -> Any:
    """Import what a plug-in brings. Raises InputError that names the package, whatever its code raises."""
    try:
        return entry.load()
    except ProfilerError:
        raise
    except Exception as error:  # the code of others
        raise broken(entry, f"cannot be imported: {type(error).__name__}: {first_line(error)}") from error


def broken(entry: EntryPoint, what: str) -> InputError:
    """Say what is wrong with what a package brings."""
    package = _package(entry)
    return InputError(
        f"the {WORDS[entry.group]} {entry.name!r} of the package {package} {what}",
        hint=f"Update or uninstall {package}; nothing else needs it.",
    )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value

"""The error tree: what the caller can do decides the class and the exit code."""

from __future__ import annotations

import re

import pytest

from profiler import errors
from profiler.errors import InputError, MissingExtra, ProfilerError, UnknownName


def _tree() -> list[type[ProfilerError]]:
    found: list[type[ProfilerError]] = [ProfilerError]
    for kind in found:
        found.extend(child for child in kind.__subclasses__() if child.__module__ == errors.__name__)
    return found


def _drawn() -> list[tuple[str, str, int | None]]:
    """Read (name, parent's name, exit code) from the drawing at the top of the module."""
    lines = re.findall(r"^([│├└─ ]*)([A-Z]\w+)\b(?:.*exit (\d))?", errors.__doc__ or "", flags=re.MULTILINE)
    path = ["Exception"]
    drawn: list[tuple[str, str, int | None]] = []
    for indent, name, code in lines:
        if name in dir(errors):
            path[len(indent) // 4 + 1 :] = [name]
            drawn.append((name, path[-2], int(code) if code else None))
    return drawn


def test_the_tree_has_at_most_twelve_classes() -> None:
    assert len(_tree()) <= 12


def test_the_drawing_names_exactly_the_classes_that_exist() -> None:
    assert sorted(name for name, _, _ in _drawn()) == sorted(kind.__name__ for kind in _tree())


@pytest.mark.parametrize(("name", "parent", "exit_code"), _drawn())
def test_each_class_sits_where_it_is_drawn_and_has_the_code_drawn(
    name: str, parent: str, exit_code: int | None
) -> None:
    kind = getattr(errors, name)
    assert kind.__base__.__name__ == parent
    assert exit_code is None or kind.exit_code == exit_code


@pytest.mark.parametrize("kind", _tree(), ids=lambda kind: kind.__name__)
def test_a_class_ends_the_process_as_its_parent_does(kind: type[ProfilerError]) -> None:
    parent = kind.__mro__[1]
    assert parent in (Exception, ProfilerError) or kind.exit_code == parent.exit_code  # type: ignore[attr-defined]


def test_a_hint_stands_on_a_line_of_its_own() -> None:
    assert str(InputError("no such thing", hint="Try another.")) == "no such thing\n  Try another."


def test_an_error_without_hint_is_one_line() -> None:
    assert str(InputError("no such thing")) == "no such thing"


def test_a_misspelt_name_is_answered_with_the_close_ones() -> None:
    message = str(UnknownName("model", "dreamlit", ["dreamlite", "sana-sprint", "nano"]))
    assert message == "unknown model 'dreamlit'\n  Did you mean dreamlite?"


def test_a_name_close_to_nothing_is_answered_with_all_known_ones() -> None:
    assert "Known: dreamlite, nano." in str(UnknownName("model", "zzzz", ["nano", "dreamlite"]))


def test_a_name_among_no_known_ones_says_so() -> None:
    assert "Known: none. See: profile runs" in str(UnknownName("run", "x", [], hint="See: profile runs"))


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    error = MissingExtra("exporting", "export")
    assert "pip install 'ondevice-profiler[export]'" in str(error)
    assert error.exit_code == 2

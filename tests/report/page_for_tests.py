"""A page as a browser takes it in: elements, attributes and text, by the standard library's parser."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

_VOID = {"meta", "img", "br", "link", "input", "hr"}


class Element(NamedTuple):
    """One element: its name, attributes, the names of its ancestors, and all text in it."""

    tag: str
    attributes: dict[str, str]
    ancestors: tuple[str, ...]
    text: list[str]

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


class Page(HTMLParser):
    """All elements of a page, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.unclosed: list[Element] = []
        self.misplaced: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> names an attribute twice"
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(e.tag for e in self.unclosed), [])
        self.elements.append(element)
        if tag not in _VOID:
            self.unclosed.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.unclosed.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.unclosed and self.unclosed[-1].tag == tag:
            self.unclosed.pop()
        else:
            self.misplaced.append(tag)

    def handle_data(self, data: str) -> None:
        for element in self.unclosed:
            element.text.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a name with these attributes."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [e for e in self.elements if e.tag == tag and wanted.items() <= e.attributes.items()]

    def one(self, tag: str, **attributes: str) -> Element:
        """Return the only such element."""
        (element,) = self.all(tag, **attributes)
        return element

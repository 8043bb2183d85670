"""Where a format puts a component's files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporters.runtimes.layout import function_path


@given(st.text(), st.text())
def test_any_names_become_safe_path_segments(part: str, function: str) -> None:
    segments = function_path(part, function, "onnx").split("/")
    assert len(segments) == 3
    assert segments[2].endswith(".onnx")
    for segment in (segments[1], segments[2].removesuffix(".onnx")):
        assert segment
        assert segment.isascii()
        assert not set(segment) & set("./\\: ")

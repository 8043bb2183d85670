from __future__ import annotations

import pytest

from profiler.devices.android.properties import facts_of, read_properties
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def properties() -> dict[str, str]:
    read = read_properties(capture("getprop"))
    assert isinstance(read, dict)
    return read


def test_a_value_may_go_on_over_lines_and_may_be_empty() -> None:
    read = properties()
    assert read["persist.sys.boot.reason.history"] == "reboot,ota,1789990000\nreboot,userrequested,1789980000"
    assert read["ro.empty"] == ""
    assert len(read) == 19


def test_the_facts_of_a_phone_are_taken_from_it() -> None:
    facts = facts_of(properties())
    assert (facts.serial, facts.manufacturer, facts.model, facts.device) == (
        "4A101FDAS00001",
        "Google",
        "Pixel 9",
        "tokay",
    )
    assert (facts.soc, facts.android_version, facts.api_level) == ("Google Tensor G4", "16", 36)
    assert facts.abis == ("arm64-v8a",)
    assert (facts.debuggable, facts.page_size_bytes, facts.reports_low_memory_kills) == (False, 4096, True)
    assert facts.virtual is None


def test_an_older_phone_has_other_names_for_them() -> None:
    facts = facts_of({"ro.boot.serialno": "X1", "ro.soc.model": "unknown", "ro.board.platform": "sm6150"})
    assert (facts.serial, facts.soc, facts.api_level) == ("X1", "sm6150", None)


@pytest.mark.parametrize("name", ["ro.profiler.virtual", "ro.kernel.qemu", "ro.boot.qemu"])
def test_what_is_no_phone_says_so(name: str) -> None:
    assert facts_of({name: "1"}).virtual == name
    assert facts_of({name: "0"}).virtual is None


@pytest.mark.parametrize("text", ["", "getprop: inaccessible or not found\n", "[a]: [never closed\n"])
def test_an_unknown_shape_is_unavailable(text: str) -> None:
    assert isinstance(read_properties(text), Unavailable)

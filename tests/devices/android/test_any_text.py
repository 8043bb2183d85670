"""No parser raises, whatever a phone prints: garbage, torn and changed captures, other line ends and digits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.devices.android.battery import Battery, read_battery, read_power_supply
from profiler.devices.android.batterystats import read_batterystats
from profiler.devices.android.clocks import read_clocks
from profiler.devices.android.energy_meter import read_energy_meter
from profiler.devices.android.exits import read_exit_info
from profiler.devices.android.kill_lines import read_kill_lines
from profiler.devices.android.kill_reason import kill_reason
from profiler.devices.android.launching import Refusal, read_install, read_launch
from profiler.devices.android.memory import read_meminfo, read_process_status, read_system_memory
from profiler.devices.android.properties import facts_of, read_properties
from profiler.devices.android.screen import read_screen
from profiler.devices.android.storage import read_file_systems
from profiler.devices.android.thermal import Thermal, read_thermal_service, read_thermal_zones
from profiler.devices.android.unavailable import Faked, Unavailable
from tests.devices.android.captures_for_tests import capture, names

Reader = Callable[[str], object]


def _facts(text: str) -> object:
    read = read_properties(text)
    return read if isinstance(read, Unavailable) else facts_of(read)


def _reasons(text: str) -> object:
    exits = read_exit_info(text)
    kills = read_kill_lines(text)
    known = () if isinstance(exits, Unavailable) else exits
    return [kill_reason(kill.pid, known, kills) for kill in kills] + [kill_reason(e.pid or 0, known, ()) for e in known]


def _screen(text: str) -> object:
    return read_screen(text, text, text, text)


READERS: dict[str, Reader] = {
    "battery_": read_battery,
    "power_supply": read_power_supply,
    "thermal_": read_thermal_service,
    "thermal_zones": read_thermal_zones,
    "meminfo": read_meminfo,
    "proc_status": read_process_status,
    "proc_meminfo": read_system_memory,
    "exit_info": read_exit_info,
    "logcat_kills": _reasons,
    "lmk_new": read_kill_lines,
    "energy_meter": read_energy_meter,
    "batterystats": read_batterystats,
    "clocks": read_clocks,
    "getprop": _facts,
    "df_": read_file_systems,
    "power_": _screen,
    "window_": _screen,
    "trust_": _screen,
    "am_start": read_launch,
    "": read_install,
}
OWN = sorted({(name, prefix) for prefix in READERS if prefix for name in names(prefix)})
EVERYTHING = [capture(name) for name in names("")]
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _without_raw(answer: object) -> object:
    return answer._replace(raw="") if isinstance(answer, Unavailable | Faked | Refusal) else answer


@pytest.mark.parametrize("prefix", READERS)
@given(text=st.text())
@settings(max_examples=40, deadline=None)
def test_no_text_raises(prefix: str, text: str) -> None:
    READERS[prefix](text)


@given(data=st.data(), text=st.sampled_from(EVERYTHING))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
def test_no_changed_capture_raises_in_any_parser(data: st.DataObject, text: str) -> None:
    at = data.draw(st.integers(0, len(text)))
    to = data.draw(st.integers(at, min(len(text), at + 40)))
    changed = text[:at] + data.draw(st.one_of(st.text(max_size=8), st.sampled_from(INSERTS))) + text[to:]
    for read in READERS.values():
        read(changed)


@given(data=st.data(), name=st.sampled_from(names("battery_")))
@settings(max_examples=100, deadline=None)
def test_whatever_stands_for_a_battery_value_it_is_possible_or_missing(data: st.DataObject, name: str) -> None:
    numbers = st.one_of(st.integers().map(str), st.floats().map(str), st.sampled_from(["0", "-1", "", "N/A", *INSERTS]))
    lines = [f"{line.partition(':')[0]}: {data.draw(numbers)}" for line in capture(name).splitlines()]
    battery = read_battery("\n".join(lines))
    if isinstance(battery, Battery):
        assert battery.level_percent is None or 0 <= battery.level_percent <= 100
        assert battery.voltage_millivolts is None or 2_000 <= battery.voltage_millivolts <= 10_000
        assert battery.temperature_millicelsius is None or -30_000 <= battery.temperature_millicelsius <= 100_000
        assert battery.charge_counter_microamperehours is None or battery.charge_counter_microamperehours > 0
        assert battery.current_raw != 0


@given(value=st.one_of(st.integers().map(str), st.floats().map(str), st.text(max_size=6)), code=st.integers(-3, 20))
@settings(max_examples=100, deadline=None)
def test_whatever_stands_for_a_temperature_it_is_possible_or_dropped(value: str, code: int) -> None:
    line = f"\tTemperature{{mValue={value}, mType={code}, mName=x, mStatus=0}}"
    reading = read_thermal_service(f"HAL Ready: true\nCurrent temperatures from HAL:\n{line}\n")
    if isinstance(reading, Thermal):
        assert all(-40_000 < s.temperature_millicelsius < 150_000 for s in reading.sensors)
        assert bool(reading.sensors) == (reading.no_sensors is None)


INSERTS = [
    "\x00",
    "\u2028",
    "NaN",
    "-",
    "9" * 400,
    "1e999",
    "}{",
    "][",
    "=",
    "\r",
    "{" * 60,
    " " * 300,
    "null",
    "−5",
    "٣",
]


@pytest.mark.parametrize(("name", "prefix"), OWN)
def test_no_capture_that_was_cut_off_raises(name: str, prefix: str) -> None:
    text = capture(name)
    for end in range(0, len(text), 1 + len(text) // 400):
        READERS[prefix](text[:end])


@pytest.mark.parametrize(("name", "prefix"), OWN)
def test_line_ends_do_not_matter(name: str, prefix: str) -> None:
    text = capture(name)
    assert _without_raw(READERS[prefix](text.replace("\n", "\r\n"))) == _without_raw(READERS[prefix](text))


@pytest.mark.parametrize("name", names("battery_") + names("meminfo") + names("df_") + names("proc_status"))
def test_another_scripts_digits_are_digits(name: str) -> None:
    """A phone whose language is Arabic prints some numbers in its own digits."""
    prefix = next(p for p in READERS if p and name.startswith(p))
    lines = [
        line if line.startswith(("Filesystem", "/", "**")) else line.translate(ARABIC)
        for line in capture(name).splitlines(keepends=True)
    ]
    if prefix != "df_":
        assert _without_raw(READERS[prefix]("".join(lines))) == _without_raw(READERS[prefix](capture(name)))
    READERS[prefix](capture(name).translate(ARABIC))


@pytest.mark.parametrize(
    "text", ["9" * 20_000, "a=" * 10_000, "{" * 20_000, "pid " * 5_000, " 1" * 10_000, "\n" * 20_000]
)
def test_long_garbage_is_no_trap(text: str) -> None:
    for read in READERS.values():
        read(text)

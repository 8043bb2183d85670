"""Heat flows downhill, adds up, and ends where the resistances say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.phones.heat import HeatNetwork, Temperatures
from tests.phones.personas import load_persona

FACTS = load_persona("pixel9").heat
NETWORK = HeatNetwork(FACTS, 0.05)
WATTS = st.floats(0.0, 15.0)


def near(one: Temperatures, other: Temperatures, *, within_c: float = 1e-9) -> bool:
    return all(abs(a - b) <= within_c for a, b in zip(one, other, strict=True))


def test_without_power_a_phone_stays_at_ambient() -> None:
    rest = NETWORK.settled(0.0, 0.0, 0.0)
    assert near(rest, Temperatures(*[FACTS.ambient_c] * 3))
    assert near(NETWORK.step(rest, 0.0, 0.0, 0.0), rest)


@given(WATTS, WATTS, WATTS)
def test_steps_end_where_the_network_settles(die_w: float, skin_w: float, battery_w: float) -> None:
    settled = NETWORK.settled(die_w, skin_w, battery_w)
    assert near(NETWORK.step(settled, die_w, skin_w, battery_w), settled)


def test_settled_heat_leaves_as_it_comes() -> None:
    settled = NETWORK.settled(5.0, 1.0, 0.3)
    out_w = (settled.skin - FACTS.ambient_c) / FACTS.skin_to_ambient
    out_w += (settled.battery - FACTS.ambient_c) / FACTS.battery_to_ambient
    assert out_w == pytest.approx(6.3)


def test_warming_is_monotone_and_the_die_is_hottest() -> None:
    network = HeatNetwork(FACTS, 1.0)
    now = network.settled(0.0, 0.0, 0.0)
    for _ in range(4_000):
        later = network.step(now, 6.0, 1.0, 0.0)
        assert all(after >= before for before, after in zip(now, later, strict=True))
        now = later
        assert now.die > now.skin > now.battery
    assert near(now, network.settled(6.0, 1.0, 0.0), within_c=0.1)


def test_two_short_steps_are_one_long_step() -> None:
    start = Temperatures(60.0, 35.0, 30.0)
    long = HeatNetwork(FACTS, 0.1).step(start, 4.0, 1.0, 0.2)
    short = NETWORK.step(NETWORK.step(start, 4.0, 1.0, 0.2), 4.0, 1.0, 0.2)
    assert near(short, long)

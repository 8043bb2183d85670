"""The memory ledger: sizes add up, high water stays, and the killer takes whom it must."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.phones.memory import MemoryLedger
from tests.phones.personas import MemoryFacts, load_persona

MB = 1_000_000
SMALL = MemoryFacts(
    total_bytes=1000 * MB,
    fixed_bytes=200 * MB,
    others_bytes=300 * MB,
    others_floor_bytes=100 * MB,
    watermark_bytes=50 * MB,
    swap_total_bytes=400 * MB,
    swap_share=0.5,
    compression=2.0,
    app_file_bytes=20 * MB,
    app_anonymous_bytes=10 * MB,
    low_memory_is_reported=True,
)


def test_a_fresh_process_holds_what_an_idle_app_holds() -> None:
    process = MemoryLedger(SMALL).start(1, "app", 10001, 0)
    assert (process.file_bytes, process.anonymous_bytes) == (20 * MB, 10 * MB)
    assert process.high_water_bytes == process.resident_bytes == 30 * MB


def test_high_water_stays_when_memory_goes() -> None:
    ledger = MemoryLedger(SMALL)
    process = ledger.start(1, "app", 10001, 0)
    ledger.grow(process, 0, 100 * MB)
    ledger.grow(process, 0, -100 * MB)
    assert (process.resident_bytes, process.high_water_bytes) == (30 * MB, 130 * MB)


def test_cached_apps_are_closed_before_pages_are_compressed() -> None:
    ledger = MemoryLedger(SMALL)
    process = ledger.start(1, "app", 10001, 0)
    ledger.grow(process, 0, 420 * MB)
    assert 100 * MB <= ledger.others_bytes < 300 * MB
    assert process.swapped_bytes == 0
    ledger.grow(process, 0, 250 * MB)
    assert ledger.others_bytes == 100 * MB
    assert process.swapped_bytes > 0


def test_without_swap_nothing_is_swapped() -> None:
    ledger = MemoryLedger(msgspec.structs.replace(SMALL, swap_total_bytes=0))
    process = ledger.start(1, "app", 10001, 0)
    ledger.grow(process, 0, 800 * MB)
    assert process.swapped_bytes == 0


def test_what_is_freed_comes_out_of_resident_pages_first_and_then_out_of_swap() -> None:
    ledger = MemoryLedger(SMALL)
    process = ledger.start(1, "app", 10001, 0)
    ledger.grow(process, 0, 700 * MB)
    held = process.anonymous_bytes + process.swapped_bytes
    assert process.swapped_bytes > 0
    ledger.grow(process, 0, -held)
    assert (process.anonymous_bytes, process.swapped_bytes) == (0, 0)


def test_nobody_is_killed_while_enough_is_free() -> None:
    ledger = MemoryLedger(SMALL)
    ledger.start(1, "app", 10001, 0)
    assert list(ledger.victims()) == []


def test_what_is_not_in_the_foreground_dies_first_and_no_more_than_is_needed() -> None:
    ledger = MemoryLedger(msgspec.structs.replace(SMALL, swap_total_bytes=0))
    shown, hidden, large = (ledger.start(pid, f"app{pid}", 10000 + pid, 0) for pid in (1, 2, 3))
    hidden.foreground = False
    ledger.grow(large, 0, 300 * MB)
    ledger.grow(hidden, 0, 200 * MB)
    ledger.grow(shown, 0, 200 * MB)
    killed = []
    for victim in ledger.victims():
        killed.append(victim.pid)
        ledger.end(victim.pid)
    assert killed == [2]
    ledger.grow(shown, 0, 300 * MB)
    assert next(ledger.victims()).pid == shown.pid


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-300, 300), st.integers(-300, 300)), max_size=40))
def test_sizes_add_up_whatever_happens(changes: list[tuple[int, int, int]]) -> None:
    ledger = MemoryLedger(SMALL)
    processes = [ledger.start(pid, f"app{pid}", 10000 + pid, 0) for pid in range(3)]
    for at, file, anonymous in changes:
        before = [one.high_water_bytes for one in processes]
        ledger.grow(processes[at], file * MB, anonymous * MB)
        for process, high in zip(processes, before, strict=True):
            assert process.high_water_bytes >= max(process.resident_bytes, high)
            assert min(process.file_bytes, process.anonymous_bytes, process.swapped_bytes) >= 0
        assert 0 <= ledger.swapped_bytes <= SMALL.swap_total_bytes
        assert SMALL.others_floor_bytes <= ledger.others_bytes <= SMALL.others_bytes
        held = sum(one.resident_bytes for one in processes) + round(ledger.swapped_bytes / 2.0)
        assert held + ledger.others_bytes + SMALL.fixed_bytes + ledger.available_bytes() == SMALL.total_bytes


def test_a_four_gigabyte_phone_holds_less_than_a_twelve_gigabyte_one() -> None:
    free = [MemoryLedger(load_persona(name).memory).available_bytes() for name in ("low-ram-4gb", "pixel9")]
    assert free[0] < 1_300 * MB < free[1]

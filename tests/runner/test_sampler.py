from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from profiler.runner.sampler import Sampler


class Source:
    """Counts its readings and lets a test wait for one."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._came = threading.Semaphore(0)

    def read(self) -> int:
        number = next(self._numbers)
        self._came.release()
        return number

    def wait_for(self, readings: int) -> None:
        for _ in range(readings):
            assert self._came.acquire(timeout=10)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def sampler(source: Source) -> Iterator[Sampler[int]]:
    sampler = Sampler(source.read, 0.001)
    yield sampler
    sampler.end()


def test_nothing_is_read_before_it_is_resumed(sampler: Sampler[int]) -> None:
    assert sampler.take() == ()


def test_samples_come_in_the_order_they_were_read(sampler: Sampler[int], source: Source) -> None:
    sampler.resume()
    source.wait_for(5)
    sampler.end()
    taken = sampler.take()
    assert len(taken) >= 5
    assert taken == tuple(range(len(taken)))


def test_what_was_taken_is_not_given_again(sampler: Sampler[int], source: Source) -> None:
    sampler.resume()
    source.wait_for(3)
    first = sampler.take()
    source.wait_for(3)
    sampler.end()
    second = sampler.take()
    assert set(first) & set(second) == set()
    assert sampler.take() == ()


def test_a_paused_sampler_goes_on_where_it_is_resumed(sampler: Sampler[int], source: Source) -> None:
    sampler.resume()
    source.wait_for(1)
    sampler.pause()
    sampler.resume()
    source.wait_for(3)


def test_a_gauge_without_a_reading_gives_no_samples() -> None:
    asked = threading.Semaphore(0)

    def nothing() -> int | None:
        asked.release()
        return None

    sampler: Sampler[int] = Sampler(nothing, 0.001)
    sampler.resume()
    for _ in range(3):
        assert asked.acquire(timeout=10)
    sampler.end()
    assert sampler.take() == ()


def test_a_sampler_that_never_ran_ends_too() -> None:
    before = threading.active_count()
    sampler = Sampler(lambda: 1, 0.001)
    sampler.end()
    assert threading.active_count() == before

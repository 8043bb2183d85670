"""Hold `profiler.stats` against series whose truth is known: `python -m benchmarks.truth`.

Prints how often intervals cover the true median, and how often slowdowns, slow starts, outliers and coarse clocks are
found or falsely raised, each with the 95 % interval that its number of trials leaves. Four minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import get_args

import numpy as np
from rich.console import Console
from scipy import stats as scipy_stats

from benchmarks.series import CONTINUOUS, NARROW, Change, Noise, Rows, change, noise, ticked, true_median
from benchmarks.truth_report import LONG, Duration, Rate, Report, print_report, verdicts
from benchmarks.verdicts import exit_code, load_now, load_since
from profiler import codec
from profiler.stats import (
    Interval,
    Trend,
    outliers,
    ratio_of_medians,
    resolution,
    steady_from,
    summarise,
    trend,
)
from profiler.stats.interval import median_interval

TRIALS = 20_000
SEED = 7
SIZES = (3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 50)
STARTS = {
    "first +30 %": [0.3],
    "two +30, +15 %": [0.3, 0.15],
    "five +10 %": [0.1] * 5,
    "five +10 … +2 %": [0.1, 0.08, 0.06, 0.04, 0.02],
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print, and return 0 where every criterion is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help="series for each rate that a criterion is about")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    report = measure(options.trials)
    print(codec.encode(report).decode()) if options.json else print_report(report, Console())
    return exit_code(report.verdicts)


def measure(trials: int) -> Report:
    """Simulate everything; rates that no criterion is about get a twentieth of the trials."""
    before, random, found = load_now(), np.random.default_rng(SEED), list[Rate]()
    few = max(1, trials // 20)
    with Console(stderr=True).status("simulating") as status:
        for part in (
            coverage(trials, random),
            bootstrap_coverage(few, random),
            ratio_coverage(max(1, few // 3), random),
            slowdowns(trials, random),
            other_trends(few, random),
            slow_starts(trials // 8, few, random),
            outlier_rates(few * 4, random),
            clock_rates(few * 4, random),
        ):
            for rate in part:
                found.append(rate)
                status.update(f"{rate.what}: {rate.series}, n = {rate.n}")
        durations = tuple(_durations(random))
    return Report(
        load_average=load_since(before),
        rates=tuple(found),
        durations=durations,
        verdicts=tuple(verdicts(found, durations)),
    )


def coverage(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask how often `summarise`'s interval holds the true median."""
    for n in SIZES:
        for kind in CONTINUOUS:
            rows, truths = noise(kind, trials, n, random), np.full(trials, true_median(kind))
            yield _rate("coverage", kind, n, _covered(_median_intervals(rows), truths))
        rows, truths = ticked(trials, n, random)
        yield _rate("coverage", "1 ms ticks", n, _covered(_median_intervals(rows), truths))
        rows, truths = noise("AR(1) 0.3", trials // 10, n, random), np.ones(trials // 10)
        yield _rate("coverage", "AR(1) 0.3", n, _covered(_median_intervals(rows), truths))


def bootstrap_coverage(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask the same of scipy's bootstrap intervals, which `summarise` does not use."""
    for n in SIZES[3:]:
        rows = noise("wide log-normal", trials, n, random)
        for method in ("percentile", "basic", "BCa"):
            found = scipy_stats.bootstrap(
                (rows,), np.median, axis=1, n_resamples=999, batch=100, method=method, rng=random
            ).confidence_interval
            pairs = zip(np.ravel(found.low).tolist(), np.ravel(found.high).tolist(), strict=True)
            yield _rate("coverage of bootstraps, wide log-normal", method, n, _covered(list(pairs), np.ones(trials)))


def ratio_coverage(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask how often `ratio_of_medians`' interval holds the true ratio, with n samples on each side."""
    for n in (3, 5, 7, 10, 20):
        above, below = (noise("wide log-normal", trials, n, random).tolist() for _ in range(2))
        found = [ratio_of_medians(*sides).ci95 for sides in zip(above, below, strict=True)]
        yield _rate("coverage of a ratio of medians", "wide log-normal", n, _covered(found, np.ones(trials)))


def slowdowns(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask what the criterion is about: slowdowns of 10 % missed in 30 samples, and false alarms from 30 on."""
    for kind in NARROW:
        for n in (30, 60):
            steady = _trends(kind, "none", trials * 3 // 5, n, random)
            yield _rate("false slowdown", kind, n, [found.slower for found in steady])
            yield _rate("false speed-up", kind, n, [found.faster for found in steady])
        steps, drifts = _trends(kind, "step", trials // 4, 30, random), _trends(kind, "drift", trials, 30, random)
        yield _rate("missed slowdown, step", kind, 30, [not found.slower for found in steps])
        yield _rate("missed slowdown, drift", kind, 30, [not found.slower for found in drifts])


def other_trends(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask what `trend` makes of other lengths and changes, and of neighbours that resemble each other."""
    for goes in get_args(Change):
        for kind in ("normal", "AR(1) 0.3"):
            for n in (5, 10, 20, 30, 60, 300):
                found = _trends(kind, goes, trials, n, random)
                yield _rate(f"called slower, {kind}", goes, n, [one.slower for one in found])
    for n in (20, 30, 60):
        rows = noise("normal", trials, n, random) * np.where(np.arange(n) < n // 2, 1.0, 1.1)
        places = [trend(row).change_at for row in rows.tolist()]
        yield _rate("change placed within 2", "step", n, [at is not None and abs(at - n // 2) <= 2 for at in places])


def slow_starts(trials: int, few: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask how often `steady_from` cuts steady series, and how often it sees a slow start."""
    for kind in get_args(Noise):
        for n in (8, 10, 20, 30, 60):
            rows = noise(kind, trials, n, random)
            yield _rate("false slow start", kind, n, [steady_from(row) > 0 for row in rows.tolist()])
    for name, start in STARTS.items():
        for n in (10, 20, 30, 60):
            rows = noise("log-normal", few, n, random)
            rows[:, : len(start)] *= 1 + np.array(start)
            yield _rate("slow start found", name, n, [steady_from(row) > 0 for row in rows.tolist()])


def outlier_rates(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask how many samples and series of clean noise `outliers` flags, and how many gross outliers it misses."""
    for n in (5, 8, 10, 20, 30, 60):
        for kind in ("normal", "wide log-normal"):
            flagged = [len(outliers(row)) for row in noise(kind, trials, n, random).tolist()]
            yield Rate(what="clean samples flagged", series=kind, n=n, count=sum(flagged), trials=trials * n)
            yield _rate("clean series with a flag", kind, n, [count > 0 for count in flagged])
        rows = noise("log-normal", trials, n, random)
        rows[:, n // 2] *= 3
        yield _rate("gross outlier missed", "log-normal", n, [n // 2 not in outliers(row) for row in rows.tolist()])


def clock_rates(trials: int, random: np.random.Generator) -> Iterator[Rate]:
    """Ask how often `resolution` finds ticks of 1 ms around 50 ms, and takes ns for ticks."""
    for n in (5, 10, 20, 50):
        for name, spread in (("3 %", 0.03), ("20 %", 0.2)):
            rows = ticked(trials, n, random, spread)[0] * 1e6
            yield _rate("1 ms ticks missed", f"spread {name}", n, [resolution(row) != 1e6 for row in rows.tolist()])
        rows = np.round(50e6 * noise("log-normal", trials, n, random))
        yield _rate("ns taken for ticks", "log-normal", n, [resolution(row) is not None for row in rows.tolist()])


def _median_intervals(rows: Rows) -> list[Interval | None]:
    return [median_interval(row)[0] for row in rows]


def _covered(intervals: Sequence[Interval | None], truths: Rows) -> list[bool]:
    pairs = zip(intervals, truths.tolist(), strict=True)
    return [interval is not None and interval[0] <= truth <= interval[1] for interval, truth in pairs]


def _trends(kind: Noise, goes: Change, trials: int, n: int, random: np.random.Generator) -> list[Trend]:
    rows = noise(kind, trials, n, random) * change(goes, trials, n, random)
    return [trend(row) for row in rows.tolist()]


def _rate(what: str, series: str, n: int, hits: Iterable[object]) -> Rate:
    outcomes = [bool(hit) for hit in hits]
    return Rate(what=what, series=series, n=n, count=sum(outcomes), trials=len(outcomes))


def _durations(random: np.random.Generator) -> Iterator[Duration]:
    functions: dict[str, Callable[[list[float]], object]] = {
        "summarise": summarise,
        "trend": trend,
        "steady_from": steady_from,
        "ratio_of_medians": lambda samples: ratio_of_medians(samples, samples),
    }
    for n in (20, LONG):
        samples = noise("log-normal", 1, n, random)[0].tolist()
        for name, function in functions.items():
            start = time.perf_counter()
            function(samples)
            yield Duration(function=name, n=n, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())

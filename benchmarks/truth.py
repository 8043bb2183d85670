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
from rich.table import Table
from scipy import stats as scipy_stats

from benchmarks.series import Change, Noise, Rows, change, noise, ticked, true_median
from benchmarks.verdicts import Load, Verdict, exit_code, judge, judge_interval, load_now, load_since, print_verdicts
from profiler import codec
from profiler.records.record import Record
from profiler.stats import (
    Interval,
    Trend,
    outliers,
    ratio_of_medians,
    reachable_coverage,
    resolution,
    steady_from,
    summarise,
    trend,
)
from profiler.stats.interval import LEAST_FOR_CONFIDENCE, median_interval

TRIALS = 20_000
SEED = 7
SIZES = (3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 50)
CONTINUOUS: tuple[Noise, ...] = ("normal", "log-normal", "wide log-normal", "outliers")
INDEPENDENT: tuple[Noise, ...] = ("normal", "log-normal", "outliers")
STARTS = {
    "first +30 %": [0.3],
    "two +30, +15 %": [0.3, 0.15],
    "five +10 %": [0.1] * 5,
    "five +10 … +2 %": [0.1, 0.08, 0.06, 0.04, 0.02],
}
LONG = 10_000


class Rate(Record):
    """How often something happened in simulated series of n samples."""

    what: str
    series: str
    n: int
    count: int
    trials: int

    @property
    def interval(self) -> Interval:
        """Return Wilson's 95 % interval of the share (Journal of the American Statistical Association 22, 1927)."""
        found = scipy_stats.binomtest(self.count, self.trials).proportion_ci(0.95, method="wilson")
        return float(found.low), float(found.high)


class Duration(Record):
    """What a function takes on n samples, scipy loaded."""

    function: str
    n: int
    seconds: float


class Report(Record):
    """The whole result, as `--json` prints it."""

    benchmark: str = "truth"
    load_average: Load
    rates: tuple[Rate, ...]
    durations: tuple[Duration, ...]
    verdicts: tuple[Verdict, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print, and return 0 where every criterion is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help="series for each rate that a criterion is about")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    report = measure(options.trials)
    print(codec.encode(report).decode()) if options.json else _print(report, Console())
    return exit_code(report.verdicts)


def measure(trials: int) -> Report:
    """Simulate everything; rates that no criterion is about get a twentieth of the trials."""
    before, random, found = load_now(), np.random.default_rng(SEED), list[Rate]()
    few = max(1, trials // 20)
    with Console(stderr=True).status("simulating") as status:
        for part in (
            coverage(trials, random),
            bootstrap_coverage(few, random),
            ratio_coverage(max(1, few // 5), random),
            slowdowns(trials, random),
            other_trends(few, random),
            slow_starts(trials // 4, few, random),
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
    for kind in INDEPENDENT:
        for n in (30, 60):
            steady = _trends(kind, "none", trials // 2, n, random)
            yield _rate("false slowdown", kind, n, [found.slower for found in steady])
            yield _rate("false speed-up", kind, n, [found.faster for found in steady])
        for goes in ("step", "drift"):
            found = _trends(kind, goes, trials // 2, 30, random)
            yield _rate(f"missed slowdown, {goes}", kind, 30, [not one.slower for one in found])


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


def verdicts(rates: Sequence[Rate], durations: Sequence[Duration]) -> Iterator[Verdict]:
    """Hold the rates against the criteria; each criterion about several series is about the worst of them."""
    enough = [rate for rate in rates if rate.what == "coverage" and rate.n >= LEAST_FOR_CONFIDENCE]
    yield _at_most("interval, n ≥ 6: coverage away from 95 %", 1, map(_off, _of(enough, CONTINUOUS)))
    fewer = [rate for rate in rates if rate.what == "coverage" and rate.n < LEAST_FOR_CONFIDENCE]
    yield _at_most("interval, n < 6: coverage away from the reachable", 1, map(_off, _of(fewer, CONTINUOUS)))
    yield _at_most("interval, n ≥ 6, 1 ms ticks: not covered", 6, map(_not, _of(enough, ["1 ms ticks"])))
    for name in ("step", "drift"):
        missed = [rate for rate in rates if rate.what == f"missed slowdown, {name}"]
        yield _at_most(f"10 % slowdown at 3 % noise, n = 30, {name}: missed", 1, (rate.interval for rate in missed))
    for name in ("slowdown", "speed-up"):
        false = [rate for rate in rates if rate.what == f"false {name}"]
        yield _at_most(f"steady series, n ≥ 30: called a {name}", 1, [_pooled(false).interval])
    starts = [rate for rate in rates if rate.what == "false slow start"]
    yield _at_most("steady series, n ≥ 8: called a slow start", 2, [_pooled(_of(starts, CONTINUOUS[:3])).interval])
    for what, limit in (("gross outlier missed", 1), ("ns taken for ticks", 1)):
        yield _at_most(f"{what}, n = 20", limit, (rate.interval for rate in rates if (rate.what, rate.n) == (what, 20)))
    ticks = [rate for rate in rates if (rate.what, rate.series, rate.n) == ("1 ms ticks missed", "spread 3 %", 20)]
    yield _at_most("1 ms ticks missed at 50 ms ± 3 %, n = 20", 1, (rate.interval for rate in ticks))
    first = [rate for rate in rates if (rate.what, rate.series, rate.n) == ("slow start found", "first +30 %", 20)]
    yield _at_most("first of 20 slower by 30 %: missed", 1, map(_not, first))
    for duration in durations:
        if duration.n == LONG:
            yield judge(f"{duration.function}, {LONG} samples", "s", duration.seconds, 1.0)


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


def _of(rates: Iterable[Rate], series: Sequence[str]) -> list[Rate]:
    return [rate for rate in rates if rate.series in series]


def _pooled(rates: Sequence[Rate]) -> Rate:
    counts = (sum(rate.count for rate in rates), sum(rate.trials for rate in rates))
    return Rate(what=rates[0].what, series="all", n=0, count=counts[0], trials=counts[1])


def _off(rate: Rate) -> Interval:
    """Return between what the coverage's distance from 95 %, or what fewer samples can reach, lies."""
    (low, high), aim = rate.interval, min(0.95, reachable_coverage(rate.n))
    near, far = sorted((abs(low - aim), abs(high - aim)))
    return (0.0 if low <= aim <= high else near, far)


def _not(rate: Rate) -> Interval:
    low, high = rate.interval
    return 1 - high, 1 - low


def _at_most(what: str, limit_percent: float, intervals: Iterable[Interval]) -> Verdict:
    """Hold the worst of several shares against a limit: the one whose interval reaches farthest."""
    low, high = max(intervals, key=lambda interval: interval[1])
    return judge_interval(f"{what}, at most", "%", (100 * low, 100 * high), limit_percent, resolved=True)


def _print(report: Report, console: Console) -> None:
    for what in dict.fromkeys(rate.what for rate in report.rates):
        console.print(_table(what, [rate for rate in report.rates if rate.what == what]), "")
    for duration in report.durations:
        console.print(f"{duration.function}, {duration.n} samples: {duration.seconds * 1e3:.1f} ms")
    print_verdicts(report.verdicts, report.load_average, console)


def _table(what: str, rates: Sequence[Rate]) -> Table:
    series = list(dict.fromkeys(rate.series for rate in rates))
    table = Table("n", *series, title=f"{what}, %", title_justify="left", box=None)
    cells = {(rate.series, rate.n): _cell(rate) for rate in rates}
    for n in sorted({rate.n for rate in rates}):
        table.add_row(str(n), *(cells.get((name, n), "") for name in series))
    return table


def _cell(rate: Rate) -> str:
    low, high = rate.interval
    return f"{100 * rate.count / rate.trials:.1f} ±{50 * (high - low):.1f}"


if __name__ == "__main__":
    sys.exit(main())

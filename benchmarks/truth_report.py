"""What the benchmark against known truth says: rates, the criteria they are held against, and both as text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from scipy import stats as scipy_stats

from benchmarks.series import CLEAN, CONTINUOUS
from benchmarks.verdicts import Load, Verdict, judge, judge_interval, print_verdicts
from profiler.records.record import Record
from profiler.stats import Interval, reachable_coverage
from profiler.stats.interval import LEAST_FOR_CONFIDENCE

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


def print_report(report: Report, console: Console) -> None:
    for what in dict.fromkeys(rate.what for rate in report.rates):
        console.print(_table(what, [rate for rate in report.rates if rate.what == what]), "")
    for duration in report.durations:
        console.print(f"{duration.function}, {duration.n} samples: {duration.seconds * 1e3:.1f} ms")
    print_verdicts(report.verdicts, report.load_average, console)


def verdicts(rates: Sequence[Rate], durations: Sequence[Duration]) -> Iterator[Verdict]:
    """Hold the rates against the criteria; one about several series holds for the worst, or all together if steady."""
    enough, ticks = range(LEAST_FOR_CONFIDENCE, LONG), ["1 ms ticks"]
    away = map(_away, _about(rates, "coverage", enough, CONTINUOUS))
    yield _at_most("interval, n ≥ 6: coverage away from 95 %", 1, away)
    for n in (3, 4, 5):
        few = _pooled(_about(rates, "coverage", [n], CONTINUOUS))
        yield _at_most(f"interval, n = {n}: coverage away from the reachable", 1, [_away(few)])
    unheld = map(_not, _about(rates, "coverage", enough, ticks))
    yield _at_most("interval, n ≥ 6, 1 ms ticks: not covered", 6, unheld)
    for name in ("step", "drift"):
        missed = _about(rates, f"missed slowdown, {name}")
        yield _at_most(f"10 % slowdown at 3 % noise, n = 30, {name}: missed", 1, map(_interval, missed))
    for name in ("slowdown", "speed-up"):
        false = _pooled(_about(rates, f"false {name}"))
        yield _at_most(f"steady series, n ≥ 30: called a {name}", 1, [false.interval])
    starts = _pooled(_about(rates, "false slow start", series=CLEAN))
    yield _at_most("steady series, n ≥ 8: called a slow start", 2, [starts.interval])
    first = _about(rates, "slow start found", [20], ["first +30 %"])
    yield _at_most("first of 20 slower by 30 %: missed", 1, map(_not, first))
    for what in ("gross outlier missed", "ns taken for ticks"):
        yield _at_most(f"{what}, n = 20", 1, map(_interval, _about(rates, what, [20])))
    unseen = _about(rates, "1 ms ticks missed", [20], ["spread 3 %"])
    yield _at_most("1 ms ticks missed at 50 ms ± 3 %, n = 20", 1, map(_interval, unseen))
    for duration in durations:
        if duration.n == LONG:
            yield judge(f"{duration.function}, {LONG} samples", "s", duration.seconds, 1.0)


def _about(
    rates: Iterable[Rate], what: str, sizes: Container[int] | None = None, series: Sequence[str] | None = None
) -> list[Rate]:
    return [
        rate
        for rate in rates
        if rate.what == what and (sizes is None or rate.n in sizes) and (series is None or rate.series in series)
    ]


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


def _pooled(rates: Sequence[Rate]) -> Rate:
    counts = (sum(rate.count for rate in rates), sum(rate.trials for rate in rates))
    return Rate(what=rates[0].what, series="all", n=rates[0].n, count=counts[0], trials=counts[1])


def _away(rate: Rate) -> Interval:
    """Return between what the coverage's distance from 95 %, or what fewer samples can reach, lies."""
    (low, high), aim = rate.interval, min(0.95, reachable_coverage(rate.n))
    near, far = sorted((abs(low - aim), abs(high - aim)))
    return (0.0 if low <= aim <= high else near, far)


def _interval(rate: Rate) -> Interval:
    return rate.interval


def _not(rate: Rate) -> Interval:
    low, high = rate.interval
    return 1 - high, 1 - low


def _at_most(what: str, limit_percent: float, intervals: Iterable[Interval]) -> Verdict:
    """Hold the worst of several shares against a limit: the one whose interval reaches farthest."""
    low, high = max(intervals, key=lambda interval: interval[1])
    return judge_interval(f"{what}, at most", "%", (100 * low, 100 * high), limit_percent, resolved=True)

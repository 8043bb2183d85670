"""The benchmark against known truth: its series are what they say, and its verdicts follow from its rates."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from benchmarks.series import Change, change, noise, ticked, true_median
from benchmarks.truth import main, measure
from benchmarks.truth_report import Duration, Rate, verdicts

STEPS: tuple[Change, ...] = ("step", "late step")
_FOUND = ("coverage of", "slow start found", "change placed", "called slower")


@pytest.fixture(scope="module")
def rates() -> list[Rate]:
    """What a few trials ask, with the answers that perfect statistics would give to very many."""
    return [msgspec.structs.replace(rate, count=_perfect(rate), trials=10**6) for rate in measure(20).rates]


def _perfect(rate: Rate) -> int:
    if rate.what == "coverage":
        return round(10**6 * min(0.95, 1 - 2 * 0.5**rate.n))
    return 10**6 if rate.what.startswith(_FOUND) else 0


def _outcomes(rates: list[Rate], seconds: float = 0.1) -> dict[str, str]:
    durations = [Duration(function="trend", n=10_000, seconds=seconds), Duration(function="trend", n=20, seconds=5.0)]
    return {verdict.what: verdict.outcome for verdict in verdicts(rates, durations)}


def test_perfect_statistics_meet_every_criterion(rates: list[Rate]) -> None:
    assert set(_outcomes(rates).values()) == {"met"}


@pytest.mark.parametrize(
    ("what", "series", "n", "share", "criterion"),
    [
        ("coverage", "outliers", 7, 0.93, "interval, n ≥ 6"),
        ("coverage", "normal", 50, 0.97, "interval, n ≥ 6"),
        ("coverage", "normal", 3, 0.8, "interval, n = 3"),
        ("coverage", "1 ms ticks", 30, 0.9, "interval, n ≥ 6, 1 ms ticks"),
        ("missed slowdown, drift", "normal", 30, 0.02, "10 % slowdown at 3 % noise, n = 30, drift"),
        ("false slowdown", "outliers", 60, 0.2, "steady series, n ≥ 30: called a slowdown"),
        ("false speed-up", "normal", 30, 0.2, "steady series, n ≥ 30: called a speed-up"),
        ("false slow start", "normal", 8, 0.5, "steady series, n ≥ 8"),
        ("slow start found", "first +30 %", 20, 0.9, "first of 20 slower"),
        ("gross outlier missed", "log-normal", 20, 0.1, "gross outlier"),
        ("1 ms ticks missed", "spread 3 %", 20, 0.1, "1 ms ticks missed"),
        ("ns taken for ticks", "log-normal", 20, 0.1, "ns taken"),
    ],
)
def test_one_bad_rate_misses_its_criterion_and_no_other(
    rates: list[Rate], what: str, series: str, n: int, share: float, criterion: str
) -> None:
    spoilt = [
        msgspec.structs.replace(rate, count=round(share * rate.trials))
        if (rate.what, rate.series, rate.n) == (what, series, n)
        else rate
        for rate in rates
    ]
    missed = [name for name, outcome in _outcomes(spoilt).items() if outcome == "missed"]
    assert len(missed) == 1
    assert missed[0].startswith(criterion)


def test_only_a_long_run_may_not_take_a_second(rates: list[Rate]) -> None:
    missed = [name for name, outcome in _outcomes(rates, seconds=1.5).items() if outcome == "missed"]
    assert missed == ["trend, 10000 samples"]


def test_a_rate_from_few_trials_resolves_nothing() -> None:
    low, high = Rate(what="coverage", series="normal", n=6, count=19, trials=20).interval
    assert low == pytest.approx(0.764, abs=0.001)
    assert high == pytest.approx(0.991, abs=0.001)


def test_noise_is_what_its_name_says() -> None:
    random = np.random.default_rng(1)
    for kind in ("normal", "log-normal", "wide log-normal", "outliers", "AR(1) 0.3"):
        rows = noise(kind, 2000, 50, random)
        assert np.median(rows) == pytest.approx(true_median(kind), abs=0.002)
    neighbours = noise("AR(1) 0.3", 2000, 50, random)
    assert np.corrcoef(neighbours[:, :-1].ravel(), neighbours[:, 1:].ravel())[0, 1] == pytest.approx(0.3, abs=0.02)
    assert neighbours.std() == pytest.approx(0.03, rel=0.02)
    assert (noise("outliers", 2000, 50, random) > 2).mean() == pytest.approx(0.02, abs=0.002)


def test_changes_end_a_tenth_up_and_begin_in_their_third() -> None:
    random = np.random.default_rng(1)
    assert (change("none", 5, 30, random) == 1).all()
    assert change("drift", 1, 11, random)[0].tolist() == pytest.approx([1 + 0.01 * place for place in range(11)])
    assert change("throttle", 1, 300, random)[0, -1] == pytest.approx(1.098, abs=0.001)
    middle, late = (np.argmax(change(kind, 2000, 30, random) > 1, axis=1) for kind in STEPS)
    assert (middle.min(), middle.max(), late.min(), late.max()) == (10, 20, 20, 27)


def test_a_coarse_clock_reads_whole_milliseconds() -> None:
    rows, medians = ticked(1000, 40, np.random.default_rng(1))
    assert (rows == np.round(rows)).all()
    assert ((medians >= 50) & (medians < 51)).all()
    assert np.mean(np.mean(rows, axis=1) - medians) == pytest.approx(0.02, abs=0.05)


def test_the_report_is_one_line_of_json_and_few_trials_do_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--trials", "20", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["benchmark"]) == (1, "truth")
    assert {rate["what"] for rate in report["rates"]} >= {"coverage", "false slowdown", "slow start found"}
    assert any(verdict["outcome"] == "unresolved" for verdict in report["verdicts"])


def test_the_tables_name_series_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--trials", "20"])
    printed = capsys.readouterr().out
    assert "coverage, %" in printed
    assert "wide log-normal" in printed
    assert "summarise, 10000 samples" in printed

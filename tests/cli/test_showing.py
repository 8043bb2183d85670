from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from profiler import codec
from profiler.catalog import policy
from profiler.cli import main
from profiler.cli.showing import runs_table
from profiler.clock import FakeClock
from profiler.quantities import NS_PER_S
from profiler.records.job import Measurement
from profiler.records.run import ImageFile, Run
from profiler.report.listing import line
from profiler.store import RUN_FILE, SESSION_FILE, Store
from tests.cli.conftest import Measured
from tests.messages_for_tests import make_journal
from tests.runs_for_tests import make_run, make_samples, make_settings
from tests.sessions_for_tests import add_process, make_launch, make_session, without_images

GOOD = without_images(make_journal())


def add_run(store: Store, day: int, **fields: object) -> Run:
    wall_ns = (1_700_000_000 + day * 86_400) * NS_PER_S
    session = store.new_session(FakeClock(wall_ns=wall_ns))
    run = make_run(run_id=session.run_id, started_wall_ns=wall_ns, **fields)
    with store.building_run(session) as building:
        (building / RUN_FILE).write_bytes(codec.encode_pretty(run))
    store.close(session)
    return run


def rewrite(store: Store, run: Run, run_id: str | None = None) -> None:
    """Put another record into the place of a run's own."""
    (store.folder(run_id or run.run_id) / RUN_FILE).write_bytes(codec.encode_pretty(run))


def test_runs_in_json_are_one_object_a_line_oldest_first(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [add_run(store, day).run_id for day in (1, 0, 2)]
    assert main(["runs", "--json", "--store", str(store.root)]) == 0
    printed = capsys.readouterr()
    assert [json.loads(line)["run_id"] for line in printed.out.splitlines()] == sorted(ids)
    assert printed.err == ""


def test_runs_are_a_table_with_ids_that_can_be_typed_again(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [add_run(store, day, model="m" * 80) for day in range(2)]
    assert main(["runs", "--store", str(store.root)]) == 0
    printed = capsys.readouterr().out
    assert all(run.run_id in printed for run in runs)


@pytest.mark.parametrize(("room", "kept"), [(170, 14), (100, 9), (60, 5)])
def test_in_a_narrow_terminal_whole_columns_go_and_no_line_is_broken(
    store: Store, capsys: pytest.CaptureFixture[str], room: int, kept: int
) -> None:
    add_run(store, 0)
    lines = [line(store.load(run_id), policy("moi-bench")) for run_id in store.run_ids()]
    table = runs_table(lines, room)
    assert len(table.columns) == kept
    assert {"run", "model", "median", "tier"} <= {str(column.header) for column in table.columns}
    Console(width=room).print(table)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_names_of_others_are_shown_as_they_are(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(store, 0, model="[/x]:cat:")
    assert main(["runs", "--store", str(store.root)]) == 0
    assert "[/x]:cat:" in "".join(capsys.readouterr().out.split())


def test_an_empty_store_says_how_to_make_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "[/none]"
    assert main(["runs", "--store", str(root)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "make one: profile --device local --model nano" in " ".join(printed.err.split())
    assert not root.exists()


@pytest.mark.parametrize("data", [b"", b"{}", b"{broken", b'{"schema_version":99}', b"\xff"])
def test_a_record_that_cannot_be_read_is_named_and_left_out(
    store: Store, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    good, broken = add_run(store, 0), add_run(store, 1)
    (store.folder(broken.run_id) / RUN_FILE).write_bytes(data)
    assert main(["runs", "--json", "--store", str(store.root)]) == 0
    printed = capsys.readouterr()
    assert [json.loads(line)["run_id"] for line in printed.out.splitlines()] == [good.run_id]
    assert broken.run_id in "".join(printed.err.split())


def test_runs_collect_what_a_killed_host_left(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    session = make_session(store, settings=make_settings(cold_starts=2))
    add_process(session, make_launch(), GOOD)
    session.release()
    assert main(["runs", "--json", "--store", str(store.root)]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["outcome"] == "interrupted"
    assert f"collected run {session.run_id}" in printed.err


def test_a_session_that_cannot_be_collected_is_told_of_with_its_place(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    session = make_session(store)
    session.write(SESSION_FILE, b'{"[/x]":1}')
    session.release()
    assert main(["runs", "--store", str(store.root)]) == 0
    said = "".join(capsys.readouterr().err.split())
    assert f"{store.root}/set-aside/{session.run_id}" in said


def test_show_prints_the_run_that_was_measured(measured: Measured, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "last", "--json", "--store", str(measured.store)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(measured.ended.stdout)


def test_show_takes_the_start_of_an_id(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = add_run(store, 0)
    assert main(["show", run.run_id[:10], "--store", str(store.root)]) == 0
    assert run.run_id in capsys.readouterr().out


def test_show_of_an_unknown_or_ambiguous_run_ends_with_2(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [add_run(store, day) for day in range(2)]
    assert main(["show", "1999", "--store", str(store.root)]) == 2
    assert runs[0].run_id in capsys.readouterr().err
    assert main(["show", "2023", "--store", str(store.root)]) == 2
    assert "is the start of 2 runs" in capsys.readouterr().err


def test_show_of_a_broken_record_names_the_file(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = add_run(store, 0)
    (store.folder(run.run_id) / RUN_FILE).write_bytes(b"{")
    assert main(["show", "last", "--store", str(store.root)]) == 2
    assert RUN_FILE in capsys.readouterr().err


def test_a_tier_is_judged_without_a_metric_that_is_not_required(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(store, 0, iterations=())
    tiers = []
    for extra in ([], ["--not-required", "latency"]):
        assert main(["show", "last", "--json", "--store", str(store.root), *extra]) == 0
        tiers.append(json.loads(capsys.readouterr().out)["tier"])
    assert (tiers[0]["tier"], tiers[0]["missing"]) == ("unknown", ["latency"])
    assert (tiers[1]["tier"], tiers[1]["missing"]) == ("D4", [])


def test_a_policy_may_be_a_file(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(store, 0)
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\ntitle = "Mine"\nsource = "me"\n[[tiers]]\ntier = "D1"\nlimits = []\n')
    assert main(["show", "last", "--json", "--store", str(store.root), "--policy", str(path)]) == 0
    tier = json.loads(capsys.readouterr().out)["tier"]
    assert (tier["policy"], tier["tier"]) == ("mine", "D1")
    assert main(["show", "last", "--store", str(store.root), "--policy", str(tmp_path / "none.toml")]) == 2


# Filters and order.


@pytest.fixture
def mixed(store: Store) -> Store:
    """Four runs: of two models, two tasks, two tiers, on four days."""
    add_run(store, 0, model="a", iterations=make_samples((300_000_000,) * 6))
    add_run(store, 1, model="b", iterations=make_samples((200_000_000,) * 6), task="edit")
    add_run(store, 2, model="a", iterations=())
    add_run(
        store,
        3,
        model="b",
        iterations=make_samples((100_000_000,) * 6),
        measurement=Measurement(kind="spaced", gap_s=2),
    )
    return store


def days(printed: str) -> list[int]:
    """Return the days on which the runs printed were made, as `add_run` counts them."""
    starts = [json.loads(line)["run_id"][:8] for line in printed.splitlines()]
    return [int(start) - 20231114 for start in starts]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], [0, 1, 2, 3]),
        (["--model", "a"], [0, 2]),
        (["--model", "a", "--model", "b", "--task", "edit"], [1]),
        (["--tier", "unknown"], [2]),
        (["--protocol", "spaced"], [3]),
        (["--outcome", "failed"], []),
        (["--device", "local", "--since", "2023-11-16"], [2, 3]),
        (["--until", "2023-11-15"], [0, 1]),
        (["--since", "2023-11-15T00:00", "--until", "2023-11-16T12:00"], [1]),
        (["--until", "2023-11-16T00:00"], [0, 1]),
        (["--until", "9999-12-31"], [0, 1, 2, 3]),
        (["--until", "0001-01-01"], []),
        (["--sort", "latency"], [3, 1, 0, 2]),
        (["--sort", "latency", "--reverse"], [0, 1, 3, 2]),
        (["--sort", "model", "--limit", "2"], [0, 2]),
        (["--reverse", "--limit", "1"], [3]),
        (["--limit", "1"], [3]),
    ],
)
def test_runs_are_filtered_and_sorted(
    mixed: Store, capsys: pytest.CaptureFixture[str], arguments: list[str], found: list[int]
) -> None:
    assert main(["runs", "--json", "--store", str(mixed.root), *arguments]) == 0
    assert days(capsys.readouterr().out) == found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "nan"], "Did you mean nano"),
        (["--device", "locla"], "Did you mean local"),
        (["--task", "paint"], "--task"),
        (["--tier", "D5"], "--tier"),
        (["--outcome", "lost"], "--outcome"),
        (["--protocol", "slow"], "--protocol"),
        (["--since", "yesterday"], "--since"),
        (["--tier", "D5"], "for '--tier': 'D5' is not one of"),
        (["--until", "2023-13-01"], "for '--until': '2023-13-01' does not match the formats '%Y-%m-%d'"),
        (["--sort", "beauty"], "--sort"),
        (["--limit", "0"], "--limit"),
    ],
)
def test_a_filter_that_nothing_can_meet_is_the_users_to_fix(
    mixed: Store, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["runs", "--store", str(mixed.root), *arguments]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


def test_what_was_left_out_is_counted_beside_the_list(mixed: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--store", str(mixed.root), "--model", "b", "--limit", "1"]) == 0
    printed = capsys.readouterr()
    assert "2 of 4 runs left out by the filters" in printed.err
    assert "1 more not listed: --limit 1" in printed.err
    assert len(printed.out.splitlines()) == 2


def test_a_model_of_the_registry_may_have_no_runs_yet(mixed: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--store", str(mixed.root), "--model", "nano"]) == 0
    assert "4 of 4 runs left out by the filters" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_record_that_cannot_be_summed_up_is_left_out_and_named(
    store: Store, capsys: pytest.CaptureFixture[str], as_json: list[str]
) -> None:
    good, spaced, huge = (add_run(store, day) for day in range(3))
    rewrite(store, replace(spaced, measurement=Measurement(kind="spaced")))
    rewrite(store, replace(huge, bundle=replace(huge.bundle, size_bytes=10**400)))
    assert main(["runs", "--store", str(store.root), *as_json]) == 0
    printed = capsys.readouterr()
    assert good.run_id in printed.out
    assert "".join(printed.err.split()).count("cannotbesummedup") == 2
    for run in (spaced, huge):
        assert run.run_id not in printed.out
        assert str(store.folder(run.run_id) / RUN_FILE) in "".join(printed.err.split())


def test_a_path_in_a_record_steers_no_terminal(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(store, 0, images=(ImageFile(path="a\x1b[31m.png", sha256="0" * 64, role="output"),))
    assert main(["show", "last", "--store", str(store.root)]) == 0
    assert "/a�[31m.png" in capsys.readouterr().out

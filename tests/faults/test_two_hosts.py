"""Several hosts on one store at once, and clocks that somebody sets: every run is there once, in good order."""

from __future__ import annotations

import json
from pathlib import Path

from profiler.clock import FakeClock, RealClock
from profiler.quantities import NS_PER_S
from profiler.session import measure
from profiler.store import Store
from tests.cli.conftest import LEAST
from tests.faults.faulty_runner import Fault, JumpingClock
from tests.faults.hosts import Faulty, check_nothing_left, start_profile
from tests.small_bundle import make_order

DAY_NS = 86_400 * NS_PER_S


def test_two_hosts_and_a_reader_on_one_store_keep_out_of_each_others_way(slow_bundle: Path, store: Store) -> None:
    arguments = ["--model", str(slow_bundle), "--store", str(store.root), *LEAST, "--cold-starts", "2", "--json"]
    hosts = [start_profile(arguments) for _ in range(2)]
    listings = []
    while any(host.poll() is None for host in hosts):
        reader = start_profile(["runs", "--json", "--store", str(store.root)])
        listings.append(reader.communicate(timeout=60))
        assert reader.returncode == 0
    printed = [host.communicate(timeout=60) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], printed
    runs = {json.loads(out)["run_id"]: json.loads(out)["outcome"] for out, _ in printed}
    assert (sorted(runs), set(runs.values())) == (store.run_ids(), {"completed"})
    assert not any(b"collected run" in said or b"set aside" in said for _, said in (*listings, *printed))
    check_nothing_left(store.root)


def test_ids_stay_unique_while_the_clock_is_set_to_and_fro(store: Store) -> None:
    clock, ids = FakeClock(), []
    for step_ns in (0, DAY_NS, -DAY_NS, 0, -DAY_NS, DAY_NS):
        clock.set_wall(clock.wall_ns() + step_ns)
        session = store.new_session(clock)
        ids.append(session.run_id)
        store.close(session)
    assert len(set(ids)) == len(ids)


def test_a_clock_that_is_set_during_a_run_changes_neither_order_nor_durations(small_bundle: Path, store: Store) -> None:
    device = Faulty(Fault("clock"))("local", RealClock())
    run = measure(make_order(small_bundle, repeats=4), device, store, JumpingClock(), lambda state: None)
    assert run.outcome == "completed"
    assert [(sample.phase, sample.iteration) for sample in run.iterations] == [
        ("cold", 0),
        *(("timed", number) for number in range(4)),
    ]
    starts = [sample.start_boot_ns for sample in run.iterations]
    assert starts == sorted(starts)
    assert all(0 < sample.duration_ns < DAY_NS / 2 for sample in run.iterations)
    assert all(sample.gap_ns is None or 0 <= sample.gap_ns < DAY_NS / 2 for sample in run.iterations)
    assert run.processes[0].launch_ns is not None
    assert 0 < run.processes[0].launch_ns < DAY_NS / 2
    assert run.ended_wall_ns >= run.started_wall_ns
    assert store.find("last") == run.run_id
    check_nothing_left(store.root)

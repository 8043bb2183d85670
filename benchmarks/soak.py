"""Kill hosts and runners at random, and count what is lost: `python -m benchmarks.soak [--sessions N] [--seed N]`.

Ends with 1 where anything was lost, doubled, left unreadable or left behind. Takes about three seconds a session.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.verdicts import Load, Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler import codec
from profiler.cli.places import tidy
from profiler.clock import Deadline, RealClock
from profiler.errors import ProfilerError
from profiler.journal import JOURNAL_FILE
from profiler.records.record import Record
from profiler.store import Store
from tests.small_bundle import build_small_bundle
from tests.victims import MOMENTS, Victim, check_whole, left_over, runners_over

_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_LONGEST_WAIT_S = 0.3
# A runner whose host was killed notices within seconds (on_disconnect).
_GRACE_S = 10.0


class Blow(NamedTuple):
    """What is done to one session: whom a signal hits, and when."""

    target: str
    signal: signal.Signals
    moment: str
    wait_s: float

    @property
    def name(self) -> str:
        """Return who was hit with what."""
        return self.target if self.target == "nobody" else f"{self.target}, {self.signal.name}"


class Case(Record):
    """How often one kind of blow ended in which way."""

    blow: str
    sessions: int
    exits: dict[str, int]


class Report(Record):
    """The whole result, as `--json` prints it."""

    benchmark: str = "soak"
    seed: int
    sessions: int
    seconds: float
    load_average: Load
    launched: int
    runs: int
    images: int
    outcomes: dict[str, int]
    cases: tuple[Case, ...]
    verdicts: tuple[Verdict, ...]


class Watch:
    """Notes from outside which sessions launched a runner, and how many images their journals held."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.images: dict[str, int] = {}

    def look(self) -> None:
        """Look at the sessions that are open now."""
        for note in self._root.glob("sessions/*/launch-0.json"):
            if not note.parent.name.startswith("."):
                self.images.setdefault(note.parent.name, 0)

    def count_images(self) -> None:
        """Count the images of the sessions that are open now."""
        self.look()
        for run_id in self.images:
            journals = self._root.glob(f"sessions/{run_id}/device/*/{JOURNAL_FILE}")
            self.images[run_id] = max(self.images[run_id], sum(map(_images_in, journals)))


def _images_in(journal: Path) -> int:
    try:
        whole = journal.read_bytes().rpartition(b"\n")[0]
    except OSError:
        return 0  # collected while we looked
    return sum(b'"event":"iteration"' in line for line in whole.split(b"\n"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, print, and return 0 where nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--sessions", type=int, default=200, help="how many hosts are started")
    parser.add_argument("--seed", type=int, default=20_261_130, help="what decides who is killed, and when")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    report = soak(options.sessions, options.seed)
    print(codec.encode(report).decode()) if options.json else _print(report, Console())
    return exit_code(report.verdicts)


def soak(sessions: int, seed: int) -> Report:
    """Run so many sessions, hit nearly all of them, and hold the store against what was seen from outside."""
    before, start, chance = load_now(), time.monotonic(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        bundle = build_small_bundle(Path(folder, "bundle"), slow=8)  # half of the time goes into images
        store = Store(Path(folder, "store"))
        watch, exits, bugs, done = Watch(store.root), Counter[tuple[str, str]](), 0, 0
        while done < sessions:
            blows = [_blow(chance) for _ in range(min(2 if chance.random() < 0.1 else 1, sessions - done))]
            ends = _strike(blows, bundle, store, watch)
            done += len(blows)
            for blow, (code, said) in zip(blows, ends, strict=True):
                exits[blow.name, str(code)] += 1
                bugs += code == 4 or _broke_in_main(said)
            if chance.random() < 0.5:  # else the next session collects
                _tidy(store)
        _tidy(store)
        return _report(store, watch, exits, bugs, seed, sessions, time.monotonic() - start, load_since(before))


def _broke_in_main(said: str) -> bool:
    """Tell a traceback of ours from Python's own, of a Ctrl-C while it still loads the first modules."""
    return re.search(r'cli/__init__\.py", line \d+, in _?main\n', said) is not None


def _blow(chance: random.Random) -> Blow:
    (target,) = chance.choices(("host", "runner", "both", "nobody"), (45, 35, 10, 10))
    return Blow(target, chance.choice(_SIGNALS), chance.choice(list(MOMENTS)), chance.uniform(0, _LONGEST_WAIT_S))


def _strike(blows: Sequence[Blow], bundle: Path, store: Store, watch: Watch) -> list[tuple[int, str]]:
    """Start a host for each blow, at once, and deal it."""
    victims = [Victim(bundle, store.root) for _ in blows]
    for blow, victim in zip(blows, victims, strict=True):
        if blow.target != "nobody":
            victim.wait_until(MOMENTS[blow.moment], blow.wait_s, watch.look)
        if blow.target in ("runner", "both"):
            _signal_runners(store.root, blow.signal)
        if blow.target in ("host", "both"):
            victim.signal(blow.signal)
        watch.count_images()
    ends = []
    for victim in victims:
        victim.wait_until(lambda root: False, 0.0, watch.look)
        ends.append(victim.end())
    watch.count_images()
    return ends


def _signal_runners(root: Path, number: signal.Signals) -> None:
    for runner in runners_over(root):
        try:
            runner.send_signal(number)
        except psutil.NoSuchProcess:
            pass  # it left by itself meanwhile


def _tidy(store: Store) -> None:
    """Do what every command does first."""
    for _ in tidy(store, RealClock()):
        pass


def _report(
    store: Store,
    watch: Watch,
    exits: Counter[tuple[str, str]],
    bugs: int,
    seed: int,
    sessions: int,
    seconds: float,
    load: Load,
) -> Report:
    ids = store.run_ids()
    folders = Counter(path.name for path in store.root.glob("runs/*/*"))
    runs = {run_id: run for run_id in ids if (run := _read(store, run_id)) is not None}
    short = [run_id for run_id, seen in watch.images.items() if run_id in runs and _images(runs[run_id]) < seen]
    processes, ports = _leaked(store.root)
    counts = {
        "sessions lost": len(watch.images.keys() - folders.keys()),
        "runs that no launch was seen of": len(runs.keys() - watch.images.keys()),
        "runs doubled": sum(count - 1 for count in folders.values()),
        "runs unreadable": len(folders) - len(runs),
        "runs with fewer images than their journals had": len(short),
        "processes leaked": processes,
        "ports leaked": ports,
        "files leaked": len(left_over(store.root)),
        "hosts that ended with a bug": bugs,
    }
    return Report(
        seed=seed,
        sessions=sessions,
        seconds=seconds,
        load_average=load,
        launched=len(watch.images),
        runs=len(runs),
        images=sum(map(_images, runs.values())),
        outcomes=dict(Counter(str(getattr(run, "outcome", None)) for run in runs.values())),
        cases=_cases(exits),
        verdicts=tuple(judge(what, "", count, 0) for what, count in counts.items()),
    )


def _read(store: Store, run_id: str) -> object | None:
    """Read a run with all that belongs to it; None where it is not whole."""
    try:
        check_whole(store, run_id)
        return store.load(run_id)
    except (ProfilerError, AssertionError):
        return None


def _images(run: object) -> int:
    return len(getattr(run, "iterations", ()))


def _leaked(root: Path) -> tuple[int, int]:
    limit, clock = Deadline(_GRACE_S, RealClock()), RealClock()
    while (runners := list(runners_over(root))) and not limit.passed():
        clock.sleep(0.1)
    ports = [port for runner in runners for port in runner.net_connections() if port.status == psutil.CONN_LISTEN]
    return len(runners), len(ports)


def _cases(exits: Counter[tuple[str, str]]) -> tuple[Case, ...]:
    names = sorted({name for name, _ in exits})
    by_name = {name: {code: count for (other, code), count in sorted(exits.items()) if other == name} for name in names}
    return tuple(Case(blow=name, sessions=sum(codes.values()), exits=codes) for name, codes in by_name.items())


def _print(report: Report, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("who was hit", "sessions", "exit codes"):
        table.add_column(column)
    for case in report.cases:
        codes = ", ".join(f"{code} × {count}" for code, count in case.exits.items())
        table.add_row(case.blow, str(case.sessions), codes)
    console.print(table)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(report.outcomes.items()))
    console.print(
        f"{report.sessions} sessions of seed {report.seed} in {report.seconds:.0f} s; {report.launched} launched a "
        f"runner; {report.runs} runs ({outcomes}) with {report.images} images",
        soft_wrap=True,
    )
    print_verdicts(report.verdicts, report.load_average, console)


if __name__ == "__main__":
    sys.exit(main())

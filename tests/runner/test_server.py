from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from profiler import codec
from profiler.bundle_files import sha256_of
from profiler.clock import Deadline, FakeClock, RealClock
from profiler.devices.link import Link, connect
from profiler.errors import ProtocolError
from profiler.journal import JOURNAL_FILE, read_journal
from profiler.records.event import IterationDone, Stop
from profiler.records.job import Job, OnDisconnect
from profiler.records.message import MAX_LINE_BYTES, PROTOCOL_VERSION, TOKEN_FILE, HostHello
from profiler.runner.office import Office
from profiler.runner.server import serve
from profiler.runner.work import Work
from tests.runner.fake_engine import FakeEngine
from tests.small_bundle import SIDE, make_small_job

TOKEN = "the-token"


class RunnerInside:
    """A runner on threads of this process, whose decoder waits until it is let go."""

    def __init__(self, storage: Path) -> None:
        (storage / TOKEN_FILE).write_text(TOKEN)
        self.storage = storage
        self.left: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.decoding, self.go_on = threading.Event(), threading.Event()
        self.office = Office(storage, {"onnxruntime": "1"}, FakeClock(), leave=self.left.put)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._threads = [
            threading.Thread(
                target=serve, args=(self.listener, self.office), kwargs={"idle_timeout_s": 0.2}, daemon=True
            ),
            threading.Thread(target=self._work, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def link(self) -> Link:
        limit = Deadline(20, RealClock())  # a test that fails must not wait for ever
        link = connect(self.port, lambda: not limit.passed())
        link.hello(TOKEN)
        return link

    def stop_event(self) -> Stop:
        self._threads[1].join(timeout=20)
        *_, stop = read_journal(self.storage / JOURNAL_FILE)
        assert isinstance(stop, Stop)
        return stop

    def end(self) -> None:
        self.go_on.set()
        self.office.cancelled.set()
        self.office.released.set()
        for thread in self._threads:
            thread.join(timeout=20)
            assert not thread.is_alive()
        self.office.close()
        self.listener.close()

    def _work(self) -> None:
        while not self.office.taken.wait(0.02):
            if self.office.released.is_set():
                return
        job, journal = self.office.work()
        engine = FakeEngine(FakeClock(), answers={"decoder": self._decode})
        Work(job, self.storage, journal, engine, self.office.clock, self.office.cancelled).run()

    def _decode(self, feeds: Mapping[str, Any]) -> list[Any]:
        self.decoding.set()
        assert self.go_on.wait(20)
        return [np.zeros((1, 3, SIDE, SIDE), np.float32)]


class RawHost:
    """A host that says whatever a test wants."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._lines = self._socket.makefile("rb")

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hears(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer

    def hears_something(self) -> bool:
        try:
            return self._lines.readline() != b""
        except ConnectionResetError:
            return False

    def hears_nothing_more(self) -> bool:
        try:
            return self._lines.read() == b""
        except ConnectionResetError:  # closed while some of what was sent lay unread
            return True

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[RunnerInside]:
    runner = RunnerInside(tmp_path)
    yield runner
    runner.end()


@pytest.fixture
def job(small_bundle: Path, tmp_path: Path) -> Job:
    return make_small_job(small_bundle, tmp_path, repeats=1)


@pytest.fixture
def host(runner: RunnerInside) -> Iterator[RawHost]:
    host = RawHost(runner.port)
    yield host
    host.close()


def hello(**fields: Any) -> bytes:
    message = HostHello(protocol_version=PROTOCOL_VERSION, host_version="0.1.0", token=TOKEN)
    return codec.encode(replace(message, **fields)) + b"\n"


def running_timers() -> list[threading.Timer]:
    """Return the timers that are neither over nor called off; one called off ends its thread a moment later."""
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    return [timer for timer in timers if not timer.finished.is_set()]


def test_a_hello_with_the_token_is_answered_with_what_the_runner_is(host: RawHost) -> None:
    host.say(hello())
    answer = host.hears()
    assert (answer["reply"], answer["protocol_version"], answer["platform"]) == ("hello", PROTOCOL_VERSION, "python")
    assert answer["engines"] == {"onnxruntime": "1"}
    assert answer["virtual"] is False


@pytest.mark.parametrize("token", ["", "another", TOKEN + "x", "tökén"])
def test_a_wrong_token_is_refused_and_hung_up_on(host: RawHost, token: str) -> None:
    host.say(hello(token=token))
    assert host.hears()["code"] == "token"
    assert host.hears_nothing_more()


def test_another_protocol_version_is_refused_with_both_versions(host: RawHost) -> None:
    host.say(hello(protocol_version=99))
    answer = host.hears()
    assert answer["code"] == "protocol_version"
    assert f"the runner speaks {PROTOCOL_VERSION}, the host 99" in answer["reason"]
    assert host.hears_nothing_more()


def test_a_host_that_does_not_greet_is_refused(host: RawHost) -> None:
    host.say(b'{"request":"cancel"}\n')
    assert host.hears()["reason"] == "the first line must be hello"


def test_a_second_hello_is_refused_and_the_conversation_goes_on(host: RawHost) -> None:
    host.say(hello() + hello() + b'{"request":"inspect","paths":[]}\n')
    assert host.hears()["reply"] == "hello"
    assert host.hears()["reason"] == "hello comes once"
    assert host.hears()["reply"] == "inspection"


@pytest.mark.parametrize("greeted", [True, False])
@pytest.mark.parametrize(
    "line",
    [
        b'{"request":"bye","request":"cancel"}\n',
        b"{broken\n",
        b'{"request":"dance"}\n',
        b'{"request":"cancel","why":1}\n',
        b"\xff\xfe\n",
        b"\n",
        b"[]\n",
    ],
)
def test_a_line_that_is_no_request_is_refused_and_hung_up_on(host: RawHost, line: bytes, greeted: bool) -> None:
    if greeted:
        host.say(hello())
        assert host.hears()["reply"] == "hello"
    host.say(line)
    assert host.hears()["code"] == "request"
    assert host.hears_nothing_more()


def test_a_line_longer_than_the_protocol_allows_is_refused(host: RawHost) -> None:
    host.say(hello())
    assert host.hears()["reply"] == "hello"
    host.say(b"x" * (MAX_LINE_BYTES + 1))
    answer = host.hears()
    assert answer["code"] == "request"
    assert str(MAX_LINE_BYTES) in answer["reason"]


def test_a_runner_in_a_container_finds_the_devices_absolute_paths_below_its_root(tmp_path: Path) -> None:
    office = Office(tmp_path / "storage", {}, FakeClock(), root=tmp_path / "root")
    assert office.locate("/data/local/tmp/bundle") == tmp_path / "root/data/local/tmp/bundle"
    assert office.locate("inputs.safetensors") == tmp_path / "storage/inputs.safetensors"
    assert Office(tmp_path, {}, FakeClock()).locate("/data") == Path("/data")


def test_inspect_tells_of_each_file_what_the_runner_sees(runner: RunnerInside, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"four")
    link = runner.link()
    relative, absolute, missing, folder = link.inspect(("here", str(tmp_path / "here"), "not/here", "."))
    assert (relative.size_bytes, relative.sha256) == (4, sha256_of(tmp_path / "here"))
    assert (absolute.size_bytes, absolute.sha256) == (relative.size_bytes, relative.sha256)
    assert (missing.size_bytes, missing.sha256) == (None, None)
    assert folder.sha256 is None
    link.close()


def test_the_events_of_a_job_follow_its_start_and_are_those_of_the_journal(runner: RunnerInside, job: Job) -> None:
    runner.go_on.set()
    link = runner.link()
    link.start(job)
    events = list(link.events())
    assert events == list(read_journal(runner.storage / JOURNAL_FILE))
    assert [event.seq for event in events] == list(range(len(events)))
    link.close()


def test_a_second_job_is_refused_while_the_first_goes_on(runner: RunnerInside, host: RawHost, job: Job) -> None:
    host.say(hello())
    start(host, job)
    host.say(b'{"request":"start","job":' + codec.encode(replace(job, job_id="second")) + b"}\n")
    assert next(answer for answer in iter(host.hears, None) if "reply" in answer)["code"] == "busy"
    runner.go_on.set()
    assert runner.stop_event().outcome == "completed"


def test_a_replay_gives_exactly_the_events_from_its_number_on(runner: RunnerInside, job: Job) -> None:
    runner.go_on.set()
    link = runner.link()
    link.start(job)
    whole = list(link.events())
    for from_seq in (0, 7, len(whole) - 1):
        link.replay(job.job_id, from_seq)
        assert list(link.events()) == whole[from_seq:]
    link.close()


def test_a_replay_of_a_job_that_was_never_here_is_refused(runner: RunnerInside) -> None:
    link = runner.link()
    with pytest.raises(ProtocolError, match="unknown_job"):
        link.replay("another", 0)
    link.close()


def test_a_cancel_interrupts_the_job_before_its_next_call(runner: RunnerInside, job: Job) -> None:
    link = runner.link()
    link.start(job)
    assert runner.decoding.wait(20)
    link.cancel()
    assert runner.office.cancelled.wait(20)
    runner.go_on.set()
    events = list(link.events())
    stop = events[-1]
    assert isinstance(stop, Stop)
    assert (stop.outcome, stop.reason) == ("interrupted", "cancelled")
    assert len([event for event in events if isinstance(event, IterationDone)]) == 1  # the call under way ends
    link.close()


def test_bye_lets_the_runner_go(runner: RunnerInside) -> None:
    runner.link().close()
    assert runner.office.released.wait(20)


def test_a_runner_without_a_host_leaves_after_its_idle_time(runner: RunnerInside) -> None:
    assert runner.office.released.wait(20)


def test_a_host_that_goes_away_stops_the_job_after_the_time_in_its_rule(runner: RunnerInside, job: Job) -> None:
    host = RawHost(runner.port)
    host.say(hello())
    start(host, replace(job, on_disconnect=OnDisconnect(kind="stop_after_s", seconds=0.05)))
    assert runner.decoding.wait(20)
    host.close()
    assert runner.office.cancelled.wait(20)
    runner.go_on.set()
    assert (runner.stop_event().outcome, runner.stop_event().reason) == ("interrupted", "cancelled")


def test_a_call_that_does_not_return_after_the_host_went_away_ends_with_the_process(
    runner: RunnerInside, job: Job
) -> None:
    host = RawHost(runner.port)
    host.say(hello())
    start(host, replace(job, on_disconnect=OnDisconnect(kind="stop_after_s", seconds=0.0)))
    assert runner.decoding.wait(20)
    host.close()
    assert runner.left.get(timeout=20) == 3
    assert runner.office.cancelled.is_set()


def test_a_host_that_comes_back_in_time_finds_the_job_going_on(runner: RunnerInside, job: Job) -> None:
    host = RawHost(runner.port)
    host.say(hello())
    start(host, job)
    assert runner.decoding.wait(20)
    host.close()
    link = runner.link()
    link.inspect(())
    assert running_timers() == []
    link.replay(job.job_id, 3)
    runner.go_on.set()
    events = list(link.events())
    assert events[0].seq == 3
    assert isinstance(events[-1], Stop)
    assert events[-1].outcome == "completed"
    link.close()


def test_a_stranger_who_knocks_first_does_not_send_the_runner_away(runner: RunnerInside) -> None:
    stranger = RawHost(runner.port)
    stranger.say(hello(token="guessed"))
    assert stranger.hears()["code"] == "token"
    assert stranger.hears_nothing_more()
    stranger.close()
    runner.link().close()


def test_a_stranger_who_knocks_while_the_host_is_away_changes_nothing(runner: RunnerInside, job: Job) -> None:
    host = RawHost(runner.port)
    host.say(hello())
    start(host, job)
    assert runner.decoding.wait(20)
    host.close()
    for _ in range(2):
        stranger = RawHost(runner.port)
        stranger.say(hello(token="guessed"))
        assert stranger.hears()["code"] == "token"
        stranger.close()
    link = runner.link()
    link.inspect(())
    assert running_timers() == []
    runner.go_on.set()
    assert runner.stop_event().outcome == "completed"
    link.close()


def test_a_host_that_comes_back_takes_the_place_of_a_connection_that_broke_unnoticed(
    runner: RunnerInside, job: Job
) -> None:
    host = RawHost(runner.port)
    host.say(hello())
    start(host, job)
    assert runner.decoding.wait(20)
    link = runner.link()  # the first connection is still open
    link.replay(job.job_id, 0)
    while host.hears_something():
        pass
    host.close()
    runner.go_on.set()
    *_, stop = link.events()
    assert isinstance(stop, Stop)
    assert stop.outcome == "completed"
    assert running_timers() == []
    link.close()


def test_a_stranger_who_says_nothing_does_not_keep_the_host_out(runner: RunnerInside) -> None:
    stranger = RawHost(runner.port)
    runner.link().close()
    stranger.close()


def test_a_host_without_a_job_is_not_taken_for_idle(runner: RunnerInside, job: Job) -> None:
    link = runner.link()
    RealClock().sleep(0.5)  # more than the idle time
    assert not runner.office.released.is_set()
    runner.go_on.set()
    link.start(job)
    *_, stop = link.events()
    assert isinstance(stop, Stop)
    link.close()


def test_an_untethered_job_is_finished_without_its_host(runner: RunnerInside, job: Job) -> None:
    host = RawHost(runner.port)
    host.say(hello())
    start(host, replace(job, on_disconnect=OnDisconnect(kind="finish_then_exit")))
    assert runner.decoding.wait(20)
    host.close()
    runner.go_on.set()
    assert runner.stop_event().outcome == "completed"
    assert running_timers() == []


def start(host: RawHost, job: Job) -> None:
    assert host.hears()["reply"] == "hello"
    host.say(b'{"request":"start","job":' + codec.encode(job) + b"}\n")
    assert host.hears()["reply"] == "accepted"


def test_a_job_whose_journal_cannot_be_opened_is_refused(runner: RunnerInside, job: Job) -> None:
    (runner.storage / JOURNAL_FILE).write_bytes(b"another job's")
    link = runner.link()
    with pytest.raises(ProtocolError, match="cannot open the journal"):
        link.start(job)
    link.close()


def test_a_job_for_an_engine_that_is_not_here_is_refused_with_how_to_get_it(host: RawHost, job: Job) -> None:
    host.say(hello())
    host.hears()
    host.say(b'{"request":"start","job":' + codec.encode(replace(job, engine="executorch")) + b"}\n")
    answer = host.hears()
    assert (answer["reply"], answer["code"]) == ("refused", "job")
    assert "ondevice-profiler[executorch]" in answer["reason"]

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from profiler import codec
from profiler.clock import FakeClock
from profiler.devices.link import Link, connect
from profiler.errors import DeviceError, ProtocolError, RunnerLost
from profiler.records.message import MAX_LINE_BYTES
from tests.messages_for_tests import make_failed_journal, make_journal, make_replies
from tests.records_for_tests import make_job, make_plan

HELLO, INSPECTION, ACCEPTED, WRONG_TOKEN, *_ = (codec.encode(reply) + b"\n" for reply in make_replies())


class FakeRunner:
    """A socket that says what a test tells it to, whatever it hears."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._connection: socket.socket | None = None

    def accept(self) -> socket.socket:
        self._connection, _ = self._listener.accept()
        return self._connection

    def end(self) -> None:
        self._listener.close()
        if self._connection is not None:
            self._connection.close()


@pytest.fixture
def runner() -> Iterator[FakeRunner]:
    runner = FakeRunner()
    yield runner
    runner.end()


@pytest.fixture
def linked(runner: FakeRunner) -> Iterator[Callable[..., Link]]:
    opened: list[socket.socket] = []

    def open_connection() -> socket.socket:
        ours = socket.create_connection(("127.0.0.1", runner.port))
        opened.append(ours)
        return ours

    def link(says: bytes = b"", *, alive: bool = True, reply_timeout_s: float = 20) -> Link:
        link = Link(open_connection, lambda: alive, reply_timeout_s=reply_timeout_s)
        runner.accept().sendall(says)
        return link

    yield link
    for ours in opened:
        ours.close()


def hang_up(runner: FakeRunner) -> None:
    assert runner._connection is not None
    runner._connection.shutdown(socket.SHUT_RDWR)
    runner._connection.close()


def test_a_good_runner_is_understood(linked: Callable[..., Link]) -> None:
    events = make_journal()
    link = linked(HELLO + INSPECTION + ACCEPTED + b"".join(codec.encode(event) + b"\n" for event in events))
    assert link.hello("token").platform == "python"
    assert [receipt.size_bytes for receipt in link.inspect(("a", "b"))] == [2881, None]
    link.start(make_job())
    assert tuple(link.events()) == events


class CutRunner:
    """Answers one connection after another, each request by its reply, and hangs up after the last."""

    def __init__(self, *scripts: tuple[bytes, ...]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.heard: list[list[dict[str, Any]]] = []
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._answer, args=(scripts,))
        self._thread.start()

    def _answer(self, scripts: tuple[tuple[bytes, ...], ...]) -> None:
        for script in scripts:
            connection, _ = self._listener.accept()
            self.heard.append([])
            with connection, connection.makefile("rb") as lines:
                for reply in script:
                    self.heard[-1].append(json.loads(lines.readline()))
                    connection.sendall(reply)
        self._listener.close()
        self.over.set()

    def alive(self) -> bool:
        return not self.over.is_set()

    def end(self) -> None:
        self._thread.join(20)


JOURNAL = [codec.encode(event) + b"\n" for event in make_journal()]


@pytest.mark.parametrize("cut", [0, 1, len(JOURNAL[0]), len(JOURNAL[0]) + 7, sum(map(len, JOURNAL)) - 1])
def test_a_connection_that_is_cut_is_taken_up_where_it_broke(cut: int) -> None:
    whole = b"".join(JOURNAL)
    come = whole[:cut].count(b"\n")
    runner = CutRunner((ACCEPTED + whole[:cut],), (HELLO, ACCEPTED + b"".join(JOURNAL[come:])))
    link = connect(runner.port, runner.alive)
    link.start(make_job())
    assert [event for event in link.events() if event is not None] == list(make_journal())
    assert [request["request"] for request in runner.heard[1]] == ["hello", "replay"]
    assert (runner.heard[1][1]["job_id"], runner.heard[1][1]["from_seq"]) == (make_job().job_id, come)
    runner.end()
    link.close()


def test_a_job_whose_acceptance_was_cut_off_is_replayed_and_not_started_twice() -> None:
    runner = CutRunner((ACCEPTED[:9],), (HELLO, ACCEPTED + b"".join(JOURNAL)))
    link = connect(runner.port, runner.alive)
    link.start(make_job())
    assert [event for event in link.events() if event is not None] == list(make_journal())
    assert runner.heard[1][1] == {"request": "replay", "job_id": make_job().job_id, "from_seq": 0}
    runner.end()
    link.close()


def test_a_runner_that_ends_after_a_cut_is_lost_with_how_the_connection_broke() -> None:
    runner = CutRunner((ACCEPTED + JOURNAL[0],))
    link = connect(runner.port, runner.alive)
    link.start(make_job())
    with pytest.raises(RunnerLost, match="closed the connection"):
        list(link.events())
    runner.end()
    link.close()


def test_a_runner_that_refuses_who_comes_back_is_a_protocol_error() -> None:
    runner = CutRunner((ACCEPTED + JOURNAL[0],), (WRONG_TOKEN,))
    link = connect(runner.port, runner.alive)
    link.start(make_job())
    with pytest.raises(ProtocolError, match="not the token"):
        list(link.events())
    link.close()
    runner.end()


def test_a_job_that_is_cut_off_at_once_again_and_again_is_given_up() -> None:
    clock = FakeClock()
    listener = socket.create_server(("127.0.0.1", 0))

    def hang_up_on_everybody() -> None:
        try:
            while True:
                listener.accept()[0].close()
        except OSError:
            pass  # the test is over

    thread = threading.Thread(target=hang_up_on_everybody)
    thread.start()
    link = connect(listener.getsockname()[1], lambda: True, clock)
    with pytest.raises(RunnerLost):
        link.start(make_job())
    assert clock.boot_ns() > 0
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(20)
    link.close()


def test_an_event_out_of_order_is_a_protocol_error(linked: Callable[..., Link]) -> None:
    with pytest.raises(ProtocolError, match="sent event 1 where 0 was due"):
        next(linked(JOURNAL[1]).events())


def test_a_moment_without_an_event_is_told_of(linked: Callable[..., Link]) -> None:
    assert next(linked().events()) is None


def test_events_end_with_the_stop_whatever_follows(linked: Callable[..., Link]) -> None:
    events = make_failed_journal()
    link = linked(b"".join(codec.encode(event) + b"\n" for event in events) + b"garbage")
    assert tuple(link.events()) == events


def test_a_message_that_comes_byte_by_byte_is_put_together(runner: FakeRunner, linked: Callable[..., Link]) -> None:
    link = linked()
    connection = runner._connection
    assert connection is not None

    def trickle() -> None:
        for byte in HELLO:
            connection.sendall(bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    assert link.hello("token").pid == 4711
    thread.join()


def test_a_refusal_is_an_error_with_the_runners_reason(linked: Callable[..., Link]) -> None:
    with pytest.raises(ProtocolError, match=r"refused \(token\): not the token of this session"):
        linked(WRONG_TOKEN).hello("token")


def test_an_answer_of_another_kind_is_an_error(linked: Callable[..., Link]) -> None:
    with pytest.raises(ProtocolError, match="answered Accepted where RunnerHello was due"):
        linked(ACCEPTED).hello("token")


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\n", b"\n", b"\xff\n", b'{"reply":"dance"}\n', b"{}\n"])
def test_garbage_is_a_protocol_error(linked: Callable[..., Link], garbage: bytes) -> None:
    with pytest.raises(ProtocolError, match="the runner"):
        linked(garbage).hello("token")


def test_a_line_without_an_end_is_not_read_for_ever(runner: FakeRunner, linked: Callable[..., Link]) -> None:
    link = linked()
    connection = runner._connection
    assert connection is not None

    def flood() -> None:
        try:
            while True:
                connection.sendall(b"x" * 65536)
        except OSError:
            pass

    thread = threading.Thread(target=flood)
    thread.start()
    with pytest.raises(ProtocolError, match="does not end"):
        link.hello("token")
    link.close()
    thread.join(20)


def test_a_runner_that_hangs_up_before_its_answer_is_lost(runner: FakeRunner, linked: Callable[..., Link]) -> None:
    link = linked(HELLO[:20])
    hang_up(runner)
    with pytest.raises(RunnerLost):
        link.hello("token")


def test_a_runner_that_hangs_up_between_events_is_lost(runner: FakeRunner, linked: Callable[..., Link]) -> None:
    link = linked(codec.encode(make_journal()[0]) + b"\n")
    hang_up(runner)
    events = link.events()
    assert next(events) == make_journal()[0]
    with pytest.raises(RunnerLost, match="closed the connection"):
        next(events)


def test_a_runner_that_never_answers_is_lost_after_a_while(linked: Callable[..., Link]) -> None:
    with pytest.raises(RunnerLost, match="gave no answer"):
        linked(reply_timeout_s=0).hello("token")


def test_a_silent_runner_whose_process_is_gone_is_lost(linked: Callable[..., Link]) -> None:
    with pytest.raises(RunnerLost, match="process is gone"):
        next(linked(alive=False).events())


def test_a_job_too_long_for_a_line_is_not_sent(linked: Callable[..., Link]) -> None:
    plan = make_plan(scheduler="x" * MAX_LINE_BYTES)
    with pytest.raises(ProtocolError, match="longer than a line may be"):
        linked().start(make_job(plan=plan))


def test_closing_a_link_whose_runner_is_gone_is_no_error(runner: FakeRunner, linked: Callable[..., Link]) -> None:
    link = linked()
    hang_up(runner)
    link.close()
    with pytest.raises(RunnerLost, match="hung up"):
        link.cancel()


def test_a_port_where_nobody_listens_is_a_device_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(DeviceError, match=f"no runner answers on 127.0.0.1:{port}"):
        connect(port, lambda: True)

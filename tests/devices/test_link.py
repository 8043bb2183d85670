from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from profiler import codec
from profiler.devices.link import Link, connect
from profiler.errors import DeviceError, ProtocolError, RunnerLost
from profiler.records.message import MAX_LINE_BYTES
from tests.messages_for_tests import make_failed_journal, make_journal, make_replies
from tests.records_for_tests import make_job, make_plan

HELLO, INSPECTION, ACCEPTED, WRONG_TOKEN, _ = (codec.encode(reply) + b"\n" for reply in make_replies())


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

    def link(says: bytes = b"", *, alive: bool = True, reply_timeout_s: float = 20) -> Link:
        ours = socket.create_connection(("127.0.0.1", runner.port))
        opened.append(ours)
        runner.accept().sendall(says)
        return Link(ours, lambda: alive, reply_timeout_s=reply_timeout_s)

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

import io
import sys

import click
import pytest
from click.testing import CliRunner
from twisted.internet import defer

from twisted_mq.cli import send as send_module
from twisted_mq.cli.send import (
    SendOptions,
    body_source,
    lines_of,
    make_message,
    read_properties,
    result_row,
    send,
    send_in_order,
)
from twisted_mq.client.core.errors import MessageIllegal
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.send_result import SendResult, SendStatus
from twisted_mq.protocol.bodies import MessageQueue

OPTIONS = SendOptions("T", "A", "k1 k2", {"color": "red"}, 1, "g", "n:1")


def a_result(number: int) -> SendResult:
    return SendResult(SendStatus.SEND_OK, f"ID{number}", "OFFSET", MessageQueue("T", "b", 3), number)


class SlowProducer:
    """Answers nothing by itself; `sent` are the bodies, `waiting` the Deferreds of their results."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.waiting: list[defer.Deferred[SendResult]] = []

    def send(self, message: Message) -> defer.Deferred[SendResult]:
        self.sent.append(message.body)
        self.waiting.append(defer.Deferred())
        return self.waiting[-1]


def collect(producer: SlowProducer, bodies: list[bytes], count: int = 1, in_flight: int = 2):
    """(results so far, the run's Deferred)"""
    source = iter(bodies)

    async def next_body():
        return next(source, None)

    options = SendOptions("T", None, None, {}, count, "g", "n:1")
    results: list[SendResult] = []

    async def run() -> None:
        async for result in send_in_order(producer, options, next_body, in_flight):
            results.append(result)

    return results, defer.Deferred.fromCoroutine(run())


def test_so_many_sends_are_under_way_and_results_keep_the_order():
    producer = SlowProducer()
    results, done = collect(producer, [b"a", b"b", b"c"])
    assert producer.sent == [b"a", b"b"]
    producer.waiting[1].callback(a_result(1))
    assert (results, producer.sent) == ([], [b"a", b"b"])
    producer.waiting[0].callback(a_result(0))
    assert (results, producer.sent) == ([a_result(0), a_result(1)], [b"a", b"b", b"c"])
    producer.waiting[2].callback(a_result(2))
    assert (results[2:], done.called) == ([a_result(2)], True)


def test_the_first_failure_ends_the_run():
    producer = SlowProducer()
    results, done = collect(producer, [b"a", b"b", b"c"])
    producer.waiting[0].errback(MessageIllegal("the body is empty"))
    failures: list[BaseException] = []
    done.addErrback(lambda reason: failures.append(reason.value))
    assert (results, [str(error) for error in failures], producer.sent) == ([], ["the body is empty"], [b"a", b"b"])


def test_count_repeats_each_body():
    producer = SlowProducer()
    collect(producer, [b"a", b"b"], count=2, in_flight=10)
    assert producer.sent == [b"a", b"a", b"b", b"b"]


def test_a_message_carries_tags_keys_and_properties():
    assert make_message(OPTIONS, b"x") == Message("T", b"x", "A", ["k1", "k2"], properties={"color": "red"})


def test_a_result_is_a_row():
    assert result_row(a_result(7)) == ("SEND_OK", "ID7", "b", 3, 7)


def test_lines_lose_their_ends_and_empty_ones_are_left_out():
    assert list(lines_of(io.BytesIO(b"a\r\n\n b \nlast"))) == [b"a", b" b ", b"last"]


def test_a_body_from_the_command_line_or_a_file():
    assert list(body_source("hé", None, False)) == ["hé".encode()]
    assert list(body_source(None, io.BytesIO(b"a\nb"), False)) == [b"a\nb"]
    assert list(body_source(None, io.BytesIO(b"a\nb"), True)) == [b"a", b"b"]


def test_two_bodies_are_refused():
    with pytest.raises(click.UsageError, match="BODY and --file exclude each other"):
        body_source("x", io.BytesIO(), False)


def test_a_terminal_is_not_read(monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(click.UsageError, match="Nothing to send"):
        body_source(None, None, False)


def test_properties_are_name_and_value():
    assert read_properties(("a=1", "b=x=y")) == {"a": "1", "b": "x=y"}
    with pytest.raises(click.UsageError, match="--property takes NAME=VALUE, got 'a'"):
        read_properties(("a",))


def test_the_command_passes_its_options_on(monkeypatch):
    seen = []

    async def record(reactor, options, bodies):
        seen.append((options, list(bodies)))

    def run_now(main):
        return defer.Deferred.fromCoroutine(main(None))

    monkeypatch.setattr(send_module, "_send_all", record)
    monkeypatch.setattr("twisted_mq.cli.run.run_under_reactor", run_now)
    arguments = ["T", "--tags", "A", "--keys", "k1 k2", "--property", "color=red", "--group", "g", "--namesrv", "n:1"]
    result = CliRunner().invoke(send, arguments, input="a\nb\n")
    assert (result.exit_code, seen) == (0, [(OPTIONS, [b"a", b"b"])])


@pytest.mark.parametrize(("terminal", "results"), [(False, 2), (True, 2), (True, 30)])
def test_results_are_rows_when_piped_and_summed_up_when_many(monkeypatch, capsys, terminal, results):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)

    async def some():
        for number in range(results):
            yield a_result(number)

    defer.Deferred.fromCoroutine(send_module._print_results(some(), lambda amount: None))
    lines = capsys.readouterr().out.splitlines()
    if not terminal:
        assert lines == [
            "status\tmsgId\tbroker\tqueueId\tqueueOffset",
            "SEND_OK\tID0\tb\t3\t0",
            "SEND_OK\tID1\tb\t3\t1",
        ]
    elif results == 30:
        assert lines == ["30 messages sent"]
    else:
        assert any("ID1" in line for line in lines)

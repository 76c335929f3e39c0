import base64
import io
import json
import sys

import click
import pytest
from click.testing import CliRunner
from twisted.internet import defer

from twisted_mq.cli import send as send_module
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.outgoing_messages import Duration, SendOptions, lines_of, make_message, messages, read_properties
from twisted_mq.cli.send import later_of, queue_of, result_line, result_row, send, send_in_order
from twisted_mq.client.core.errors import MessageIllegal
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.send_result import SendResult, SendStatus
from twisted_mq.protocol.bodies import MessageQueue

OPTIONS = SendOptions("T", "A", "k1 k2", {"color": "red"}, 1)


def a_result(number: int, handle: str | None = None) -> SendResult:
    return SendResult(
        SendStatus.SEND_OK, f"ID{number}", "OFFSET", MessageQueue("T", "b", 3), number, recall_handle=handle
    )


class SlowProducer:
    """Answers nothing by itself; `sent` are the bodies, `waiting` the Deferreds of their results."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.waiting: list[defer.Deferred[SendResult]] = []

    def send(self, message: Message) -> defer.Deferred[SendResult]:
        self.sent.append(message.body)
        self.waiting.append(defer.Deferred())
        return self.waiting[-1]

    def publish_queues(self, topic: str) -> defer.Deferred[tuple[MessageQueue, ...]]:
        return defer.succeed((MessageQueue("T", "a", 0), MessageQueue("T", "a", 1), MessageQueue("T", "b", 1)))


def collect(producer: SlowProducer, bodies: list[bytes], in_flight: int = 2):
    """(results so far, the run's Deferred)"""
    source = iter(bodies)

    async def next_message():
        body = next(source, None)
        return None if body is None else Message("T", body)

    results: list[SendResult] = []

    async def run() -> None:
        async for result in send_in_order(producer.send, next_message, in_flight):
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


def bodies(options: SendOptions, *arguments) -> list[bytes]:
    return [message.body for message in messages(options, *arguments)]


def test_count_repeats_each_body():
    assert bodies(SendOptions("T", count=2), None, io.BytesIO(b"a\nb"), "lines") == [b"a", b"a", b"b", b"b"]


def test_a_message_carries_tags_keys_and_properties():
    assert make_message(OPTIONS, b"x") == Message("T", b"x", "A", ["k1", "k2"], properties={"color": "red"})


@pytest.mark.parametrize(
    ("given", "property_"),
    [
        ((1500, None, None), {"TIMER_DELAY_MS": "1500"}),
        ((None, "2026-11-22T08:00:00+00:00", None), {"TIMER_DELIVER_MS": "1795334400000"}),
        ((None, None, 3), {"DELAY": "3"}),
    ],
)
def test_a_message_may_wait_for_its_time(given, property_):
    message = make_message(SendOptions("T", later=later_of(*given)), b"x")
    assert message.properties == property_


def test_two_times_are_refused():
    with pytest.raises(click.UsageError, match="one of --delay, --at and --delay-level"):
        later_of(1500, None, 3)
    with pytest.raises(CliError, match="--at tomorrow is not a time"):
        later_of(None, "tomorrow", None)


@pytest.mark.parametrize(("text", "ms"), [("500ms", 500), ("30", 30_000), ("5m", 300_000), ("2h", 7_200_000)])
def test_lengths_of_time(text, ms):
    assert Duration().convert(text, None, None) == ms
    with pytest.raises(click.BadParameter, match="is not a duration"):
        Duration().convert(f"{text}?", None, None)


def test_a_queue_by_its_number_and_its_broker():
    chosen = defer.Deferred.fromCoroutine(queue_of(SlowProducer(), "T", 1, "b"))
    assert chosen.result == MessageQueue("T", "b", 1)
    failed = defer.Deferred.fromCoroutine(queue_of(SlowProducer(), "T", 7, None))
    failures: list[str] = []
    failed.addErrback(lambda reason: failures.append(str(reason.value)))
    assert failures == ["topic T has no such writable queue; writable queues: a 0, a 1, b 1"]


def test_a_result_is_a_row():
    assert result_row(a_result(7)) == ("SEND_OK", "ID7", "b", 3, 7)


def test_a_result_as_json_has_the_handle_of_what_waits():
    told = {"status": "SEND_OK", "msgId": "ID7", "broker": "b", "queueId": 3, "queueOffset": 7}
    assert json.loads(result_line(a_result(7))) == told
    assert json.loads(result_line(a_result(7, "H"))) == {**told, "recallHandle": "H"}


def test_lines_lose_their_ends_and_empty_ones_are_left_out():
    assert list(lines_of(io.BytesIO(b"a\r\n\n b \nlast"))) == [b"a", b" b ", b"last"]


def test_a_body_from_the_command_line_or_a_file():
    assert bodies(OPTIONS, "hé", None, None) == ["hé".encode()]
    assert bodies(OPTIONS, None, io.BytesIO(b"a\nb"), None) == [b"a\nb"]
    assert bodies(OPTIONS, None, io.BytesIO(b"a\nb"), "lines") == [b"a", b"b"]


def test_messages_as_lines_of_json():
    lines = [
        {"body": "plain"},
        {"body": "\\xff", "bodyBase64": base64.b64encode(b"\xff").decode(), "tags": "B", "keys": ["k3"], "flag": 7},
        {"body": "again", "topic": "Old", "properties": {"TAGS": "C", "KEYS": "k4", "UNIQ_KEY": "ID", "size": "L"}},
    ]
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    red = {"color": "red"}
    assert list(messages(OPTIONS, None, io.BytesIO(text), "json")) == [
        Message("T", b"plain", "A", ["k1", "k2"], properties=red),
        Message("T", b"\xff", "B", ["k3"], flag=7, properties=red),
        Message("T", b"again", "C", ["k4"], properties={**red, "size": "L"}),
    ]


@pytest.mark.parametrize("line", [b"hello", b'{"body":7}', b'{"bodyBase64":"?"}', b'{"body":"\xff"}'])
def test_a_line_that_is_no_message_is_named(line):
    with pytest.raises(CliError, match="message 2 is not valid: "):
        list(messages(OPTIONS, None, io.BytesIO(b'{"body":"x"}\n' + line), "json"))


@pytest.mark.parametrize(("file", "form"), [(io.BytesIO(), None), (None, "json")])
def test_two_bodies_are_refused(file, form):
    with pytest.raises(click.UsageError, match="BODY cannot be combined"):
        messages(OPTIONS, "x", file, form)


def test_a_terminal_is_not_read(monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(click.UsageError, match="Nothing to send"):
        messages(OPTIONS, None, None, None)


def test_properties_are_name_and_value():
    assert read_properties(("a=1", "b=x=y")) == {"a": "1", "b": "x=y"}
    with pytest.raises(click.UsageError, match="--property takes NAME=VALUE, got 'a'"):
        read_properties(("a",))


def test_the_command_passes_its_options_on(monkeypatch):
    seen = []
    monkeypatch.setattr(send_module, "messages", lambda options, *rest: seen.append((options, *rest)))
    monkeypatch.setattr("twisted_mq.cli.run.run_under_reactor", lambda main: None)
    arguments = ["T", "x", "--tags", "A", "--keys", "k1 k2", "--property", "color=red", "--namesrv", "n:1"]
    result = CliRunner().invoke(send, arguments)
    assert (result.exit_code, seen) == (0, [(OPTIONS, "x", None, None)])


@pytest.mark.parametrize(("terminal", "results"), [(False, 2), (True, 2), (True, 30)])
def test_results_are_rows_when_piped_and_summed_up_when_many(monkeypatch, capsys, terminal, results):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)

    async def some():
        for number in range(results):
            yield a_result(number)

    defer.Deferred.fromCoroutine(send_module._print_results(some(), lambda amount: None, False))
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

"""The load of `mq bench` and the rates of `mq top`, by a clock that is moved by hand."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet import defer
from twisted.internet.task import Clock

from twisted_mq.admin.lag import TopicLag
from twisted_mq.cli.bench.command import check_here
from twisted_mq.cli.bench.load import Arrivals, Load, Plan
from twisted_mq.cli.bench.times import COLUMNS, Times, percentile
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.top import SORTS, GroupRow, Look, TopicRates, rows
from twisted_mq.client import ConsumeContext, ConsumeStatus, Message
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.remoting.errors import RemotingTimeoutError


class SlowBroker:
    """A producer whose answers come after `seconds`; `sent` has the time and the number of messages of each send."""

    def __init__(self, clock: Clock, seconds: float, fails: bool = False) -> None:
        self.sent: list[tuple[float, int]] = []
        self._clock, self._seconds, self._fails = clock, seconds, fails

    def send(self, message: Message) -> defer.Deferred[None]:
        return self.send_batch([message])

    def send_batch(self, messages: list[Message]) -> defer.Deferred[None]:
        self.sent.append((self._clock.seconds(), len(messages)))
        answer: defer.Deferred[None] = defer.Deferred()
        outcome: Any = answer.callback if not self._fails else lambda _: answer.errback(RemotingTimeoutError("late"))
        self._clock.callLater(self._seconds, outcome, None)
        return answer


def ran(plan: Plan, answer_seconds: float, *, fails: bool = False) -> tuple[SlowBroker, Load, float]:
    """A load from its beginning to its end."""
    clock = Clock()
    broker = SlowBroker(clock, answer_seconds, fails)
    load = Load(clock, broker, plan, "run")  # type: ignore[arg-type]
    took: list[float] = []
    defer.Deferred.fromCoroutine(load.send()).addCallback(took.append)
    for _ in range(100_000):
        if took:
            return broker, load, took[0]
        clock.advance(0.001)
    raise AssertionError("the load did not end")


def test_a_load_ends_with_its_count_and_keeps_so_many_under_way() -> None:
    broker, load, took = ran(Plan("T", count=10, seconds=60, size_bytes=100, in_flight=4), 0.010)
    assert [count for _, count in broker.sent] == [1] * 10
    assert sum(time == 0 for time, _ in broker.sent) == 4
    assert (load.sent.messages, load.sent.bytes, round(took, 3)) == (10, 1000, 0.030)
    assert [round(one, 3) for one in load.sent.taken] == [0.010] * 10


def test_a_load_ends_with_its_time() -> None:
    broker, load, took = ran(Plan("T", count=1000, seconds=0.1, in_flight=1), 0.010)
    assert (len(broker.sent), load.sent.messages, round(took, 3)) == (10, 10, 0.100)


def test_batches_have_the_rest_of_the_count_in_the_last() -> None:
    broker, load, _ = ran(Plan("T", count=10, seconds=60, batch=4, in_flight=1), 0.001)
    assert [count for _, count in broker.sent] == [4, 4, 2]
    assert load.sent.messages == 10


def test_with_a_rate_a_time_counts_from_when_its_send_was_due() -> None:
    broker, _, _ = ran(Plan("T", count=5, seconds=60, in_flight=10, rate=100), 0.001)
    assert [round(time, 2) for time, _ in broker.sent] == [0.0, 0.01, 0.02, 0.03, 0.04]
    _, late, _ = ran(Plan("T", count=3, seconds=60, in_flight=1, rate=100), 0.050)
    assert [round(one, 2) for one in late.sent.taken] == [0.05, 0.09, 0.13]


def test_failures_are_counted_by_what_they_are() -> None:
    _, load, _ = ran(Plan("T", count=3, seconds=60, in_flight=1), 0.001, fails=True)
    assert (load.sent.messages, load.sent.errors) == (0, {"RemotingTimeoutError": 3})
    row = dict(zip(COLUMNS, load.sent.row("sent", 1.0), strict=True))
    assert (row["errors"], row["p50Ms"], row["maxMs"]) == (3, None, None)


def test_percentiles_are_values_that_were_measured() -> None:
    ordered = [float(number) for number in range(1, 101)]
    assert [percentile(ordered, part) for part in (0.5, 0.9, 0.99, 0.999)] == [50.0, 90.0, 99.0, 100.0]
    assert percentile([], 0.5) is None


def test_a_row_has_rates_and_ms() -> None:
    times = Times()
    for seconds in (0.001, 0.002, 0.003, 0.010):
        times.note(seconds, 2, 500_000)
    assert times.row("sent", 2.0) == ["sent", 8, 2.0, 4.0, 1.0, 2.0, 10.0, 10.0, 10.0, 10.0, 0]


def arrived(body: bytes, run: str, born_ms: int) -> MessageExt:
    return MessageExt(
        topic="T", queue_id=0, queue_offset=0, physical_offset=0, store_size=0, body_crc=0, sys_flag=0, flag=0,
        born_timestamp=born_ms, born_host="", store_timestamp=0, store_host="", reconsume_times=0,
        prepared_transaction_offset=0, properties={"BENCH_RUN": run}, body=body, msg_id="",
    )  # fmt: skip


def test_arrivals_of_the_run_alone_count_from_their_birth() -> None:
    clock = Clock()
    clock.advance(10.0)
    arrivals = Arrivals(clock, "run")
    context = ConsumeContext(MessageQueue("T", "b", 0))
    clock.advance(0.5)
    found = [arrived(b"mine", "run", 10_200), arrived(b"other", "before", 0)]
    assert arrivals(found, context) is ConsumeStatus.CONSUME_SUCCESS
    assert (arrivals.consumed.messages, arrivals.consumed.bytes, arrivals.last) == (1, 4, 10.5)
    assert [round(one, 3) for one in arrivals.consumed.taken] == [0.3]


@pytest.mark.parametrize("address", ["10.0.0.1:9876", "example.org:9876", "0.0.0.0:1"])
def test_servers_elsewhere_are_refused(address: str) -> None:
    with pytest.raises(CliError, match="is not on this machine; add --yes"):
        check_here(["127.0.0.1:9876", address])


def test_servers_here_are_not() -> None:
    check_here(["127.0.0.1:9876", "localhost:9876", "[::1]:9876"])


def lag(group: str, topic: str, waiting: int, committed: int) -> TopicLag:
    return TopicLag(group, 1, topic, waiting, 0, None, committed)


def test_rates_are_what_moved_between_two_looks() -> None:
    before = Look(100.0, {"A": (0, 50), "B": (5, 5)}, {("g", "A"): lag("g", "A", 10, 40)})
    now = Look(
        102.0,
        {"A": (10, 70), "B": (5, 5), "New": (0, 9)},
        {("g", "A"): lag("g", "A", 0, 70), ("h", "A"): lag("h", "A", 70, 0)},
    )
    topics, groups = rows(before, now)
    assert topics == [TopicRates("A", 60, 10.0, 2, 70), TopicRates("B", 0, 0.0, 0, 0), TopicRates("New", 9, 0.0, 0, 0)]
    assert groups == [GroupRow("g", "A", 1, 0, 15.0, None), GroupRow("h", "A", 1, 70, 0.0, None)]
    assert [row.name for row in sorted(groups, key=SORTS["lag"])] == ["h", "g"]
    assert [row.name for row in sorted(groups, key=SORTS["rate"])] == ["g", "h"]
    assert [row.name for row in sorted(topics, key=SORTS["name"])] == ["A", "B", "New"]

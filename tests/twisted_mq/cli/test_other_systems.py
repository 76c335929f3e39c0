"""`mq replay` from Kafka and RabbitMQ, with consumers that behave as kafka-python's and pika's do."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from twisted.internet import defer
from twisted.internet.task import Clock

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.other_systems import AT_ONCE, ImportRun, KafkaSource, RabbitSource, Taken
from twisted_mq.cli.replay import replay
from twisted_mq.protocol.messages.message import Message


class KafkaError(Exception):
    """kafka.errors.KafkaError."""


class AMQPError(Exception):
    """pika.exceptions.AMQPError."""


@attrs.define
class Record:
    """The fields of kafka's ConsumerRecord that are read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@attrs.define
class KafkaLog:
    """A topic of Kafka and the offsets that a group committed, which outlive a consumer."""

    partitions: dict[int, list[Record]]
    committed: dict[int, int] = attrs.field(factory=dict)


class Consumer:
    """As kafka.KafkaConsumer: `poll` moves the position, `commit` commits it."""

    def __init__(self, log: KafkaLog) -> None:
        self.log, self.closed = log, False
        self.position = dict(log.committed)

    def poll(self, timeout_ms: int, max_records: int) -> dict[int, list[Record]]:
        for partition, records in self.log.partitions.items():
            at = self.position.get(partition, 0)
            found = records[at : at + max_records]
            if found:
                self.position[partition] = at + len(found)
                return {partition: found}
        return {}

    def assignment(self) -> set[int]:
        return set(self.log.partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(self.log.partitions) or None

    def commit(self) -> None:
        self.log.committed.update(self.position)

    def close(self, autocommit: bool) -> None:
        assert not autocommit
        self.closed = True


def kafka_log(partitions: int = 2, each: int = 40) -> KafkaLog:
    return KafkaLog(
        {
            number: [Record("orders", number, at, b"k%d" % at, b"%d:%d" % (number, at)) for at in range(each)]
            for number in range(partitions)
        }
    )


class Rabbit:
    """As pika.BlockingConnection with one queue: what is not acknowledged when it closes is put back."""

    def __init__(self, queue: list[tuple[Any, bytes]]) -> None:
        self.queue, self.unacknowledged = queue, dict[int, tuple[Any, bytes]]()
        self.tag, self.slept = 0, 0.0

    def channel(self) -> Rabbit:
        return self

    def basic_get(self, queue: str) -> tuple[Any, Any, bytes | None]:
        if not self.queue:
            return None, None, None
        self.tag += 1
        self.unacknowledged[self.tag] = self.queue.pop(0)
        properties, body = self.unacknowledged[self.tag]
        return types.SimpleNamespace(delivery_tag=self.tag), properties, body

    def basic_ack(self, tag: int, multiple: bool) -> None:
        assert multiple
        for one in [one for one in self.unacknowledged if one <= tag]:
            del self.unacknowledged[one]

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def close(self) -> None:
        self.queue[:0] = self.unacknowledged.values()
        self.unacknowledged = {}


def properties(**given: Any) -> Any:
    names = ("headers", "message_id", "content_type", "correlation_id", "type", "app_id")
    return types.SimpleNamespace(**{name: given.get(name) for name in names})


@attrs.define
class Broker:
    """Stores what is sent; fails at the message of that number."""

    clock: Clock = attrs.field(factory=Clock)
    stored: list[tuple[int, Message]] = attrs.field(factory=list)
    fails_at: int | None = None

    async def send(self, message: Message, shard: int) -> None:
        if len(self.stored) == self.fails_at:
            raise RuntimeError("the broker is away")
        self.stored.append((shard, message))

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def in_thread(self, function: Any, *arguments: Any) -> Any:
        found = function(*arguments)
        if found == []:
            self.clock.advance(1.0)  # the time that a source waits for messages
        return found

    def move(self, source: Any, **more: Any) -> Any:
        settings = {"idle_seconds": 3.0, **more}
        made = ImportRun(source, "Orders", self.send, self.in_thread, self.clock.seconds, self.sleep, **settings)
        result: list[Any] = []
        done = defer.ensureDeferred(made.run(lambda count: None))
        done.addBoth(result.append)
        (found,) = result
        if hasattr(found, "raiseException"):
            found.raiseException()
        return found

    def bodies(self, shard: int) -> list[str]:
        return [message.body.decode() for number, message in self.stored if number == shard]


def test_all_messages_of_kafka_come_each_partition_in_its_order() -> None:
    log, broker = kafka_log(), Broker()
    moved = broker.move(KafkaSource(Consumer(log), (KafkaError,)))
    assert (moved.messages, moved.skipped, log.committed) == (80, 0, {0: 40, 1: 40})
    assert [broker.bodies(shard) for shard in (0, 1)] == [[f"{shard}:{at}" for at in range(40)] for shard in (0, 1)]
    assert broker.stored[3][1].keys == ["k3"]


def test_a_run_that_failed_is_resumed_and_loses_nothing() -> None:
    """What was sent and not committed comes twice: at most AT_ONCE messages."""
    log, broker = kafka_log(), Broker(fails_at=50)
    with pytest.raises(RuntimeError):
        broker.move(KafkaSource(Consumer(log), (KafkaError,)))
    assert 0 < sum(log.committed.values()) <= 50
    broker.fails_at = None
    broker.move(KafkaSource(Consumer(log), (KafkaError,)))
    bodies = [message.body for _, message in broker.stored]
    assert len(set(bodies)) == 80
    assert len(bodies) <= 80 + AT_ONCE


def test_nothing_is_committed_before_the_broker_has_it() -> None:
    log, broker = kafka_log(), Broker(fails_at=0)
    with pytest.raises(RuntimeError):
        broker.move(KafkaSource(Consumer(log), (KafkaError,)))
    assert log.committed == {}


def test_rate_and_count_are_kept() -> None:
    log, broker = kafka_log(), Broker()
    moved = broker.move(KafkaSource(Consumer(log), (KafkaError,)), rate=10.0, count=31)
    assert (moved.messages, sum(log.committed.values())) == (31, 31)
    assert broker.clock.seconds() == pytest.approx(3.0)


def test_the_move_ends_when_nothing_came_for_a_while() -> None:
    broker = Broker()
    assert broker.move(KafkaSource(Consumer(kafka_log(each=0)), (KafkaError,))).messages == 0
    assert broker.clock.seconds() == 3.0


def test_the_move_does_not_end_while_kafka_gives_the_partitions_to_a_run_that_was_killed() -> None:
    class Late(Consumer):
        turns = 0

        def assignment(self) -> set[int]:
            return super().assignment() if self.turns > 20 else set()

        def poll(self, timeout_ms: int, max_records: int) -> dict[int, list[Record]]:
            self.turns += 1
            return super().poll(timeout_ms, max_records) if self.assignment() else {}

    broker = Broker()
    assert broker.move(KafkaSource(Late(kafka_log(1, 5)), (KafkaError,))).messages == 5
    assert broker.clock.seconds() == 20 + 3


def test_message_without_a_body_ends_the_run_with_its_place_or_is_counted() -> None:
    log, broker = KafkaLog({0: [Record("orders", 0, 7, b"k", None), Record("orders", 0, 8, b"k", b"x")]}), Broker()
    with pytest.raises(CliError, match="orders partition 0 offset 7 has no body"):
        broker.move(KafkaSource(Consumer(log), (KafkaError,)))
    moved = broker.move(KafkaSource(Consumer(log), (KafkaError,)), skip_empty=True)
    assert (moved.messages, moved.skipped, log.committed) == (1, 1, {0: 2})


def test_headers_and_keys_become_properties_that_users_may_set() -> None:
    headers = (("size", b"L"), ("DELAY", b"3"), ("raw", b"\xff\x00"), ("sep", b"a\x01b"))
    log, broker = KafkaLog({0: [Record("orders", 0, 0, b"two words", b"x", headers)]}), Broker()
    broker.move(KafkaSource(Consumer(log), (KafkaError,)))
    assert broker.stored[0][1].properties == {
        "size": "L",
        "source.DELAY": "3",
        "raw.base64": "/wA=",
        "sep.base64": "YQFi",
        "key": "two words",
    }


def test_messages_of_rabbitmq_are_acknowledged_after_they_were_sent_and_others_are_put_back() -> None:
    queue = [(properties(message_id=f"m{number}", headers={"n": number}), b"%d" % number) for number in range(70)]
    broker, rabbit = Broker(fails_at=40), Rabbit(queue)
    source = RabbitSource(rabbit, "orders", (AMQPError,))
    with pytest.raises(RuntimeError):
        broker.move(source)
    source.close()
    assert len(queue) == 70 - AT_ONCE
    broker.fails_at = None
    moved = broker.move(RabbitSource(Rabbit(queue), "orders", (AMQPError,)))
    assert (moved.messages, queue) == (70 - AT_ONCE, [])
    assert {message.body for _, message in broker.stored} == {b"%d" % number for number in range(70)}
    assert broker.stored[5][1].properties == {"KEYS": "m5", "n": "5"}


def test_properties_of_rabbitmq_are_kept() -> None:
    broker = Broker()
    given = properties(content_type="text/plain", type="order", headers=None)
    broker.move(RabbitSource(Rabbit([(given, b"x")]), "orders", (AMQPError,)))
    assert broker.stored[0][1].properties == {"content_type": "text/plain", "type": "order"}


def test_source_that_fails_says_that_the_run_can_be_repeated() -> None:
    class Failing(Consumer):
        def commit(self) -> None:
            raise KafkaError("the group was rebalanced")

    with pytest.raises(CliError, match="the source failed: the group was rebalanced"):
        Broker().move(KafkaSource(Failing(kafka_log()), (KafkaError,)))


def test_a_low_rate_takes_few_messages_at_once() -> None:
    taken: list[int] = []

    class Counting(Consumer):
        def poll(self, timeout_ms: int, max_records: int) -> dict[int, list[Record]]:
            taken.append(max_records)
            return super().poll(timeout_ms, max_records)

    Broker().move(KafkaSource(Counting(kafka_log(1, 5)), (KafkaError,)), rate=0.5)
    assert set(taken) == {1}


def test_taken_names_its_place() -> None:
    with pytest.raises(CliError, match="queue orders, delivery 4"):
        Taken(b"", place="queue orders, delivery 4").message("Orders")


# the command

LOG = kafka_log(1, 5)


class KafkaModule(types.ModuleType):
    made: dict[str, Any] = {}

    @staticmethod
    def KafkaConsumer(topic: str, **settings: Any) -> Consumer:
        KafkaModule.made = {"topic": topic, **settings}
        return Consumer(LOG)


@pytest.fixture
def kafka_is_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    errors = types.ModuleType("kafka.errors")
    errors.KafkaError = KafkaError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kafka", KafkaModule("kafka"))
    monkeypatch.setitem(sys.modules, "kafka.errors", errors)
    monkeypatch.setattr("twisted_mq.cli.other_systems.find_spec", lambda name: object())
    yield


def test_command_needs_one_source_and_none_of_the_options_of_others() -> None:
    for words in (
        ["--kafka", "h:1", "--rabbitmq", "amqp://h"],
        ["--kafka", "h:1", "--keep-ids"],
        ["--rabbitmq", "u", "--key", "k"],
    ):
        done = CliRunner().invoke(replay, ["orders", "--to", "Orders", *words])
        assert (done.exit_code, "goes with --to, --idle" in done.output) == (2, True), done.output


def test_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from twisted_mq.cli.other_systems import kafka_source, rabbit_source

    monkeypatch.setattr("twisted_mq.cli.other_systems.find_spec", lambda name: None)
    with pytest.raises(CliError, match="kafka-python"):
        kafka_source("h:9092", "orders", "g", {})
    with pytest.raises(CliError, match="pika"):
        rabbit_source("amqp://h", "orders")


def test_consumer_of_kafka_reads_committed_messages_from_the_start_and_commits_nothing_itself(
    kafka_is_installed: None,
) -> None:
    from twisted_mq.cli.other_systems import kafka_source

    source = kafka_source("a:9092,b:9092", "orders", "move", {"security_protocol": "SSL"})
    source.close()
    assert KafkaModule.made == {
        "topic": "orders",
        "bootstrap_servers": ["a:9092", "b:9092"],
        "group_id": "move",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "session_timeout_ms": 10_000,
        "security_protocol": "SSL",
    }
    given = {"session_timeout_ms": "45000"}
    kafka_source("a:9092", "orders", "move", given).close()
    assert KafkaModule.made["session_timeout_ms"] == 45_000


def test_a_topic_that_kafka_does_not_have_is_named(kafka_is_installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from twisted_mq.cli.other_systems import kafka_source

    monkeypatch.setattr(LOG, "partitions", {})
    with pytest.raises(CliError, match="Kafka has no topic orders"):
        kafka_source("a:9092", "orders", "move", {})

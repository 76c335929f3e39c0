"""Reads messages of Kafka and RabbitMQ for `mq replay`, by their own plain consumers.

A message is acknowledged there only after this project's broker has it. So a run that ends early goes on where it was, and a
message can arrive twice. A Kafka partition, or a RabbitMQ queue, goes to one queue: its order stays, unless a
send has to be repeated.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol

import attrs

from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.text.properties import BROKERS_PROPERTIES, RESERVED_PROPERTIES

POLL_SECONDS = 1.0
"""The longest time that `take` blocks without a message."""
SESSION_MS = 10_000
"""After that time Kafka gives the partitions of a run that was killed to the next one."""
UNITS = ("_ms", "_bytes", "_records")
"""The ends of the names of Kafka's settings that are numbers."""
AT_ONCE = 32
"""The most messages that are taken before they are acknowledged."""
PREFIX = "source."
"""Before the names of headers that RocketMQ uses itself."""


@attrs.frozen
class Taken:
    """A message of another system. `shard` numbers the partition or queue, within which messages have an order."""

    body: bytes
    key: str | None = None
    properties: Mapping[str, str] = attrs.field(factory=dict)
    shard: int = 0
    place: str = ""

    def message(self, topic: str) -> Message:
        """Return the message for a topic. Raises CliError for an empty body, which no broker stores."""
        if not self.body:
            raise CliError(f"the message at {self.place} has no body, and RocketMQ stores none without", SKIP_ADVICE)
        return Message.make(topic, self.body, None, self.key, dict(self.properties))


SKIP_ADVICE = "give --skip-empty to leave such messages out; their number is reported"


class ImportSource(Protocol):
    """Messages of another system. All calls block, and come one after the other."""

    errors: tuple[type[Exception], ...]
    """The errors of `take`, `done` and `close` when the system does not answer."""

    def take(self, most: int) -> list[Taken]:
        """Return the next messages; none if there are none after POLL_SECONDS."""

    def waits(self) -> bool:
        """Return True while the system gives this source nothing yet, whatever there is."""

    def done(self) -> None:
        """Acknowledge all messages that were taken."""

    def close(self) -> None:
        """Close the connection. Messages that were taken and not acknowledged come again."""


class KafkaSource:
    """The messages of a topic, from the committed offsets of a group on. `consumer` is a kafka.KafkaConsumer."""

    def __init__(self, consumer: Any, errors: tuple[type[Exception], ...]) -> None:
        self._consumer = consumer
        self.errors = errors

    def take(self, most: int) -> list[Taken]:
        """Return the next messages of all partitions."""
        found = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000), max_records=most)
        return [_of_kafka(record) for records in found.values() for record in records]

    def waits(self) -> bool:
        """Return True while the group has given it no partition: after a run that was killed, until Kafka has noticed that."""
        return not self._consumer.assignment()

    def done(self) -> None:
        """Commit the offsets after all that was taken."""
        self._consumer.commit()

    def close(self) -> None:
        """Leave the group, and commit nothing."""
        self._consumer.close(autocommit=False)


class RabbitSource:
    """The messages of a queue, which are acknowledged after they were sent. `connection` is a pika.BlockingConnection."""

    def __init__(self, connection: Any, queue: str, errors: tuple[type[Exception], ...]) -> None:
        self._connection = connection
        self._queue = queue
        self._channel = connection.channel()
        self._last = 0
        self.errors = errors

    def take(self, most: int) -> list[Taken]:
        """Return the next messages of the queue."""
        taken: list[Taken] = []
        while len(taken) < most:
            method, properties, body = self._channel.basic_get(self._queue)
            if method is None:
                break
            self._last = method.delivery_tag
            taken.append(_of_rabbit(method, properties, body, self._queue))
        if not taken:
            self._connection.sleep(POLL_SECONDS)
        return taken

    def waits(self) -> bool:
        """Return False: a queue gives its messages to each consumer that asks."""
        return False

    def done(self) -> None:
        """Acknowledge all that was taken."""
        if self._last:
            self._channel.basic_ack(self._last, multiple=True)
            self._last = 0

    def close(self) -> None:
        """Close the connection; RabbitMQ puts back what was not acknowledged."""
        self._connection.close()


def _of_kafka(record: Any) -> Taken:
    key = None if record.key is None else record.key.decode("utf-8", "replace")
    place = f"{record.topic} partition {record.partition} offset {record.offset}"
    return Taken(record.value or b"", *_keyed(key, dict(record.headers or ())), record.partition, place)


def _of_rabbit(method: Any, properties: Any, body: bytes | None, queue: str) -> Taken:
    headers = dict(properties.headers or {})
    for name in ("content_type", "correlation_id", "type", "app_id"):
        value = getattr(properties, name)
        if value is not None:
            headers.setdefault(name, value)
    place = f"queue {queue}, delivery {method.delivery_tag}"
    return Taken(body or b"", *_keyed(properties.message_id, headers), 0, place)


def _keyed(key: str | None, headers: Mapping[str, object]) -> tuple[str | None, dict[str, str]]:
    """Return the key and the properties. A key with a blank would be several keys: it becomes a property."""
    named = dict(_property(name, value) for name, value in headers.items() if value is not None)
    if key is None or (key and not any(one.isspace() or one < " " for one in key)):
        return key, named
    return None, {**named, **dict([_property("key", key)])}


def _property(name: str, value: object) -> tuple[str, str]:
    """Return a header as a property: text as it is, other bytes as base64 below NAME.base64."""
    if name in RESERVED_PROPERTIES or name in BROKERS_PROPERTIES:
        name = PREFIX + name
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\x01"
    if "\x01" in text or "\x02" in text:
        return f"{name}.base64", base64.b64encode(raw).decode("ascii")
    return name, text


def kafka_source(servers: str, topic: str, group: str, more: Mapping[str, str]) -> KafkaSource:
    """Connect to Kafka. `more` are further settings of kafka.KafkaConsumer. Raises CliError, also without the topic."""
    _needs("kafka", "kafka-python")
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    errors = (KafkaError, AssertionError, ValueError, TypeError)
    settings: dict[str, str | int] = {"session_timeout_ms": SESSION_MS, **dict(map(_setting, more.items()))}
    with _told("Kafka", errors):
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=servers.split(","),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            **settings,
        )
        known = consumer.partitions_for_topic(topic)
    if not known:
        consumer.close(autocommit=False)
        raise CliError(f"Kafka has no topic {topic}", "`kafka-topics.sh --list` shows its topics")
    return KafkaSource(consumer, (KafkaError,))


def _setting(pair: tuple[str, str]) -> tuple[str, str | int]:
    """Return a setting with its value, which is a number if the name ends in a unit: session_timeout_ms."""
    name, value = pair
    return name, int(value) if name.endswith(UNITS) and value.isdecimal() else value


def rabbit_source(url: str, queue: str) -> RabbitSource:
    """Connect to RabbitMQ, amqp://user:password@host:5672/vhost. Raises CliError."""
    _needs("pika", "pika")
    import pika
    from pika.exceptions import AMQPError

    with _told("RabbitMQ", (AMQPError, ValueError, OSError)):
        return RabbitSource(pika.BlockingConnection(pika.URLParameters(url)), queue, (AMQPError,))


def _needs(module: str, package: str) -> None:
    if find_spec(module) is None:
        raise CliError(f"the package {package} is not installed", f"pip install {package}")


@contextmanager
def _told(system: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise CliError(f"{system} is not reached: {_text(error)}", "check the address and the account") from error


def _text(error: Exception) -> str:
    """Return an error's text; some of pika's have none."""
    return str(error) or repr(error)


@attrs.define
class Imported:
    """The messages that were sent, and those that were left out."""

    messages: int = 0
    body_bytes: int = 0
    skipped: int = 0


InThread = Callable[..., Awaitable[Any]]
Send = Callable[[Message, int], Awaitable[object]]


@attrs.frozen
class ImportRun:
    """The messages of a source on their way to a topic.

    `send` stores a message in the queue of a shard; `rate` is the most messages a second. The move ends after `count` messages,
    or once nothing came for `idle_seconds` in which the source did not wait.
    """

    source: ImportSource
    topic: str
    send: Send
    in_thread: InThread
    seconds: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    idle_seconds: float
    rate: float | None = None
    count: int | None = None
    skip_empty: bool = False

    async def run(self, advance: Callable[[int], object]) -> Imported:
        """ImportRun them. Raises CliError, and the errors of sends; what was not acknowledged comes again in the next run."""
        moved, began = Imported(), self.seconds()
        last = began
        while self.count is None or moved.messages + moved.skipped < self.count:
            taken = await self._call(self.source.take, self._most(moved))
            if taken:
                await self._send_all(taken, moved, began)
                await self._call(self.source.done)
                advance(len(taken))
                last = self.seconds()
            elif await self._call(self.source.waits):
                last = self.seconds()
            elif self.seconds() - last >= self.idle_seconds:
                break
        return moved

    def _most(self, moved: Imported) -> int:
        """Return how many to take: under a low rate few, so that none waits long before it is acknowledged."""
        most = AT_ONCE if self.rate is None else max(1, min(AT_ONCE, int(self.rate)))
        return most if self.count is None else min(most, self.count - moved.messages - moved.skipped)

    async def _send_all(self, taken: Sequence[Taken], moved: Imported, began: float) -> None:
        for one in taken:
            if self.skip_empty and not one.body:
                moved.skipped += 1
                continue
            due = began + moved.messages / self.rate if self.rate else 0.0
            if due > self.seconds():
                await self.sleep(due - self.seconds())
            await self.send(one.message(self.topic), one.shard)
            moved.messages += 1
            moved.body_bytes += len(one.body)

    async def _call(self, function: Callable[..., Any], *arguments: object) -> Any:
        try:
            return await self.in_thread(function, *arguments)
        except self.source.errors as error:
            raise CliError(
                f"the source failed: {_text(error)}", "run the same command again: it continues where it was"
            ) from error

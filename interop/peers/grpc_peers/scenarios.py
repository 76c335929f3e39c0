"""Scenarios for every gRPC client at every place: one table, run against the small programs of the clients.

A program reads JSON lines as LinePeer writes them. Its commands: producer, simple_consumer, push_consumer, send,
send_in_transaction, recall, receive, ack, change_invisible, stop. A push consumer refuses a message as often as its property
"failures" says; a transaction is decided by the properties "local", at once, and "check", when the server asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import attrs

from interop.peers.clients import Producer, PushConsumer, TransactionProducer, bodies, unique
from interop.peers.grpc_peers.clients import Client
from interop.peers.line_peer import LinePeer, PeerError, Record
from interop.peers.process import wait_until
from twisted_mq.blocking import Admin

INVISIBLE_MS = 30_000
LEAST_INVISIBLE_MS = 10_000
"""Shortest invisibility of a receive."""
RETURNED_SECONDS = LEAST_INVISIBLE_MS / 1000 + 5.0
"""The time after that in which a message comes again at the latest."""
NO_SETTINGS_YET = 'because "settings" is null'
"""From an answer of Apache's proxy alone: ours waits for them."""
LARGE = "large " * 15_000
"""More than HTTP/2 lets pass before the reader opens its window (64 KiB)."""


@attrs.define(eq=False)
class SimpleConsumer:
    """A started simple consumer of a peer program."""

    peer: LinePeer
    name: str

    def receive(self, invisible_ms: int = INVISIBLE_MS) -> list[Record]:
        """Receive once. Nothing where Apache's proxy says that the client's settings have not come yet, as at the first call."""
        try:
            return self.peer.request("receive", consumer=self.name, most=32, invisible_ms=invisible_ms)
        except PeerError as error:
            if NO_SETTINGS_YET in error.message:
                return []
            raise

    def ack(self, message: Record) -> None:
        self.peer.request("ack", consumer=self.name, message=message["message"])

    def change_invisible(self, message: Record, invisible_ms: int) -> None:
        self.peer.request("change_invisible", consumer=self.name, message=message["message"], invisible_ms=invisible_ms)

    def take(self, count: int) -> dict[str, Record]:
        """Receive and acknowledge until there are `count` messages; by id."""
        taken: dict[str, Record] = {}

        def complete() -> bool:
            for message in self.receive():
                taken[message["message_id"]] = message
                self.ack(message)
            return len(taken) >= count

        wait_until(complete, lambda: f"{count} messages for {self.name}; so far {bodies(list(taken.values()))}")
        return taken


@attrs.define(eq=False)
class Stage:
    """Topics, groups and clients of one scenario in a program."""

    client: Client
    peer: LinePeer
    admin: Admin
    _started: list[str] = attrs.field(factory=list)

    def topic(self, kind: str = "NORMAL") -> str:
        name = unique("Topic")
        self.admin.create_topic(name, queues=2, attributes={"message.type": kind})
        return name

    def group(self, *, order: bool = False, retries: int = 16) -> str:
        name = unique("Group")
        self.admin.create_group(name, order=order, retry_max_times=retries)
        return name

    def producer(self, topic: str) -> Producer:
        return Producer(self.peer, self._start("producer", topic=topic))

    def transaction_producer(self, topic: str) -> TransactionProducer:
        return TransactionProducer(self.peer, self._start("producer", topic=topic))

    def simple(self, group: str, topic: str, **filters: str) -> SimpleConsumer:
        filters = filters or {"tags": "*"}
        return SimpleConsumer(
            self.peer, self._start("simple_consumer", group=group, topic=topic, await_ms=5000, **filters)
        )

    def push(self, group: str, topic: str, tags: str = "*") -> PushConsumer:
        return PushConsumer(self.peer, self._start("push_consumer", group=group, topic=topic, tags=tags), topic)

    def stop(self) -> None:
        """Begin to stop the clients. Some wait for the end of their receives, 20 s: that is not waited for."""
        for name in self._started:
            self.peer.begin("stop", name=name)

    def _start(self, kind: str, **options: Any) -> str:
        """Start a client. One that waited longer than it may, for a proxy that has just started, gets a second chance."""
        name = unique(kind)
        try:
            self.peer.request(kind, seconds=90, name=name, **options)
        except PeerError as error:
            if "deadline" not in error.message.lower():
                raise
            self.peer.request(kind, seconds=90, name=name, **options)
        self._started.append(name)
        return name


def normal(stage: Stage) -> None:
    """A simple consumer gets each message with all that it was sent with; the group then has no lag."""
    topic, group = stage.topic(), stage.group()
    producer = stage.producer(topic)
    texts = [*(f"body {number} é" for number in range(6)), LARGE]
    sent = {
        producer.send(
            topic, text, tag=f"tag-{at}", keys=[f"key-{at}", "all"], properties={"number": str(at), "é": "ü"}
        )["message_id"]: (text, f"tag-{at}", {f"key-{at}", "all"}, {"number": str(at), "é": "ü"}, topic, 1)
        for at, text in enumerate(texts)
    }
    taken = stage.simple(group, topic).take(len(sent))
    got = {
        message_id: (one["body"], one["tag"], set(one["keys"]), one["properties"], one["topic"], one["attempt"])
        for message_id, one in taken.items()
    }
    assert got == sent
    wait_until(lambda: [one.waiting for one in stage.admin.lag(group, topic)] == [0, 0], f"no lag of {group}")


def push(stage: Stage) -> None:
    """A push consumer gets messages that are sent while it runs and match its tags; refused ones are delivered again."""
    topic, group = stage.topic(), stage.group()
    consumer = stage.push(group, topic, "a || b")
    producer = stage.producer(topic)
    for at in range(12):
        producer.send(topic, f"{'abc'[at % 3]} {at}", tag="abc"[at % 3], properties={"failures": str(int(at == 4))})
    expected = {f"{'abc'[at % 3]} {at}" for at in range(12) if at % 3 < 2}
    taken = consumer.wait_bodies(expected)
    assert set(bodies(taken)) == expected
    assert [(one["body"], one["attempt"]) for one in consumer.refused] == [("b 4", 1)]
    assert {one["body"]: one["attempt"] for one in taken if one["body"] == "b 4"} == {"b 4": 2}


def sql_filter(stage: Stage) -> None:
    """A receive by an SQL expression gets what it selects."""
    topic, group = stage.topic(), stage.group()
    producer = stage.producer(topic)
    for at in range(6):
        producer.send(topic, f"body {at}", properties={"weight": str(at)})
    consumer = stage.simple(group, topic, sql="weight > 2 AND TAGS IS NULL")
    assert sorted(bodies(list(consumer.take(3).values()))) == ["body 3", "body 4", "body 5"]


def fifo(stage: Stage) -> None:
    """Messages of a message group come in order, also where one is refused at first."""
    topic, group = stage.topic("FIFO"), stage.group(order=True)
    producer = stage.producer(topic)
    for at in range(6):
        for name in ("left", "right"):
            failures = str(int((name, at) == ("left", 2) and stage.client.keeps_order_after_failure))
            producer.send(topic, f"{name} {at}", message_group=name, properties={"failures": failures})
    consumer = stage.push(group, topic)
    taken = consumer.wait_bodies({f"{name} {at}" for name in ("left", "right") for at in range(6)})
    orders = {
        name: list(dict.fromkeys(one["body"] for one in taken if one["message_group"] == name))
        for name in ("left", "right")
    }
    assert orders == {name: [f"{name} {at}" for at in range(6)] for name in ("left", "right")}
    assert bodies(consumer.refused) == ["left 2"] * stage.client.keeps_order_after_failure


def delay(stage: Stage) -> None:
    """A message with a time of delivery comes not before it, and says so."""
    topic, group = stage.topic("DELAY"), stage.group()
    consumer, producer = stage.simple(group, topic), stage.producer(topic)
    at_ms = (int(time.time()) + 3) * 1000
    sent = producer.send(topic, "late", deliver_at_ms=at_ms)
    [message] = consumer.take(1).values()
    assert (message["message_id"], message["body"], message["attempt"]) == (sent["message_id"], "late", 1)
    assert message["at_ms"] >= at_ms


def transaction(stage: Stage) -> None:
    """Committed messages are delivered, at once or after a check of the server; rolled back ones are not."""
    topic, group = stage.topic("TRANSACTION"), stage.group()
    producer = stage.transaction_producer(topic)
    producer.begin(topic, "committed", local="commit")
    producer.begin(topic, "rolled back", local="rollback")
    producer.begin(topic, "committed by check", check="commit")
    producer.begin(topic, "rolled back by check", check="rollback")
    checked = {"committed by check", "rolled back by check"}
    assert set(bodies(producer.wait_checks(lambda seen: checked <= set(bodies(seen))))) == checked
    taken = stage.simple(group, topic).take(2)
    assert sorted(bodies(list(taken.values()))) == ["committed", "committed by check"]
    assert sorted(one.body for one in stage.admin.messages(topic)) == [b"committed", b"committed by check"]


def invisible_time(stage: Stage) -> None:
    """A message whose invisible time was cut short comes again, with its second attempt."""
    topic, group = stage.topic(), stage.group()
    stage.producer(topic).send(topic, "again")
    consumer = stage.simple(group, topic)
    received: list[Record] = []
    wait_until(lambda: received or received.extend(consumer.receive(LEAST_INVISIBLE_MS)), "the message comes")
    consumer.change_invisible(received[0], 1000)
    [message] = consumer.take(1).values()
    assert (message["body"], message["attempt"]) == ("again", 2)


def acknowledged_after_a_change(stage: Stage) -> None:
    """Messages of one receive whose invisible time was changed do not come again once they are acknowledged."""
    topic, group = stage.topic(), stage.group()
    producer = stage.producer(topic)
    for at in range(6):
        producer.send(topic, f"body {at}")
    consumer = stage.simple(group, topic)
    received: list[Record] = []

    def complete() -> bool:
        received.extend(consumer.receive())
        return len(received) >= 6

    wait_until(complete, lambda: f"6 messages come; so far {bodies(received)}")
    for message in received:
        consumer.change_invisible(message, LEAST_INVISIBLE_MS)
        consumer.ack(message)
    came = consumer.receive()
    until = time.monotonic() + RETURNED_SECONDS
    while time.monotonic() < until:
        came += consumer.receive()
    assert bodies(came) == []


def dead_letters(stage: Stage) -> None:
    """A message that is refused more often than the group allows becomes a dead letter."""
    topic, group = stage.topic(), stage.group(retries=1)
    stage.producer(topic).send(topic, "bad", properties={"failures": "99"})
    consumer = stage.push(group, topic)
    wait_until(lambda: stage.admin.dead_letters(group), f"a dead letter of {group}")
    assert [one.body for one in stage.admin.dead_letters(group)] == [b"bad"]
    assert [one["attempt"] for one in consumer.refused] == [1, 2]


def dead_letters_in_order(stage: Stage) -> None:
    """A FIFO consumer forwards what it gave up on, and goes on with the next of the message group."""
    topic, group = stage.topic("FIFO"), stage.group(order=True, retries=1)
    producer = stage.producer(topic)
    producer.send(topic, "bad", message_group="one", properties={"failures": "99"})
    producer.send(topic, "good", message_group="one")
    consumer = stage.push(group, topic)
    consumer.wait_bodies({"good"})
    wait_until(lambda: stage.admin.dead_letters(group), f"a dead letter of {group}")
    assert [one.body for one in stage.admin.dead_letters(group)] == [b"bad"]
    assert bodies(consumer.refused) == ["bad"] * min(2, stage.client.most_attempts_in_order)


def recall(stage: Stage) -> None:
    """A message that is recalled before its time does not come."""
    topic, group = stage.topic("DELAY"), stage.group()
    producer = stage.producer(topic)
    at_ms = (int(time.time()) + 8) * 1000
    recalled = producer.send(topic, "recalled", deliver_at_ms=at_ms)
    kept = producer.send(topic, "kept", deliver_at_ms=at_ms)
    handle = recalled["recall_handle"]
    assert producer.command("recall", topic=topic, handle=handle) == recalled["message_id"]
    assert set(stage.simple(group, topic).take(1)) == {kept["message_id"]}
    assert [one.body for one in stage.admin.messages(topic)] == [b"kept"]


def refusals(stage: Stage) -> None:
    """A message of another type than its topic's, and a producer of a missing topic, are refused."""
    topic = stage.topic("FIFO")
    producer = stage.producer(topic)
    for fields in ({}, {"deliver_at_ms": (int(time.time()) + 60) * 1000}):
        try:
            producer.send(topic, "of another type", **fields)
        except PeerError:
            continue
        raise AssertionError(f"sent with {fields}")
    assert stage.admin.messages(topic) == []


SCENARIOS: dict[str, Callable[[Stage], None]] = {
    one.__name__: one
    for one in (
        dead_letters,
        dead_letters_in_order,
        recall,
        transaction,
        invisible_time,
        acknowledged_after_a_change,
        delay,
        fifo,
        push,
        normal,
        sql_filter,
        refusals,
    )
}
"""By name, those that wait longest first."""

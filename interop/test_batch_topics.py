"""Topics whose queues count the messages inside records (queue.type=BatchCQ): both brokers, both clients, one store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, PullConsumer, bodies, unique
from interop.peers.line_peer import PeerError
from interop.peers.process import wait_until
from interop.peers.servers import CLUSTER_NAME, Cluster
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.storage.check import check_store

pytestmark = pytest.mark.peer

INDEX = IndexSizes(slots=40, entries=60)
BATCH_ENTRY_BYTES = 46


def create(java: JavaPeer, cluster: Cluster, *, queues: int = 1) -> str:
    """A new topic of batch queues, made by mqadmin."""
    name = unique("Batches")
    printed = java.mqadmin(
        "updateTopic", "-n", cluster.name_server, "-c", CLUSTER_NAME, "-t", name, "-r", str(queues), "-w", str(queues),
        "-a", "+queue.type=BatchCQ",
    )  # fmt: skip
    assert f"create topic to {cluster.broker} success." in printed
    assert "+queue.type=BatchCQ" in printed
    cluster.wait_route(name)
    return name


@pytest.fixture
def batch_topic(java: JavaPeer, cluster: Cluster) -> str:
    cluster.wait_registered()
    return create(java, cluster)


def batch(topic: str, *texts: str) -> list[dict[str, str]]:
    return [{"topic": topic, "body": text, "tags": "Own", "keys": f"key-{text}"} for text in texts]


def read(consumer: PullConsumer, topic: str, count: int, *, offset: int = 0, tags: str = "*") -> list[Any]:
    """The first queue's messages, by as many pulls as it takes; a broker acknowledges before it dispatches.

    A client whose connection was closed, or who waited too long on a busy machine, asks again.
    """
    messages: list[Any] = []

    def complete() -> bool:
        messages.clear()
        following = offset
        try:
            while (pulled := consumer.command("pull", topic, tags=tags, offset=following, max=3))["messages"]:
                messages.extend(pulled["messages"])
                following = pulled["next"]
        except PeerError:
            return False
        return len(messages) >= count

    wait_until(complete, f"{count} messages in {topic}")
    return messages


def shape(messages: list[Any]) -> list[tuple[int, str]]:
    return [(message["queue_offset"], message["body"]) for message in messages]


def test_a_java_producers_batches_are_one_record_each(java_clients: Clients, batch_topic: str, group: str) -> None:
    """The producer gives the batch a unique key, which is all that its answer names."""
    producer = java_clients.producer()
    first = producer.command("send_batch", messages=batch(batch_topic, "one", "two", "three"))
    single = producer.send(batch_topic, "four")
    second = producer.command("send_batch", messages=batch(batch_topic, "five", "six"))
    assert [one["status"] for one in (first, single, second)] == ["SEND_OK"] * 3
    assert [one["queue_offset"] for one in (first, single, second)] == [0, 3, 4]
    assert [(len(one["msg_ids"]), len(one["offset_msg_ids"])) for one in (first, second)] == [(1, 1)] * 2

    consumer = java_clients.pull_consumer(group)
    messages = read(consumer, batch_topic, 6)
    assert shape(messages) == list(enumerate(["one", "two", "three", "four", "five", "six"]))
    assert [message["tags"] for message in messages] == ["Own", "Own", "Own", None, "Own", "Own"]
    assert [message["keys"] for message in messages[:3]] == ["key-one", "key-two", "key-three"]
    assert len({message["msg_id"] for message in messages}) == 6
    assert shape(read(consumer, batch_topic, 2, offset=5)) == [(4, "five"), (5, "six")]
    offsets = consumer.command("offsets", batch_topic, timestamp_ms=messages[-1]["store_timestamp"] + 1000)
    assert (offsets["min"], offsets["max"], offsets["at_time"]) == (0, 6, 4)
    assert offsets["earliest_ms"] == messages[0]["store_timestamp"]
    pulled = consumer.command("pull", batch_topic, tags="Own", offset=0, max=32)
    assert (pulled["messages"], pulled["next"]) == ([], 6)  # only a record's own tags count for the broker


def test_what_a_producer_gathers_can_be_chosen_by_its_tags(java_clients: Clients, batch_topic: str, group: str) -> None:
    """With autoBatch the client makes batches of single sends; their records carry tags and keys."""
    producer = java_clients.producer(auto_batch=True)
    texts = [f"gathered {number}" for number in range(12)]
    fields = [{"topic": batch_topic, "body": text, "tags": "Same", "keys": f"k{text[9:]}"} for text in texts]
    results = producer.command("send_async", messages=fields)
    assert {result["status"] for result in results} == {"SEND_OK"}
    messages = read(java_clients.pull_consumer(group), batch_topic, 12, tags="Same")
    assert sorted(bodies(messages)) == sorted(texts)
    assert [message["queue_offset"] for message in messages] == list(range(12))
    assert all(result["queue_offset"] in range(12) for result in results)


def test_push_consumers_take_every_message_of_a_batch(
    java_clients: Clients, our_clients: Clients, batch_topic: str, group: str
) -> None:
    """Apache's and this project's side by side, each with a group of its own."""
    java_clients.producer().command("send_batch", messages=batch(batch_topic, "one", "two", "three"))
    ours = our_clients.producer(batch_unique_key=True)
    sent = ours.command("send_batch", messages=batch(batch_topic, "four", "five"))
    assert (sent["status"], sent["queue_offset"], len(sent["msg_ids"])) == ("SEND_OK", 3, 1)
    apart = our_clients.producer().command("send_batch", messages=batch(batch_topic, "six", "seven"))
    assert (apart["queue_offset"], len(apart["offset_msg_ids"])) == (5, 2)
    texts = ["one", "two", "three", "four", "five", "six", "seven"]
    for clients, name in ((java_clients, group), (our_clients, f"{group}_ours")):
        consumer = clients.push_consumer(name, batch_topic)
        messages = consumer.wait_bodies(set(texts))
        assert sorted(shape(messages)) == list(enumerate(texts))
        consumer.stop()


# one store, handed between the brokers

OWN, OTHER = "ours", "apache"
TURNS = ((OWN, False), (OTHER, False), (OWN, True))
"""Turns: the broker that writes, and True for a clean stop; the other one opens the store next."""
A_TURN = 12
"""Messages of one turn: three batches of three, and three single ones."""


@attrs.define(eq=False)
class SmallFiles(Cluster):
    """A cluster whose store consists of many small files."""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {
            "mappedFileSizeCommitLog": 16 * 1024,
            "mapperFileSizeBatchConsumeQueue": 10 * BATCH_ENTRY_BYTES,
            "maxHashSlotNum": INDEX.slots,
            "maxIndexNum": INDEX.entries,
            "maxMessageSize": 4096,
        }


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[SmallFiles]:
    cluster = SmallFiles(OWN, tmp_path / "relay")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_each_broker_serves_the_batches_that_the_other_wrote(relay: SmallFiles, java: JavaPeer) -> None:
    """Stopped cleanly and killed; who opens the store goes on with the next queue offset."""
    topic, clients = create(java, relay), Clients(java, relay.name_server)
    expected: list[tuple[int, str]] = []
    for turn, (_, cleanly) in enumerate(TURNS):
        producer = clients.producer(retries=5)
        for number in range(3):
            texts = [f"turn {turn} batch {number} message {place}" for place in range(3)]
            result = producer.command("send_batch", messages=batch(topic, *texts))
            assert result["queue_offset"] == len(expected)
            expected += enumerate(texts, len(expected))
            single = producer.send(topic, f"turn {turn} single {number}")
            assert single["queue_offset"] == len(expected)
            expected.append((len(expected), f"turn {turn} single {number}"))
        assert len(expected) == (turn + 1) * A_TURN
        assert shape(read(clients.pull_consumer(unique("Reader")), topic, len(expected))) == expected
        clients.stop()
        relay.stop_broker() if cleanly else relay.kill_broker()
        if cleanly:
            assert [str(one) for one in check_store(str(relay.store), index_sizes=INDEX)] == []
        relay.kind = OTHER if relay.kind == OWN else OWN
        relay.start_broker()
        relay.wait_route(topic)
        reader = clients.pull_consumer(unique("Reader"))
        assert shape(read(reader, topic, len(expected))) == expected
        assert (reader.command("offsets", topic)["min"], reader.command("offsets", topic)["max"]) == (0, len(expected))
    clients.stop()
    files = sorted((relay.store / "batchconsumequeue" / topic / "0").iterdir())
    assert [file.name for file in files] == [f"{number * 10 * BATCH_ENTRY_BYTES:020d}" for number in range(len(files))]
    assert len(files) >= len(TURNS) * 6 // 10

"""Apache's Java consumers against both brokers: subscriptions, long polling, rebalance, order, and single pulls."""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, bodies, flat
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME
from interop.peers.waiting import ALL_QUEUES, stored, wait_split

pytestmark = pytest.mark.peer

QUICK_MS = 2000
"""Far above a working long poll, far below the 15 s after which a waiting pull comes back by itself."""


def test_a_consumer_sees_only_the_tags_it_subscribed(java_clients: Clients, topic: str, group: str) -> None:
    tags = ["TagA", "TagB", "TagC", None]
    producer = java_clients.producer()
    for number in range(16):
        tag = tags[number % 4]
        producer.send(topic, f"{tag} {number}", **({"tags": tag} if tag else {}))
    producer.send(topic, "TagC last", tags="TagC")
    consumer = java_clients.push_consumer(group, topic, "TagA || TagC")
    wanted = {f"{tags[number % 4]} {number}" for number in range(16) if number % 2 == 0} | {"TagC last"}
    assert sorted(bodies(consumer.wait_bodies(wanted))) == sorted(wanted)


def test_a_waiting_consumer_gets_a_new_message_at_once(java_clients: Clients, topic: str, group: str) -> None:
    """The pulls wait on the broker: a message ends the wait instead of the next poll finding it."""
    consumer = java_clients.push_consumer(group, topic)
    wait_split(consumer)
    producer = java_clients.producer()
    producer.send_all(topic, [f"warm {number}" for number in range(4)])
    consumer.wait_bodies({f"warm {number}" for number in range(4)})
    producer.send_all(topic, [f"quick {number}" for number in range(8)])
    messages = consumer.wait_bodies({f"quick {number}" for number in range(8)})
    late = [one for one in messages[4:] if one["received_at_ms"] - one["born_timestamp"] > QUICK_MS]
    assert (len(messages), late) == (12, [])


def test_queues_are_shared_out_again_when_a_consumer_joins_and_leaves(
    java_clients: Clients, topic: str, group: str
) -> None:
    """Every message is consumed, independent of the owner of its queue at the time."""
    producer = java_clients.producer()
    first = java_clients.push_consumer(group, topic)
    assert wait_split(first) == [ALL_QUEUES]
    expected = [f"alone {number}" for number in range(20)]
    producer.send_all(topic, expected)
    first.wait_bodies(set(expected))

    second = java_clients.push_consumer(group, topic)
    assert sorted(map(len, wait_split(first, second))) == [2, 2]
    together = [f"together {number}" for number in range(40)]
    producer.send_all(topic, together)
    wait_until(
        lambda: set(expected + together) <= set(bodies(first.messages + second.messages)), "both consume everything"
    )
    taken_by_second = {message["queue_id"] for message in second.messages if message["body"] in together}
    assert len(taken_by_second) == 2

    second.stop()
    assert wait_split(first) == [ALL_QUEUES]
    after = [f"after {number}" for number in range(20)]
    producer.send_all(topic, after)
    first.wait_bodies(set(after))
    assert set(bodies(first.messages + second.messages)) == set(expected + together + after)


def test_every_broadcast_consumer_gets_every_message(java_clients: Clients, topic: str, group: str) -> None:
    consumers = [java_clients.push_consumer(group, topic, broadcast=True) for _ in range(2)]
    for consumer in consumers:
        wait_until(lambda one=consumer: one.assigned() == ALL_QUEUES, "a broadcast consumer owns every queue")
    texts = [f"broadcast {number}" for number in range(8)]
    java_clients.producer().send_all(topic, texts)
    for consumer in consumers:
        assert sorted(bodies(consumer.wait_bodies(set(texts)))) == texts


def test_orderly_consumption_keeps_the_order_of_each_queue(java_clients: Clients, topic: str, group: str) -> None:
    """Queues are locked on the broker; a refused first delivery holds its queue back instead of being overtaken."""
    producer = java_clients.producer()
    for step in range(10):
        for order in range(4):
            producer.command("send_ordered", topic=topic, body=f"order {order} step {step}", order_key=order)
    consumer = java_clients.push_consumer(group, topic, orderly=True, refuse=1)
    expected = [[f"order {order} step {step}" for step in range(10)] for order in range(4)]
    messages = consumer.wait_bodies(set(flat(expected)))
    assert len(consumer.refused) == 1
    for order in range(4):
        assert [message["body"] for message in messages if message["queue_id"] == order] == expected[order]


def test_the_locked_queues_of_an_orderly_consumer_pass_to_the_one_that_stays(
    java_clients: Clients, topic: str, group: str
) -> None:
    """Unlock at shutdown lets the other consumer lock them before the lock expires."""
    first = java_clients.push_consumer(group, topic, orderly=True)
    second = java_clients.push_consumer(group, topic, orderly=True)
    wait_split(first, second)
    first.stop()
    wait_split(second)
    texts = [f"passed {number}" for number in range(8)]
    java_clients.producer().send_all(topic, texts)
    assert set(texts) <= set(bodies(second.wait_bodies(set(texts))))


def test_a_new_group_that_asks_for_the_last_offset_of_a_young_queue_starts_at_its_begin(
    java_clients: Clients, topic: str, group: str
) -> None:
    """As long as the queue's first message is in memory the broker answers offset 0 instead of "not found"."""
    java_clients.producer().send_all(topic, [f"early {number}" for number in range(4)])
    consumer = java_clients.push_consumer(group, topic, from_last=True)
    consumer.wait_bodies({f"early {number}" for number in range(4)})


def test_pulls_answer_with_the_four_results_and_the_next_offset(java_clients: Clients, topic: str, group: str) -> None:
    producer, consumer = java_clients.producer(), java_clients.pull_consumer(group)
    queue = {"broker_name": BROKER_NAME, "queue_id": 1}
    for number in range(6):
        producer.command("send_to_queue", topic=topic, body=f"pull {number}", tags="TagA", **queue)
    stored(consumer, topic, 6)

    def pull(offset: int, tags: str = "*", most: int = 32) -> tuple[str, int, int, int, list[str]]:
        result = consumer.command("pull", topic, 1, tags=tags, offset=offset, max=most)
        return result["status"], result["next"], result["min"], result["max"], bodies(result["messages"])

    assert pull(0, most=4) == ("FOUND", 4, 0, 6, [f"pull {number}" for number in range(4)])
    assert pull(4) == ("FOUND", 6, 0, 6, ["pull 4", "pull 5"])
    assert pull(0, tags="TagB") == ("NO_MATCHED_MSG", 6, 0, 6, [])
    assert pull(6) == ("NO_NEW_MSG", 6, 0, 6, [])
    assert pull(60) == ("OFFSET_ILLEGAL", 6, 0, 6, [])
    assert consumer.command("pull", topic, 2, tags="*", offset=0, max=32)["status"] == "NO_NEW_MSG"


def test_a_blocking_pull_returns_with_the_message_that_ends_its_wait(
    java_clients: Clients, topic: str, group: str
) -> None:
    consumer = java_clients.pull_consumer(group)
    producer = java_clients.producer()
    producer.command("send_to_queue", topic=topic, body="first", broker_name=BROKER_NAME, queue_id=0)
    stored(consumer, topic, 1)  # Apache's broker puts it into its queue in another thread
    waiting = consumer.begin("pull", topic, 0, tags="*", offset=1, max=32, block=True)
    producer.command("send_to_queue", topic=topic, body="second", broker_name=BROKER_NAME, queue_id=0)
    result = consumer.peer.finish(waiting)
    assert (result["status"], bodies(result["messages"]), result["next"]) == ("FOUND", ["second"], 2)


def test_offset_questions_of_a_queue(java_clients: Clients, topic: str, group: str) -> None:
    producer, consumer = java_clients.producer(), java_clients.pull_consumer(group)
    queue = {"broker_name": BROKER_NAME, "queue_id": 3}
    for number in range(3):
        producer.command("send_to_queue", topic=topic, body=f"offset {number}", **queue)
    messages = stored(consumer, topic, 3)
    first, last = messages[0]["store_timestamp"], messages[-1]["store_timestamp"]
    before = consumer.command("offsets", topic, 3, timestamp_ms=first - 60_000)
    assert before == {"min": 0, "max": 3, "stored": 0, "earliest_ms": first, "at_time": 0}
    consumer.command("commit_offset", topic, 3, offset=2)
    after = consumer.command("offsets", topic, 3, timestamp_ms=last + 60_000)
    assert (after["stored"], after["at_time"]) == (2, 3)

"""Apache's Java clients against both brokers: delay levels, messages for any time, recalls, retries and dead letters."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interop.peers.clients import Clients, JavaPeer, bodies, unique
from interop.peers.line_peer import PeerError
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, Cluster
from interop.peers.waiting import wait_split

pytestmark = pytest.mark.peer

SOON_MS = 10_000
"""Allowed delay of a message on a busy machine; the timer itself takes up to a second."""


def lateness(message: dict, due_ms: int) -> bool:
    """Return True if a message came neither before its time nor long after it."""
    return 0 <= message["received_at_ms"] - due_ms <= SOON_MS


def test_messages_of_the_delay_levels_come_after_their_delay_as_they_were_sent(
    java_clients: Clients, topic: str, group: str
) -> None:
    """Levels 1 and 2 are 1 s and 5 s; a message of a long level does not hold the others back."""
    consumer = java_clients.push_consumer(group, topic)
    wait_split(consumer)
    producer = java_clients.producer()
    delays = {"five": (2, 5000), "one": (1, 1000), "hours": (18, 0), "at once": (0, 0)}
    sent = {
        body: producer.command(
            "send_to_queue", topic=topic, body=body, tags="TagA", keys="k", broker_name=BROKER_NAME, queue_id=2,
            **({"delay_level": level} if level else {}),
        )
        for body, (level, _) in delays.items()
    }  # fmt: skip
    assert {(one["status"], one["queue_id"], one["recall_handle"]) for one in sent.values()} == {("SEND_OK", 2, None)}
    messages = consumer.wait_bodies({"at once", "one", "five"})
    in_queue = sorted(messages, key=lambda message: message["queue_offset"])  # a listener is called by four threads
    assert bodies(in_queue) == ["at once", "one", "five"]
    for message in messages:
        level, delay_ms = delays[message["body"]]
        assert lateness(message, message["born_timestamp"] + delay_ms)
        assert (message["queue_id"], message["tags"], message["keys"]) == (2, "TagA", "k")
        assert message["reconsume_times"] == 0
        if level:
            kept = {name: message["properties"].get(name) for name in ("DELAY", "REAL_TOPIC", "REAL_QID")}
            assert kept == {"DELAY": str(level), "REAL_TOPIC": topic, "REAL_QID": "2"}
            assert [message["msg_id"]] == sent[message["body"]]["msg_ids"]


def test_messages_for_any_time_come_in_their_second_and_recalled_ones_do_not(
    java_clients: Clients, topic: str, group: str
) -> None:
    consumer = java_clients.push_consumer(group, topic)
    wait_split(consumer)
    producer = java_clients.producer()
    now_ms = int(time.time() * 1000)
    due = {"at": now_ms + 7000, "ms": now_ms + 2000, "seconds": now_ms + 4000}
    sent = [
        producer.send(topic, "at", deliver_ms=due["at"]),
        producer.send(topic, "ms", delay_ms=2000),
        producer.send(topic, "seconds", delay_seconds=4),
    ]
    recalled = producer.send(topic, "recalled", delay_seconds=4)
    assert all(one["recall_handle"] for one in [*sent, recalled])
    answer = producer.command("recall", topic=topic, handle=recalled["recall_handle"])
    assert [answer] == recalled["msg_ids"]
    messages = consumer.wait_bodies({"at", "ms", "seconds"})
    assert bodies(messages) == ["ms", "seconds", "at"]
    for message in messages:
        assert lateness(message, due[message["body"]])
        names = {"TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "REAL_TOPIC", "REAL_QID"}
        assert names <= message["properties"].keys()
        assert int(message["properties"]["TIMER_OUT_MS"]) % 1000 == 0


def test_time_too_far_ahead_and_a_foreign_handle_are_refused(java_clients: Clients, topic: str) -> None:
    producer = java_clients.producer()
    with pytest.raises(PeerError, match="timer message illegal, the delay time should not be bigger than") as refused:
        producer.send(topic, "too far", delay_seconds=259_201)
    assert refused.value.code == 13
    with pytest.raises(PeerError, match="recall handle is invalid"):
        producer.command("recall", topic=topic, handle="bm8gaGFuZGxl")


def test_delayed_messages_outlive_a_kill_of_the_broker_and_come_once(
    java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    producer = java_clients.producer(retries=5)
    before = [producer.send(topic, f"before {number}", delay_level=1)["status"] for number in range(4)]
    levels = [producer.send(topic, f"level {number}", delay_level=3)["status"] for number in range(8)]
    times = [producer.send(topic, f"time {number}", delay_seconds=10)["status"] for number in range(8)]
    assert {*before, *levels, *times} == {"SEND_OK"}
    consumer = java_clients.push_consumer(group, topic)
    first = {f"before {number}" for number in range(4)}
    consumer.wait_bodies(first)
    cluster.kill_broker()
    cluster.start_broker()
    cluster.wait_route(topic)
    expected = first | {f"{word} {number}" for word in ("level", "time") for number in range(8)}
    consumer.wait_bodies(expected)
    pull = java_clients.pull_consumer(f"{group}_pull")
    kept = [pull.command("pull", topic, number, tags="*", offset=0, max=32)["messages"] for number in range(4)]
    stored = [message["body"] for messages in kept for message in messages]
    assert set(stored) == expected
    if cluster.kind == "ours":
        assert len(stored) == len(expected), "Apache's broker delivers again what it delivered before its last save"


def test_refused_message_comes_again_with_its_history_and_ends_in_the_dead_letters(
    java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    """Apache's client looks for its retry topic when it rebalances, every 20 s."""
    producer = java_clients.producer()
    sent = producer.send(topic, "bad", tags="TagA", keys="k")
    consumer = java_clients.push_consumer(group, topic, refuse=1000, retry_level=1, most_retries=2)
    tries = consumer.peer.wait_events("refused", consumer.name, lambda seen: len(seen) >= 3, 60)
    assert [one["reconsume_times"] for one in tries] == [0, 1, 2]
    assert {(one["topic"], one["body"], one["tags"], one["keys"]) for one in tries} == {(topic, "bad", "TagA", "k")}
    for again in tries[1:]:
        kept = {name: again["properties"].get(name) for name in ("RETRY_TOPIC", "REAL_TOPIC", "DELAY", "WAIT")}
        assert kept == {"RETRY_TOPIC": topic, "REAL_TOPIC": f"%RETRY%{group}", "DELAY": "1", "WAIT": "false"}
        assert [again["properties"]["ORIGIN_MESSAGE_ID"]] == sent["offset_msg_ids"]
        assert again["properties"]["UNIQ_KEY"] == sent["msg_ids"][0]
    cluster.wait_route(f"%DLQ%{group}")
    pull = java_clients.pull_consumer(f"{group}_dead")
    (dead,) = pull.command("pull", f"%DLQ%{group}", 0, tags="*", offset=0, max=32, block=True)["messages"]
    assert (dead["body"], dead["reconsume_times"], dead["properties"]["RETRY_TOPIC"]) == ("bad", 3, topic)
    assert [dead["properties"]["ORIGIN_MESSAGE_ID"]] == sent["offset_msg_ids"]
    assert consumer.messages == []


@pytest.mark.parametrize(("first", "second"), [("apache", "ours"), ("ours", "apache")])
def test_messages_that_wait_in_one_brokers_store_are_delivered_by_the_other(
    java: JavaPeer, tmp_path: Path, first: str, second: str
) -> None:
    """Delay levels, times and a recall: the tables, the timer's log and its wheel are read by either side."""
    servers = Cluster(first, tmp_path / "servers")
    clients = Clients(java, servers.name_server)
    try:
        servers.start()
        topic = unique("Topic")
        producer = clients.producer(retries=5)
        producer.send(topic, "done", delay_level=2)
        servers.wait_route(topic)
        consumer = clients.push_consumer(unique("Group"), topic)
        producer.send_all(topic, [f"level {number}" for number in range(4)], delay_level=3)
        producer.send_all(topic, [f"time {number}" for number in range(4)], delay_seconds=16)
        recalled = producer.send(topic, "recalled", delay_seconds=16)
        producer.command("recall", topic=topic, handle=recalled["recall_handle"])
        consumer.wait_bodies({"done"})
        wait_until(lambda: timer_is_noted(servers.store, 6), "the timer has noted all messages and written it down")
        servers.kill_broker() if first == "apache" else servers.stop_broker()
        servers.kind = second
        servers.start_broker()
        expected = ["done", *(f"{word} {number}" for word in ("level", "time") for number in range(4))]
        taken = bodies(consumer.wait_bodies(set(expected), 60))
        assert (set(taken), "recalled" in taken) == (set(expected), False)
        if second == "ours":
            assert sorted(taken) == sorted(expected)
    finally:
        clients.stop()
        servers.stop()


def timer_is_noted(store: Path, count: int) -> bool:
    """Return True if the checkpoint on disk has this many messages in the timer's log."""
    path = store / "config" / "timercheck"
    return path.exists() and int.from_bytes(path.read_bytes()[16:24], "big") >= count

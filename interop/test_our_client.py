"""This project's client library against both clusters, beside Apache's Java client on the same topics and groups."""

from __future__ import annotations

import random
import re
import string

import pytest

from interop.peers.clients import Clients, JavaPeer, LitePullConsumer, bodies, flat, unique
from interop.peers.line_peer import PeerError
from interop.peers.process import wait_until
from interop.peers.servers import CLUSTER_NAME, MAX_MESSAGE_BYTES, Cluster, consumer_offset
from interop.peers.waiting import ALL_QUEUES, stored, wait_split

pytestmark = pytest.mark.peer

QUICK_MS = 2000


def test_sends_of_our_client_are_what_apaches_client_reads(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    fields = {"tags": "TagA", "keys": "key1 key2", "properties": {"colour": "grün"}}
    results = our_clients.producer().send_all(topic, [f"ours {number}" for number in range(8)], **fields)
    assert sorted((result["queue_id"], result["queue_offset"]) for result in results) == [
        (queue_id, offset) for queue_id in ALL_QUEUES for offset in range(2)
    ]
    messages = {message["body"]: message for message in stored(java_clients.pull_consumer(group), topic, 8)}
    for number, result in enumerate(results):
        message = messages[f"ours {number}"]
        assert (message["tags"], message["keys"], message["properties"]["colour"]) == ("TagA", "key1 key2", "grün")
        assert ([message["msg_id"]], [message["offset_msg_id"]]) == (result["msg_ids"], result["offset_msg_ids"])


def test_every_form_of_sending_is_stored(our_clients: Clients, java_clients: Clients, topic: str, group: str) -> None:
    producer = our_clients.producer()
    sends = {
        word: [{"topic": topic, "body": f"{word} {number}"} for number in range(10)]
        for word in ("async", "one-way", "batch")
    }
    assert {result["status"] for result in producer.command("send_async", messages=sends["async"])} == {"SEND_OK"}
    producer.command("send_one_way", messages=sends["one-way"])
    batch = producer.command("send_batch", messages=sends["batch"])
    ordered = [producer.command("send_ordered", topic=topic, body=f"ordered {step}", order_key=2) for step in range(3)]
    assert (len(batch["offset_msg_ids"]), {result["queue_id"] for result in ordered}) == (10, {2})
    big = "compressed " * 2000
    producer.send(topic, big)

    expected = {send["body"] for send in flat(sends.values())} | {f"ordered {step}" for step in range(3)} | {big}
    messages = stored(java_clients.pull_consumer(group), topic, len(expected))
    assert set(bodies(messages)) == expected
    assert [one["body"] for one in messages if one["body"].startswith("ordered")] == [
        f"ordered {step}" for step in range(3)
    ]
    in_batch = [one for one in messages if one["body"].startswith("batch")]
    assert [one["msg_id"] for one in in_batch] == batch["msg_ids"]
    assert [one["offset_msg_id"] for one in in_batch] == batch["offset_msg_ids"]


@pytest.mark.parametrize("kind", ["LZ4", "ZSTD"])
def test_bodies_compressed_in_other_ways_are_what_apaches_client_reads(
    our_clients: Clients, java_clients: Clients, topic: str, group: str, kind: str
) -> None:
    big = f"{kind} " * 4000
    our_clients.producer(compress=kind).send(topic, big)
    (message,) = stored(java_clients.pull_consumer(group), topic, 1)
    assert (message["body"], message["store_size"] < 1000) == (big, True)


def test_sends_gathered_into_batches_are_what_apaches_client_reads(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    """Each send has the ids and the place of its own message."""
    sends = [{"topic": topic, "body": f"gathered {number}", "tags": "TagA"} for number in range(20)]
    results = our_clients.producer(auto_batch=True).command("send_async", messages=sends)
    messages = {message["body"]: message for message in stored(java_clients.pull_consumer(group), topic, 20)}
    assert len({result["queue_id"] for result in results}) == 1
    for send, result in zip(sends, results, strict=True):
        message = messages[send["body"]]
        assert ([message["msg_id"]], [message["offset_msg_id"]]) == (result["msg_ids"], result["offset_msg_ids"])
        assert (message["queue_offset"], message["tags"]) == (result["queue_offset"], "TagA")


def test_group_stays_known_by_heartbeats_without_subscriptions(
    our_clients: Clients, java_clients: Clients, java: JavaPeer, cluster: Cluster, topic: str, group: str
) -> None:
    ours = our_clients.push_consumer(group, topic, "TagA", heartbeat_v2=True)
    theirs = java_clients.push_consumer(group, topic, "TagA")
    wait_split(ours, theirs)
    texts = {f"number {number}" for number in range(16)}
    our_clients.producer().send_all(topic, sorted(texts), tags="TagA")
    wait_until(lambda: texts == set(bodies(ours.messages + theirs.messages)), "both consume everything")
    printed = java.mqadmin("consumerConnection", "-n", cluster.name_server, "-g", group)
    assert re.search(rf"{topic} +TagA", printed), printed


def test_our_consumer_reads_what_apaches_client_sends_by_tag_and_at_once(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    """Single, batched and compressed messages; each ends the wait of a long poll."""
    consumer = our_clients.push_consumer(group, topic, "TagA || TagC")
    wait_split(consumer)
    producer = java_clients.producer()
    big = "compressed " * 2000
    fields = {"tags": "TagA", "keys": "key1 key2", "properties": {"colour": "grün"}}
    results = producer.send_all(topic, ["single", big], **fields)
    producer.send_all(topic, ["not wanted"], tags="TagB")
    batch = [{"topic": topic, "body": f"batch {number}", "tags": "TagC"} for number in range(5)]
    producer.command("send_batch", messages=batch)

    messages = consumer.wait_bodies({"single", big, *(item["body"] for item in batch)})
    assert sorted(bodies(messages)) == sorted(["single", big, *(item["body"] for item in batch)])
    single = next(message for message in messages if message["body"] == "single")
    assert (single["tags"], single["keys"], single["properties"]["colour"]) == ("TagA", "key1 key2", "grün")
    assert ([single["msg_id"]], [single["offset_msg_id"]]) == (results[0]["msg_ids"], results[0]["offset_msg_ids"])
    assert [one for one in messages if one["received_at_ms"] - one["born_timestamp"] > QUICK_MS] == []


def test_our_consumer_and_apaches_share_one_group(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    """Both sides compute the same shares from the same member list, when one joins and when one leaves."""
    producer = java_clients.producer()
    theirs = java_clients.push_consumer(group, topic)
    assert wait_split(theirs) == [ALL_QUEUES]
    ours = our_clients.push_consumer(group, topic)
    assert sorted(map(len, wait_split(theirs, ours))) == [2, 2]
    together = [f"together {number}" for number in range(40)]
    producer.send_all(topic, together)
    wait_until(lambda: set(together) == set(bodies(theirs.messages + ours.messages)), "both consume everything")
    assert len({message["queue_id"] for message in ours.messages}) == 2

    theirs.stop()
    assert wait_split(ours) == [ALL_QUEUES]
    after = [f"after {number}" for number in range(20)]
    our_clients.producer().send_all(topic, after)
    ours.wait_bodies(set(after))

    back = java_clients.push_consumer(group, topic)
    wait_split(ours, back)
    ours.stop()
    assert wait_split(back) == [ALL_QUEUES]
    last = [f"last {number}" for number in range(8)]
    producer.send_all(topic, last)
    assert sorted(bodies(back.wait_bodies(set(last)))) == last


def test_offsets_of_our_consumer_survive_its_restart(our_clients: Clients, topic: str, group: str) -> None:
    producer = our_clients.producer()
    for word in ("first", "second"):
        texts = [f"{word} {number}" for number in range(8)]
        producer.send_all(topic, texts)
        consumer = our_clients.push_consumer(group, topic)
        consumer.wait_bodies(set(texts))
        consumer.stop()
        assert sorted(bodies(consumer.messages)) == texts


def test_apaches_consumer_goes_on_where_ours_stopped(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    producer = our_clients.producer()
    takers = (our_clients, java_clients, our_clients)
    for number, clients in enumerate(takers):
        texts = [f"round {number} {count}" for count in range(8)]
        producer.send_all(topic, texts)
        consumer = clients.push_consumer(group, topic)
        consumer.wait_bodies(set(texts))
        consumer.stop()
        assert sorted(bodies(consumer.messages)) == texts


def test_our_orderly_consumer_and_apaches_keep_one_order(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    """A refused call blocks its queue; queues move between members in both directions, without a message out of order."""
    producer = java_clients.producer()
    sent: list[list[str]] = [[] for _ in ALL_QUEUES]

    def send(steps: int) -> set[str]:
        for _ in range(steps):
            for order in ALL_QUEUES:
                sent[order].append(f"order {order} step {len(sent[order])}")
                producer.command("send_ordered", topic=topic, body=sent[order][-1], order_key=order)
        return set(flat(sent))

    ours = our_clients.push_consumer(group, topic, orderly=True, refuse=1)
    expected = send(5)
    assert len(ours.wait_bodies(expected)) == len(expected)
    assert len(ours.refused) == 1
    theirs = java_clients.push_consumer(group, topic, orderly=True)
    wait_split(ours, theirs)
    expected = send(5)
    wait_until(lambda: expected == set(bodies(ours.messages + theirs.messages)), "both consume everything")
    assert theirs.messages
    ours.stop()
    wait_split(theirs)
    expected = send(5)
    wait_until(lambda: expected == set(bodies(ours.messages + theirs.messages)), "Apache's consumes the rest")
    for order in ALL_QUEUES:
        taken = [one["body"] for one in [*ours.messages, *theirs.messages] if one["queue_id"] == order]
        assert list(dict.fromkeys(taken)) == sent[order]


def test_our_lite_pull_consumer_goes_on_where_apaches_stopped_and_the_other_way_round(
    our_clients: Clients, java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    producer = java_clients.producer()
    for number, clients in enumerate((java_clients, our_clients, java_clients)):
        texts = [f"round {number} {count}" for count in range(8)]
        producer.send_all(topic, texts, tags="TagA")
        producer.send_all(topic, [f"not wanted {number}"] * 4, tags="TagB")
        consumer = clients.lite_pull_consumer(group, topic, tags="TagA")
        assert sorted(bodies(consumer.poll_bodies(set(texts)))) == texts
        wait_committed(consumer, cluster, group, topic, 3 * number + 2)
        consumer.stop()


def wait_committed(consumer: LitePullConsumer, cluster: Cluster, group: str, topic: str, least: int) -> None:
    """Commit until every queue's offset at the broker is that high; whether a last message not wanted counts is open.

    Apache's client commits by a one-way request, which is lost where its connection ends meanwhile.
    """

    def committed() -> bool:
        consumer.command("commit")
        return all(consumer_offset(cluster.broker_port, group, topic, one) >= least for one in ALL_QUEUES)

    wait_until(committed, f"all queues are committed to {least}")


def test_chosen_queues_of_our_lite_pull_consumer_are_read_from_where_it_seeks(
    our_clients: Clients, topic: str, group: str
) -> None:
    texts = [f"number {number}" for number in range(5)]
    producer = our_clients.producer()
    for text in texts:
        producer.command("send_ordered", topic=topic, body=text, order_key=1)
    consumer = our_clients.lite_pull_consumer(group, topic, queue_ids=[1])
    messages = consumer.poll_bodies(set(texts))
    assert (bodies(messages), consumer.command("lite_assigned")) == (texts, [1])
    consumer.command("seek", 1, offset=3)
    assert bodies(consumer.poll_bodies({texts[4]})) == texts[3:]
    consumer.command("seek_to_begin", 1)
    assert bodies(consumer.poll_bodies({texts[4]})) == texts
    consumer.command("seek_to_end", 1)
    assert consumer.command("poll", timeout_ms=300) == []
    assert consumer.command("lite_offsets", 1, timestamp_ms=messages[-1]["store_timestamp"] + 60_000)["at_time"] == 5


@pytest.mark.parametrize("asking", ["ours", "apache"])
def test_requests_and_replies_between_our_client_and_apaches(
    our_clients: Clients, java_clients: Clients, topic: str, group: str, asking: str
) -> None:
    """Our producer is answered by Apache's consumer, and the other way round; the large body travels compressed."""
    askers, answerers = (our_clients, java_clients) if asking == "ours" else (java_clients, our_clients)
    answerers.answering_consumer(group, topic)
    producer = askers.producer()
    for text in ("ping", "large " + "x" * 8000):
        reply = producer.command("request", topic=topic, body=text, timeout_ms=20_000)
        assert (reply["body"], reply["topic"]) == (f"reply to {text}", f"{CLUSTER_NAME}_REPLY_TOPIC")
        assert {"ARRIVE_TIME", "PUSH_REPLY_TIME", "CORRELATION_ID"} <= reply["properties"].keys()


def test_traces_of_our_client_are_what_apaches_mqadmin_reads(
    our_clients: Clients, java: JavaPeer, cluster: Cluster, topic: str, group: str
) -> None:
    traces = "RMQ_SYS_TRACE_TOPIC"
    (key,) = our_clients.producer(trace=traces).send(topic, "traced", tags="TagA", keys="k1")["msg_ids"]
    our_clients.push_consumer(group, topic, trace=traces).wait_bodies({"traced"})
    printed = ""

    def is_traced() -> bool:
        nonlocal printed
        printed = java.mqadmin("queryMsgTraceById", "-n", cluster.name_server, "-i", key)
        return "Pub" in printed and "Sub" in printed

    wait_until(is_traced, "the traces of the send and of its consumption")
    assert re.search(r"Pub .* success\s", printed), printed
    assert re.search(rf"Sub +{group} .* success\s", printed), printed


def test_our_consumer_filters_by_expression_and_a_bad_one_is_refused_at_its_start(
    our_clients: Clients, topic: str, group: str
) -> None:
    with pytest.raises(PeerError) as refused:
        our_clients.push_consumer(group, topic, sql="price > > 3")
    assert refused.value.code == 23
    producer = our_clients.producer()
    for number in range(6):
        producer.send(topic, f"{number}", tags="TagA", properties={"price": str(number)})
    consumer = our_clients.push_consumer(group, topic, sql="price BETWEEN 2 AND 3 AND TAGS = 'TagA'")
    assert sorted(bodies(consumer.wait_bodies({"2", "3"}))) == ["2", "3"]


def test_our_clients_share_a_namespace_with_apaches(
    our_clients: Clients, java_clients: Clients, cluster: Cluster, group: str
) -> None:
    topic, space = unique("Topic"), unique("space")
    our_clients.producer(namespace=space).send(topic, "ours")
    cluster.wait_route(f"{space}%{topic}")
    java_clients.producer(namespace=space).send(topic, "theirs")
    for clients in (our_clients, java_clients):
        consumer = clients.push_consumer(group, topic, namespace=space)
        messages = consumer.wait_bodies({"ours", "theirs"})
        assert {message["topic"] for message in messages} == {topic}
        consumer.stop()
        group = unique("Group")


def test_our_producers_timed_message_is_recalled(
    our_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    """A handle of ours works in Apache's client, and the other way round."""
    consumer = our_clients.push_consumer(group, topic)
    wait_split(consumer)
    ours, theirs = our_clients.producer(), java_clients.producer()
    for sender, other in ((ours, theirs), (theirs, ours)):
        sent = sender.send(topic, "recalled", delay_seconds=3)
        assert [other.command("recall", topic=topic, handle=sent["recall_handle"])] == sent["msg_ids"]
    ours.send(topic, "later", delay_seconds=4)
    assert bodies(consumer.wait_bodies({"later"})) == ["later"]
    with pytest.raises(PeerError, match="recall handle is invalid"):
        ours.command("recall", topic=topic, handle="bm8gaGFuZGxl")


def test_a_refusal_carries_the_brokers_code(our_clients: Clients, cluster: Cluster, topic: str) -> None:
    """A body that the client allows and this broker does not, compressed as it is."""
    producer = our_clients.producer()
    noise = "".join(random.Random(3).choices(string.ascii_letters, k=3 * MAX_MESSAGE_BYTES))
    with pytest.raises(PeerError) as refused:
        producer.send(topic, noise)
    assert refused.value.code == 13
    assert producer.send(topic, "small")["status"] == "SEND_OK"

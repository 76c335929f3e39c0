"""Our push consumer popping at both brokers, beside Apache's in one group."""

from __future__ import annotations

from interop.peers.clients import Clients, JavaPeer, bodies
from interop.peers.process import wait_until
from interop.peers.servers import Cluster
from interop.peers.waiting import ALL_QUEUES, has_committed_all, wait_split
from interop.test_pop import INVISIBLE_MS, popping, pytestmark, set_mode, taken, wait_popping

__all__ = ["popping", "pytestmark"]


def test_our_consumer_and_apaches_share_what_they_pop(
    our_clients: Clients, java_clients: Clients, topic: str, popping: str
) -> None:
    producer = java_clients.producer()
    sent = [f"early {number}" for number in range(40)]
    producer.send_all(topic, sent, tags="TagA", keys="k", properties={"colour": "red"})
    producer.send_all(topic, ["not wanted"], tags="TagB")
    consumers = [clients.pop_consumer(popping, topic, "TagA") for clients in (our_clients, java_clients)]
    wait_popping(*consumers)

    def both_took_some() -> bool:
        late = [f"late {len(sent) + number}" for number in range(4)]
        producer.send_all(topic, late, tags="TagA")
        sent.extend(late)
        return all(one.messages for one in consumers)

    wait_until(both_took_some, "both consumers took messages")
    wait_until(lambda: set(sent) <= set(bodies(taken(consumers))), "all messages are taken")
    assert sorted(bodies(taken(consumers))) == sorted(sent)
    for message in consumers[0].messages:
        assert (message["topic"], message["tags"], message["reconsume_times"]) == (topic, "TagA", 0)
        if message["body"].startswith("early"):
            assert (message["keys"], message["properties"]["colour"]) == ("k", "red")


def test_what_our_consumer_did_not_acknowledge_comes_again(our_clients: Clients, topic: str, popping: str) -> None:
    consumer = our_clients.pop_consumer(popping, topic, invisible_ms=INVISIBLE_MS)
    wait_popping(consumer)
    producer = our_clients.producer()
    sent = dict(zip(("refuse", "hold"), producer.send_all(topic, ["refuse", "hold"], tags="TagA"), strict=True))

    def came_again() -> bool:
        producer.send(topic, "nudge")
        return sent.keys() <= set(bodies(consumer.messages))

    wait_until(came_again, "both messages came again")
    assert (bodies(consumer.refused), bodies(consumer.held)) == (["refuse"], ["hold"])
    for message in consumer.messages:
        if message["body"] != "nudge":
            assert (message["topic"], message["reconsume_times"]) == (topic, 1)
            assert [message["msg_id"]] == sent[message["body"]]["msg_ids"]


def test_what_our_consumer_acknowledged_does_not_come_to_who_pulls_later(
    our_clients: Clients, java: JavaPeer, cluster: Cluster, topic: str, popping: str
) -> None:
    producer = our_clients.producer()
    first = our_clients.pop_consumer(popping, topic)
    popped = [f"popped {number}" for number in range(12)]
    producer.send_all(topic, popped)
    first.wait_bodies(set(popped))

    wait_until(
        lambda: has_committed_all(java, cluster.name_server, popping, topic), "the broker has committed what was popped"
    )
    first.stop()
    set_mode(java, cluster, topic, popping, "PULL")
    puller = our_clients.pop_consumer(popping, topic)
    assert wait_split(puller) == [ALL_QUEUES]
    pulled = [f"pulled {number}" for number in range(8)]
    producer.send_all(topic, pulled)
    assert sorted(bodies(puller.wait_bodies(set(pulled)))) == sorted(pulled)

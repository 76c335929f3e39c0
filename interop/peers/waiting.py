"""Waiting for what a group of consumers reaches together, and for what a broker shows a moment after it answered."""

from __future__ import annotations

from collections.abc import Callable, Collection

from interop.peers.clients import Clients, JavaPeer, PullConsumer, PushConsumer, bodies, flat
from interop.peers.line_peer import Record
from interop.peers.process import PeerFailed, wait_until

ALL_QUEUES = [0, 1, 2, 3]
"""Queue ids of the `topic` fixture."""


def wait_split(*consumers: PushConsumer) -> list[list[int]]:
    """The queues of each consumer, once together they own all of them and the shares differ by one at most."""
    shares: list[list[int]] = []

    def even() -> bool:
        shares[:] = [consumer.assigned() for consumer in consumers]
        sizes = [len(share) for share in shares]
        return sorted(flat(shares)) == ALL_QUEUES and max(sizes) - min(sizes) <= 1

    wait_until(even, f"queues split over {len(consumers)} consumers")
    return shares


def eventually(holds: Callable[[], bool], seconds: float) -> bool:
    """Return True if a condition becomes true in time."""
    try:
        wait_until(holds, "it holds", seconds)
    except PeerFailed:
        return False
    return True


def has_committed_all(java: JavaPeer, name_server: str, group: str, topic: str, queues: int = 4) -> bool:
    """Return True if a group has committed all queues of a topic to their ends, by mqadmin."""
    printed = java.mqadmin("consumerProgress", "-n", name_server, "-g", group, "-t", topic)
    return printed.count(f"\n{topic} ") == queues and "Diff Total: 0" in printed


def consume_for_good(
    clients: Clients, java: JavaPeer, group: str, topic: str, expected: Collection[str], queues: int = 4
) -> list[str]:
    """Take messages of a topic with a consumer that then leaves, until the broker knows that the group has all.

    Returns the bodies that this consumer took, sorted. Its commits are one-way requests, and Apache's broker loses one
    of a group's first commits if two arrive together (ConsumerOffsetManager.commitOffset): then another consumer comes.
    """
    consumer = clients.push_consumer(group, topic)
    consumer.wait_bodies(set(expected))
    consumer.stop()

    def all_is_committed() -> bool:
        return has_committed_all(java, clients.name_server, group, topic, queues)

    if not eventually(all_is_committed, 10):
        again = clients.push_consumer(group, topic)
        wait_until(all_is_committed, f"{group} has committed all of {topic}", 60)
        again.stop()
    return sorted(bodies(consumer.messages))


def stored(consumer: PullConsumer, topic: str, count: int) -> list[Record]:
    """Every message of the topic, queue by queue, once there are `count`: a broker acknowledges before it dispatches."""
    messages: list[Record] = []

    def complete() -> bool:
        pulls = [consumer.command("pull", topic, queue_id, tags="*", offset=0, max=100) for queue_id in ALL_QUEUES]
        messages[:] = flat(pull["messages"] for pull in pulls)
        return len(messages) >= count

    wait_until(complete, f"{count} messages in {topic}")
    return messages

"""Waiting for what a group of consumers reaches together, and for what a broker shows a moment after it answered."""

from __future__ import annotations

from interop.peers.clients import PullConsumer, PushConsumer, flat
from interop.peers.line_peer import Record
from interop.peers.process import wait_until

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


def stored(consumer: PullConsumer, topic: str, count: int) -> list[Record]:
    """Every message of the topic, queue by queue, once there are `count`: a broker acknowledges before it dispatches."""
    messages: list[Record] = []

    def complete() -> bool:
        pulls = [consumer.command("pull", topic, queue_id, tags="*", offset=0, max=100) for queue_id in ALL_QUEUES]
        messages[:] = flat(pull["messages"] for pull in pulls)
        return len(messages) >= count

    wait_until(complete, f"{count} messages in {topic}")
    return messages

"""Divides queues by a ring of hashes: most queues stay when a member comes or goes (Apache: ConsistentHashRouter)."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Sequence

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.routing.allocate_strategies import AllocateStrategy

VIRTUAL_NODES = 10
"""Places of one member on the ring."""

HashFunction = Callable[[str], int]


def md5_hash(key: str) -> int:
    """Return the first four bytes of the MD5 as an unsigned number."""
    return int(hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()[:8], 16)


def allocate_consistent_hash(
    virtual_nodes: int = VIRTUAL_NODES, hash_function: HashFunction = md5_hash
) -> AllocateStrategy:
    """Give each queue to the next member after it on the ring (Apache: AllocateMessageQueueConsistentHash)."""
    if virtual_nodes < 0:
        raise ValueError(f"{virtual_nodes} virtual nodes; must be 0 or more")

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        ring = {hash_function(f"{one}-{index}"): one for one in client_ids for index in range(virtual_nodes)}
        places = sorted(ring)
        if not places:
            return []

        def member(queue: MessageQueue) -> str:
            place = bisect.bisect_left(places, hash_function(_java_text(queue)))
            return ring[places[place % len(places)]]

        return [queue for queue in queues if member(queue) == client_id]

    return allocate


def _java_text(queue: MessageQueue) -> str:
    """Return the text of MessageQueue.toString."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"

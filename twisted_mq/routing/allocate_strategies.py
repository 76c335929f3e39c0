"""Strategies that divide queues among a group: every member computes the same table from the same sorted lists.

STRATEGIES has the two that servers know by name; machine_rooms.py and consistent_hash.py have more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from twisted_mq.protocol.bodies import MessageQueue

Queue = TypeVar("Queue")

AllocateStrategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
"""(own client id, all queues sorted, all client ids sorted) -> own queues.

A member that is not in the list gets none: the broker has not seen its heartbeat yet.
"""


def allocate_averagely(client_id: str, queues: Sequence[Queue], client_ids: Sequence[str]) -> list[Queue]:
    """Give each member neighbouring queues; the first members get one more (Apache: AllocateMessageQueueAveragely)."""
    if client_id not in client_ids:
        return []
    share, rest = divmod(len(queues), len(client_ids))
    index = client_ids.index(client_id)
    start = index * share + min(index, rest)
    return list(queues[start : start + share + (1 if index < rest else 0)])


def allocate_averagely_by_circle(client_id: str, queues: Sequence[Queue], client_ids: Sequence[str]) -> list[Queue]:
    """Deal the queues out one by one (Apache: AllocateMessageQueueAveragelyByCircle)."""
    if client_id not in client_ids:
        return []
    return list(queues[client_ids.index(client_id) :: len(client_ids)])


def allocate_by_config(own: Sequence[MessageQueue]) -> AllocateStrategy:
    """Take these queues, regardless of what other members have (Apache: AllocateMessageQueueByConfig)."""
    chosen = list(own)

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        return list(chosen)

    return allocate


STRATEGIES: dict[str, AllocateStrategy] = {
    "AVG": allocate_averagely,
    "AVG_BY_CIRCLE": allocate_averagely_by_circle,
}
"""Strategies by the names that Apache's give themselves."""

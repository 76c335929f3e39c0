"""Decides which queues a consumer gets when the broker divides them (Apache: QueryAssignmentProcessor). Pure rules."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.broker.options import MessageRequestMode
from twisted_mq.protocol.bodies import MessageQueue, SetMessageRequestModeRequestBody
from twisted_mq.routing.allocate_strategies import STRATEGIES, AllocateStrategy

ANY_QUEUE = -1
"""The queue id that means all queues of a broker: a pop takes messages from any of them."""


class NothingToDivide(ValueError):
    """Raised when there is no sound answer, so that the consumer keeps its queues."""


@attrs.frozen
class Group:
    """A consumer that asks, and the members of its group."""

    client_id: str
    client_ids: Sequence[str]
    """Client ids, sorted."""


def divide(
    strategy_name: str | None, queues: Sequence[MessageQueue], group: Group, mode: SetMessageRequestModeRequestBody
) -> list[MessageQueue]:
    """Return the client's share of the queues, sorted; empty for a client that is not in the group (yet).

    With POP, `pop_share_queue_num` + 1 members share a queue. With 0, a negative number or one that covers the
    whole group, every member pops from all queues. Raises NothingToDivide.
    """
    strategy = STRATEGIES.get(strategy_name or "")
    if strategy is None:
        raise NothingToDivide(f"strategy {strategy_name} is not one of {', '.join(STRATEGIES)}")
    if mode.mode == MessageRequestMode.POP and not 0 < mode.pop_share_queue_num < len(group.client_ids) - 1:
        return sorted({attrs.evolve(queue, queue_id=ANY_QUEUE) for queue in queues})
    if not group.client_id or not queues or not group.client_ids:
        raise NothingToDivide("client id, queues or members are missing")
    if mode.mode != MessageRequestMode.POP:
        return sorted(strategy(group.client_id, queues, group.client_ids))
    return sorted(_shared(strategy, queues, group, mode.pop_share_queue_num))


def _shared(strategy: AllocateStrategy, queues: Sequence[MessageQueue], group: Group, share: int) -> set[MessageQueue]:
    """Return the queues of the client and of the `share` members after it; one queue if there are more members than queues."""
    members = group.client_ids
    if group.client_id not in members:
        return set()
    index = members.index(group.client_id)
    if len(members) > len(queues):
        return {queues[index % len(queues)]}
    owners = [members[(index + step) % len(members)] for step in range(share + 1)]
    return {queue for owner in owners for queue in strategy(owner, queues, members)}

"""Which queues a consumer gets when the broker divides them (Apache: QueryAssignmentProcessor). Pure rules."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.broker.options import MessageRequestMode
from twisted_mq.protocol.bodies import MessageQueue, SetMessageRequestModeRequestBody
from twisted_mq.routing.allocate_strategies import STRATEGIES, AllocateStrategy

ANY_QUEUE = -1
"""Queue id that stands for all queues of a broker: a pop takes from whichever has messages."""


class NothingToDivide(ValueError):
    """There is no sound answer: the consumer is to keep the queues that it has."""


@attrs.frozen
class Group:
    """A consumer that asks, among the members of its group."""

    client_id: str
    client_ids: Sequence[str]
    """Sorted."""


def divide(
    strategy_name: str | None, queues: Sequence[MessageQueue], group: Group, mode: SetMessageRequestModeRequestBody
) -> list[MessageQueue]:
    """The client's queues of those given, sorted; none for a client that is not in the group (yet).

    With POP a queue is shared by `pop_share_queue_num` + 1 members; 0, a negative number and one that reaches the
    whole group let every member pop from all queues. Raises NothingToDivide.
    """
    strategy = STRATEGIES.get(strategy_name or "")
    if strategy is None:
        raise NothingToDivide(f"strategy {strategy_name} is none of {', '.join(STRATEGIES)}")
    if mode.mode == MessageRequestMode.POP and not 0 < mode.pop_share_queue_num < len(group.client_ids) - 1:
        return sorted({attrs.evolve(queue, queue_id=ANY_QUEUE) for queue in queues})
    if not group.client_id or not queues or not group.client_ids:
        raise NothingToDivide("client id, queues or members are missing")
    if mode.mode != MessageRequestMode.POP:
        return sorted(strategy(group.client_id, queues, group.client_ids))
    return sorted(_shared(strategy, queues, group, mode.pop_share_queue_num))


def _shared(strategy: AllocateStrategy, queues: Sequence[MessageQueue], group: Group, share: int) -> set[MessageQueue]:
    """The queues of the client and of the `share` members behind it; with more members than queues one of them."""
    members = group.client_ids
    if group.client_id not in members:
        return set()
    index = members.index(group.client_id)
    if len(members) > len(queues):
        return {queues[index % len(queues)]}
    owners = [members[(index + step) % len(members)] for step in range(share + 1)]
    return {queue for owner in owners for queue in strategy(owner, queues, members)}

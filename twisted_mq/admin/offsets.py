"""Moves of a group's offsets: preview and execution (Apache: DefaultMQAdminExtImpl, resetOffsetByTimestampOld)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls, select_address
from twisted_mq.admin.groups import addresses_of, broker_stats
from twisted_mq.admin.queues import broker_address, offset_at, pull_at
from twisted_mq.protocol.bodies import (
    ConsumeStats,
    MessageQueue,
    OffsetWrapper,
    ResetOffsetBody,
    RollbackStats,
    SubscriptionGroupConfig,
    TopicRouteData,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    ResetOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.wire.header_codec import decode_header

TO_THE_END = -1
"""The time value that means the end of each queue."""

Goals = Mapping[str, Mapping[MessageQueue, int | None]]
"""Broker address -> queue -> the offset to move to; None for the queue's end."""


@attrs.frozen
class Move:
    """A move in one queue.

    `before` is None if the group has no offset. `stored_ms` is the store time of the message at `after`; None at the end.
    """

    queue: MessageQueue
    address: str
    before: int | None
    after: int
    stored_ms: int | None = None

    @property
    def again(self) -> int:
        """The number of consumed messages that the group would receive again."""
        return max(0, (self.before or 0) - self.after)

    @property
    def skipped(self) -> int:
        """The number of messages that the group would never receive."""
        return max(0, self.after - (self.before or 0))

    @property
    def goes_back(self) -> bool:
        return self.before is not None and self.after <= self.before


# preview


async def goals_of_time(admin: AdminCalls, topic: str, route: TopicRouteData, time_ms: int) -> Goals:
    """Return the offset of each queue of a topic at a time."""
    goals: dict[str, dict[MessageQueue, int | None]] = {}
    for data in route.queue_datas or ():
        address = broker_address(route, data.broker_name)
        for queue_id in range(data.read_queue_nums):
            queue = MessageQueue(topic, data.broker_name, queue_id)
            goal = None if time_ms == TO_THE_END else await offset_at(admin, address, queue, time_ms)
            goals.setdefault(address, {})[queue] = goal
    return goals


async def planned_moves(
    admin: AdminCalls, group: str, goals: Goals, advance: Callable[[int], None] = lambda amount: None
) -> list[Move]:
    """Return the move in each queue, sorted. Changes nothing. `advance` is called with the number of queues just read."""
    moves: list[Move] = []
    for address, queues in goals.items():
        for move in await _moves_at(admin, group, address, queues):
            moves.append(attrs.evolve(move, stored_ms=await _stored_ms(admin, move)))
            advance(1)
    return sorted(moves, key=lambda move: move.queue)


async def _moves_at(
    admin: AdminCalls, group: str, address: str, queues: Mapping[MessageQueue, int | None]
) -> Iterator[Move]:
    try:
        stats = await broker_stats(admin, address, group)
    except BrokerError:  # the broker does not know the group
        stats = ConsumeStats()
    held = {(queue.topic, queue.queue_id): offset.consumer_offset for queue, offset in stats.offset_table.items()}
    ends = await _ends(admin, address, {queue.topic for queue in queues})
    return (
        Move(queue, address, held.get(key), ends.get(key, 0) if goal is None else goal)
        for queue, goal in queues.items()
        for key in [(queue.topic, queue.queue_id)]
    )


async def _ends(admin: AdminCalls, address: str, topics: set[str]) -> dict[tuple[str, int], int]:
    """Return the end of each queue of these topics at a broker."""
    tables = [(await admin.topic_stats(address, topic)).offset_table for topic in sorted(topics)]
    return {(queue.topic, queue.queue_id): offset.max_offset for table in tables for queue, offset in table.items()}


async def _stored_ms(admin: AdminCalls, move: Move) -> int | None:
    found = (await pull_at(admin, move.address, move.queue, move.after, 1)).messages
    return found[0].store_timestamp if found else None


# execution


async def commit_offset(admin: AdminCalls, address: str, group: str, queue: MessageQueue, offset: int) -> None:
    """Set the offset of a group in a queue of the broker."""
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        commit_offset=offset,
        bname=queue.broker_name or None,
    )
    await admin.invoke(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)


async def put_offset(admin: AdminCalls, address: str, group: str, queue: MessageQueue, offset: int) -> None:
    """Set an offset as `commit_offset` does; create the group if the broker does not have it."""
    try:
        await commit_offset(admin, address, group, queue, offset)
    except BrokerError as error:
        if error.response_code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
            raise
        config = encode_body(SubscriptionGroupConfig(group_name=group))
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=config)
        await commit_offset(admin, address, group, queue, offset)


async def reset_at(admin: AdminCalls, address: str, header: ResetOffsetRequestHeader) -> dict[MessageQueue, int]:
    """Reset offsets at one broker; return the queues that it moved, with their offsets."""
    answer = await admin.invoke(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    return decode_body(ResetOffsetBody, answer.body).offset_table if answer.body else {}


async def reset_members(
    admin: AdminCalls, route: TopicRouteData, header: ResetOffsetRequestHeader
) -> dict[MessageQueue, int] | None:
    """Reset the offsets of connected consumers; return the new offsets, None if no consumer is connected."""
    table: dict[MessageQueue, int] = {}
    try:
        for address in addresses_of(route):
            table.update(await reset_at(admin, address, header))
    except BrokerError as error:
        if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return None
    return table


async def reset_stored(
    admin: AdminCalls, group: str, topic: str, time_ms: int, force: bool, route: TopicRouteData
) -> AsyncIterator[RollbackStats]:
    """Move a group without running consumers to a time (-1 for the end), queue by queue."""
    for broker in route.broker_datas or ():
        address = select_address(broker.broker_addrs)
        if address is None:
            continue
        held = await _held(admin, address, group, topic, route, broker.broker_name)
        for queue in sorted(held):
            yield await _reset(admin, address, group, queue, held[queue], time_ms, force)


async def _held(
    admin: AdminCalls, address: str, group: str, topic: str, route: TopicRouteData, broker_name: str
) -> dict[MessageQueue, OffsetWrapper]:
    """Return the group's offset in each queue; the begin of each queue if the group never consumed."""
    stats = await broker_stats(admin, address, group)
    held = {queue: offset for queue, offset in stats.offset_table.items() if queue.topic == topic}
    if held:
        return held
    ends = (await admin.topic_stats(address, topic)).offset_table
    reads = next((data.read_queue_nums for data in route.queue_datas if data.broker_name == broker_name), 0)
    return {
        queue: OffsetWrapper(broker_offset=offset.max_offset, consumer_offset=offset.min_offset)
        for queue, offset in ends.items()
        if queue.queue_id < reads
    }


async def _reset(
    admin: AdminCalls,
    address: str,
    group: str,
    queue: MessageQueue,
    held: OffsetWrapper,
    time_ms: int,
    force: bool,
) -> RollbackStats:
    goal = await (_end(admin, address, queue) if time_ms == TO_THE_END else offset_at(admin, address, queue, time_ms))
    moves = force or goal <= held.consumer_offset
    if moves:
        await commit_offset(admin, address, group, queue, goal)
    return RollbackStats(
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        broker_offset=held.broker_offset,
        consumer_offset=held.consumer_offset,
        timestamp_offset=goal,
        rollback_offset=goal if moves else held.consumer_offset,
    )


async def _end(admin: AdminCalls, address: str, queue: MessageQueue) -> int:
    header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
    answer = await admin.invoke(address, RequestCode.GET_MAX_OFFSET, header)
    return decode_header(GetMaxOffsetResponseHeader, answer).offset

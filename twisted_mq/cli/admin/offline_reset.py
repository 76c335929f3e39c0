"""Resetting the offsets of a group without a running consumer (Apache: resetOffsetByTimestampOld): queue by queue."""

from __future__ import annotations

from twisted_mq.cli.admin.calls import AdminContext, select_address
from twisted_mq.cli.admin.groups import broker_stats
from twisted_mq.cli.admin.queues import offset_at
from twisted_mq.cli.admin.tables import Table
from twisted_mq.protocol.bodies import MessageQueue, OffsetWrapper, RollbackStats, TopicRouteData
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.wire.header_codec import decode_header


def _table(last: str) -> Table:
    return Table.of(
        "{:<20.32}  {:<20}  {:<20}  {:<20}  {:<20}  {:<20}",
        broker="#brokerName",
        queueId="#queueId",
        brokerOffset="#brokerOffset",
        consumerOffset="#consumerOffset",
        timestampOffset="#timestampOffset",
        newOffset=last,
    )


RESET, SKIPPED = _table("#resetOffset"), _table("#rollbackOffset")


async def reset_offline(
    admin: AdminContext, group: str, topic: str, time_ms: int, force: bool, route_topic: str, table: Table
) -> None:
    """Move the group to a time, -1 for the end, and print each queue."""
    route = await admin.topic_route(route_topic)
    admin.say(table.head)
    for broker in route.broker_datas or ():
        address = select_address(broker.broker_addrs)
        if address is None:
            continue
        held = await _held(admin, address, group, topic, route, broker.broker_name)
        for queue in sorted(held):
            done = await _reset(admin, address, group, queue, held[queue], time_ms, force)
            admin.row(
                table,
                done.broker_name,
                done.queue_id,
                done.broker_offset,
                done.consumer_offset,
                done.timestamp_offset,
                done.rollback_offset,
            )


async def _held(
    admin: AdminContext, address: str, group: str, topic: str, route: TopicRouteData, broker_name: str
) -> dict[MessageQueue, OffsetWrapper]:
    """Where the group is in each queue; at their begin where it never consumed."""
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
    admin: AdminContext,
    address: str,
    group: str,
    queue: MessageQueue,
    held: OffsetWrapper,
    time_ms: int,
    force: bool,
) -> RollbackStats:
    goal = await (_end(admin, address, queue) if time_ms == -1 else offset_at(admin, address, queue, time_ms))
    moves = force or goal <= held.consumer_offset
    if moves:
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=goal,
            bname=queue.broker_name,
        )
        await admin.invoke(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    return RollbackStats(
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        broker_offset=held.broker_offset,
        consumer_offset=held.consumer_offset,
        timestamp_offset=goal,
        rollback_offset=goal if moves else held.consumer_offset,
    )


async def _end(admin: AdminContext, address: str, queue: MessageQueue) -> int:
    header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
    answer = await admin.invoke(address, RequestCode.GET_MAX_OFFSET, header)
    return decode_header(GetMaxOffsetResponseHeader, answer).offset

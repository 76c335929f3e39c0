"""Shows, queue by queue, what resetting the offsets of a group without a running consumer did."""

from __future__ import annotations

from twisted_mq.admin.offsets import reset_stored
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.tables import Table


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
    async for done in reset_stored(admin, group, topic, time_ms, force, route):
        admin.row(
            table,
            done.broker_name,
            done.queue_id,
            done.broker_offset,
            done.consumer_offset,
            done.timestamp_offset,
            done.rollback_offset,
        )

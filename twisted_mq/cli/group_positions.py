"""Moves a group to a place in a topic before it consumes."""

from __future__ import annotations

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import consumer_connection
from twisted_mq.admin.offsets import put_offset
from twisted_mq.admin.queues import TopicReader
from twisted_mq.cli.asking import begin_of
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.errors import BrokerError


async def put_group(admin: AdminCalls, group: str, topic: str, beginning: str) -> None:
    """Move a group without members to a place in each queue of a topic; create it at brokers that do not know it.

    Raises CliError if it has members, because they would go on where they are; BrokerError for a topic without a route.
    """
    if await _has_members(admin, group):
        raise CliError(
            f"group {group} has running members", "stop them, or reset the offsets with `mq admin resetOffsetByTime`"
        )
    reader = await TopicReader.of(admin, topic)
    for queue in reader.queues(topic):
        await put_offset(admin, reader.address(queue), group, queue, await begin_of(reader, queue, beginning))


async def _has_members(admin: AdminCalls, group: str) -> bool:
    try:
        return bool((await consumer_connection(admin, group)).connection_set)
    except BrokerError:
        return False

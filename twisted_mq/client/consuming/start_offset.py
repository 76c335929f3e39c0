"""The offset at which the pulling of a queue begins."""

from __future__ import annotations

from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere, ConsumerOptions
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.times import moment_ms
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX


async def start_offset(queue: MessageQueue, client: MQClient, options: ConsumerOptions, offsets: OffsetStore) -> int:
    """Return the stored offset, else the one that consume_from_where gives (RebalancePushImpl.computePullFromWhere).

    Messages to be retried are never skipped. Raises NoRoute, RemotingError or BrokerError.
    """
    stored = await offsets.read(queue)
    if stored is not None and stored >= 0:
        return stored
    retry = queue.topic.startswith(RETRY_PREFIX)
    policy = options.consume_from_where
    if policy is ConsumeFromWhere.FIRST_OFFSET or (retry and policy is ConsumeFromWhere.LAST_OFFSET):
        return 0
    address = await client.routes.serving(queue)
    if policy is ConsumeFromWhere.LAST_OFFSET or retry:
        return await client.calls.max_offset(address, queue)
    given = options.consume_timestamp
    timestamp = client.wall_ms() - 30 * 60 * 1000 if given is None else moment_ms(given, "consume_timestamp")
    return await client.calls.search_offset(address, queue, timestamp)

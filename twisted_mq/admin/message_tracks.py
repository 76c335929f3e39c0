"""The consumer groups that have consumed a message (Apache: DefaultMQAdminExtImpl.messageTrackDetail)."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import addresses_of, consume_stats, consumer_connection
from twisted_mq.protocol.bodies import ConsumerConnection
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.remoting.errors import RemotingError

NOT_ONLINE = "NOT_ONLINE"
TYPES_OF_ERRORS: dict[int, str] = {
    ResponseCode.CONSUMER_NOT_ONLINE: NOT_ONLINE,
    ResponseCode.BROADCAST_CONSUMPTION: "CONSUME_BROADCASTING",
}


@attrs.frozen
class MessageTrack:
    """The state of a message in a consumer group. `trackType` is a name of Apache's TrackType."""

    consumer_group: str
    track_type: str
    exception_desc: str | None = None


async def message_tracks(admin: AdminCalls, message: MessageExt) -> list[MessageTrack]:
    """Return a track for each group that consumes the message's topic."""
    addresses = addresses_of(await admin.topic_route(message.topic))
    groups = await admin.consumer_groups(addresses[0], message.topic) if addresses else []
    return [await _track(admin, message, group) for group in groups]


async def _track(admin: AdminCalls, message: MessageExt, group: str) -> MessageTrack:
    try:
        connection = await consumer_connection(admin, group)
        if connection.consume_type == "CONSUME_ACTIVELY":
            return MessageTrack(group, "PULL")
        if connection.consume_type != "CONSUME_PASSIVELY":
            return MessageTrack(group, "UNKNOWN")
        if not await _is_consumed(admin, message, group):
            return MessageTrack(group, "NOT_CONSUME_YET")
    except BrokerError as error:
        kind = TYPES_OF_ERRORS.get(error.response_code, "UNKNOWN")
        remark = "".join(error.remark.splitlines()[:1])  # Apache's second line links to its documentation
        return MessageTrack(group, kind, f"CODE:{int(error.response_code)} DESC:{remark}")
    except (ProtocolError, RemotingError) as error:
        return MessageTrack(group, "UNKNOWN", str(error))
    return MessageTrack(group, "CONSUMED" if _wants(connection, message) else "CONSUMED_BUT_FILTERED")


def _wants(connection: ConsumerConnection, message: MessageExt) -> bool:
    subscription = connection.subscription_table.get(message.topic)
    tags = subscription.tags_set if subscription is not None else frozenset()
    return not tags or "*" in tags or message.tags in tags


async def _is_consumed(admin: AdminCalls, message: MessageExt, group: str) -> bool:
    """Return whether the group's offset in the message's queue is after the message, at the broker that stored it."""
    stats = await consume_stats(admin, group)
    brokers = (await admin.cluster_info()).broker_addr_table or {}
    return any(
        queue.topic == message.topic
        and queue.queue_id == message.queue_id
        and queue.broker_name in brokers
        and (brokers[queue.broker_name].broker_addrs or {}).get(MASTER_ID) == message.store_host
        and offset.consumer_offset > message.queue_offset
        for queue, offset in stats.offset_table.items()
    )

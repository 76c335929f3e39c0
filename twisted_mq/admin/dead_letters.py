"""The dead letters of consumer groups, and sending them again.

The offset of the group GROUP-resent, stored at the broker, is the position up to which a group's dead letters were sent again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import attrs

from twisted_mq.admin.anew import own_properties
from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.offsets import put_offset
from twisted_mq.admin.queues import TopicReader
from twisted_mq.admin.sending import started_producer
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import QueryConsumerOffsetRequestHeader, QueryConsumerOffsetResponseHeader
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX
from twisted_mq.protocol.wire.header_codec import decode_header

PRODUCER_GROUP = "mq_dlq"
"""The producer group of messages that are sent again."""


@attrs.frozen
class GivenUp:
    """A group with the number of its dead letters, and of those that were not sent again."""

    group: str
    messages: int
    not_resent: int


def origin_topic(message: MessageExt) -> str | None:
    """Return the topic from which a dead letter came; None if the message does not name it."""
    return message.properties.get("DLQ_ORIGIN_TOPIC") or message.properties.get("RETRY_TOPIC") or None


def fresh(message: MessageExt) -> Message:
    """Return a dead letter as a new message for its original topic. Raises AdminError if the message does not name it."""
    topic = origin_topic(message)
    if topic is None:
        raise AdminError(
            f"message {message.unique_key or message.msg_id} does not have the name of its original topic",
            "export it, and send it with `mq send`",
        )
    kept = own_properties(message.properties)
    return Message(topic, message.body, flag=message.flag, properties={**kept, "DLQ_ORIGIN_MESSAGE_ID": message.msg_id})


async def given_up(admin: AdminCalls) -> list[GivenUp]:
    """Return each group that has dead letters, sorted."""
    topics = sorted(topic for topic in await admin.topic_list() if topic.startswith(DLQ_PREFIX))
    return [await given_up_by(admin, topic.removeprefix(DLQ_PREFIX)) for topic in topics]


async def given_up_by(admin: AdminCalls, group: str) -> GivenUp:
    """Count the dead letters of a group. Raises BrokerError for a group without any."""
    count = left = 0
    reader = await TopicReader.of(admin, DLQ_PREFIX + group)
    for queue in reader.queues(DLQ_PREFIX + group):
        first, end = await reader.min_offset(queue), await reader.max_offset(queue)
        count += end - first
        left += end - max(first, await resent_up_to(admin, reader, group, queue))
    return GivenUp(group, count, left)


async def dead_letters(
    admin: AdminCalls, reader: TopicReader, group: str, *, begin_anew: bool
) -> AsyncIterator[tuple[MessageQueue, MessageExt]]:
    """Yield a group's dead letters, queue by queue: all, or those that were not sent again."""
    for queue in reader.queues(DLQ_PREFIX + group):
        first, end = await reader.min_offset(queue), await reader.max_offset(queue)
        if not begin_anew:
            first = max(first, await resent_up_to(admin, reader, group, queue))
        async for result in reader.pulls(queue, first, end):
            for message in result.messages:
                yield queue, message


@attrs.frozen
class Resent:
    """A dead letter and the message that replaces it. `result` is None if nothing was sent."""

    dead: MessageExt
    message: Message
    result: SendResult | None


async def resend(
    admin: AdminCalls,
    group: str,
    wanted: Callable[[MessageExt], bool] | None = None,
    *,
    again: bool = False,
    preview: bool = False,
) -> AsyncIterator[Resent]:
    """Send dead letters again, one by one: those that were not sent before; with `again`, all.

    With `wanted`, send the messages for which it returns True, even if they were sent before; the stored position stays.
    Raises AdminError for a message that does not name its topic, BrokerError for a group without dead letters.
    """
    reader = await TopicReader.of(admin, DLQ_PREFIX + group)
    async with started_producer(admin, PRODUCER_GROUP) as producer:
        async for queue, message in dead_letters(admin, reader, group, begin_anew=again or wanted is not None):
            if wanted is None or wanted(message):
                anew = fresh(message)
                yield Resent(message, anew, None if preview else await producer.send(anew))
            if wanted is None and not preview:
                await note_resent(admin, reader, group, queue, message)


def resent_group(group: str) -> str:
    """Return the group whose offset records what was sent again."""
    return f"{group}-resent"


async def note_resent(
    admin: AdminCalls, reader: TopicReader, group: str, queue: MessageQueue, message: MessageExt
) -> None:
    """Record that all of a queue up to this message was sent again."""
    await put_offset(admin, reader.address(queue), resent_group(group), queue, message.queue_offset + 1)


async def resent_up_to(admin: AdminCalls, reader: TopicReader, group: str, queue: MessageQueue) -> int:
    """Return the offset up to which a queue of dead letters was sent again; 0 if nothing was."""
    header = QueryConsumerOffsetRequestHeader(
        consumer_group=resent_group(group), topic=queue.topic, queue_id=queue.queue_id, set_zero_if_not_found=False
    )
    try:
        answer = await admin.invoke(reader.address(queue), RequestCode.QUERY_CONSUMER_OFFSET, header)
    except BrokerError as error:
        if error.response_code == ResponseCode.QUERY_NOT_FOUND:
            return 0
        raise
    return decode_header(QueryConsumerOffsetResponseHeader, answer).offset

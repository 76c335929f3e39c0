"""Copies due messages into their real queues in one write: the quick form of `StoredMessage.copy_to` and `put_message`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from twisted_mq.broker.stored_message import Place, StoredMessage
from twisted_mq.protocol.flags import INNER_BATCH, OUT_OF_QUEUES
from twisted_mq.protocol.text.java import tags_code, utf8
from twisted_mq.protocol.text.properties import MAX_PROPERTIES_BYTES, PROPERTY_TAGS, encode_properties
from twisted_mq.storage.appending.admission import LONGEST_TOPIC
from twisted_mq.storage.interfaces import PlainMessages

Copy: TypeAlias = tuple[StoredMessage, Place, bytes]
"""A due message, the place of its copy, and the copy's properties."""
MOST_BYTES = 1 << 20
"""The bodies of one write, unless one alone is longer: all of them are in memory at once."""
_NOT_PLAIN = INNER_BATCH | OUT_OF_QUEUES


def first_alike(messages: Iterable[StoredMessage]) -> list[Copy]:
    """Return the copies of the first messages, up to one that is unlike the first, that no plain write takes, or whose body
    is beyond MOST_BYTES.
    """
    copies: list[Copy] = []
    size = 0
    first: tuple[object, ...] | None = None
    for message in messages:
        head, place = message.head, message.real_place
        shared = head.born_host, head.flag, head.sys_flag, head.reconsume_times
        first = first or shared
        if place is None or shared != first or head.sys_flag & _NOT_PLAIN or not message.body:
            break
        size += len(message.body)
        if copies and size > MOST_BYTES:
            break
        properties = utf8(encode_properties(message.properties))
        if len(properties) > MAX_PROPERTIES_BYTES or len(utf8(place[0])) > LONGEST_TOPIC:
            break
        copies.append((message, place, properties))
    return copies


def together(copies: Sequence[Copy]) -> PlainMessages:
    """Return copies that are alike as messages for one write."""
    messages, places, properties = zip(*copies, strict=True)
    topics, queue_ids = zip(*places, strict=True)
    head = messages[0].head
    return PlainMessages(
        topics[0] if topics.count(topics[0]) == len(topics) else topics,
        queue_ids,
        [message.body for message in messages],
        [properties],
        [tags_code(message.properties.get(PROPERTY_TAGS)) for message in messages],
        [message.head.born_timestamp for message in messages],
        head.born_host,
        head.flag,
        head.sys_flag,
        head.reconsume_times,
    )

"""Sends plain messages of one client together: what `sending` does for each call, done for many in columns.

A message is plain if it is alone in its call and has neither properties of the user nor a delay, a group, a priority, a
transaction, a trace context, a digest or a compression. All others, and whatever is wrong, are left to `Sending.send`: nothing is
refused here. A test holds answers and stored records equal to those of `Sending.send`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from twisted_mq.protocol.names.system_topics import is_system_topic
from twisted_mq.protocol.names.validation import TOPIC_MAX_LENGTH, topic_fault
from twisted_mq.protocol.text.properties import (
    KEY_SEPARATOR,
    PROPERTY_BORN_HOST,
    PROPERTY_BORN_TIMESTAMP,
    PROPERTY_KEYS,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from twisted_mq.proxy.brokers import OwnBroker, PlainColumns
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.framing import frame
from twisted_mq.proxy.messages import Encoding, MessageType, SendMessageRequest, SendMessageResponse, SendResultEntry
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.queues import MIXED, Turn
from twisted_mq.proxy.statuses import TakenTogether, ok

MOST_TEXT = 1024
"""The limit of each text of a plain message in characters. So its properties fit into a record."""
MOST_KEYS = 4
MOST_SECONDS = 1 << 40
TYPES = frozenset({MIXED, "NORMAL", "UNSPECIFIED"})
"""The types of topics that accept plain messages."""
_IDENTITY = (0, Encoding.Value("IDENTITY"))
_NORMAL = (0, MessageType.Value("NORMAL"))
_RARE = (
    "body_digest", "delivery_timestamp", "delivery_attempt", "message_group", "trace_context",
    "orphaned_transaction_recovery_duration", "priority",
)  # fmt: skip
"""The system properties that a plain message does not have."""


class Plain(NamedTuple):
    """A plain message. `born_ms` is None if the client names no time."""

    topic: str
    body: bytes
    message_id: str
    tag: str
    keys: str
    born_host: str
    born_ms: int | None


def read_plain(request: bytes) -> Plain | None:
    """Return the message of an encoded SendMessageRequest; None if it is not plain."""
    try:
        messages = SendMessageRequest.FromString(request).messages
    except DecodeError:
        return None
    if len(messages) != 1:
        return None
    message = messages[0]
    system = message.system_properties
    message_id, tag, host, has = system.message_id, system.tag, system.born_host, system.HasField
    if (
        system.message_type not in _NORMAL
        or system.body_encoding not in _IDENTITY
        or message.user_properties
        or any(map(has, _RARE))
        or not _is_plain(message_id)
        or (tag and (not _is_plain(tag) or "|" in tag))
        or (host and not _is_plain(host))
    ):
        return None
    keys = list(system.keys)
    if len(keys) > MOST_KEYS or not all(map(_is_plain, keys)):
        return None
    born_ms = None
    if has("born_timestamp"):
        time = system.born_timestamp
        seconds, nanos = time.seconds, time.nanos
        if not (0 <= seconds < MOST_SECONDS and 0 <= nanos < 1_000_000_000):
            return None
        born_ms = seconds * 1000 + nanos // 1_000_000
    return Plain(message.topic.name, message.body, message_id, tag, KEY_SEPARATOR.join(keys), host, born_ms)


def _is_plain(text: str) -> bool:
    """Return whether a text that must not be blank can be a property as it is."""
    return text.isprintable() and not text.isspace() and 0 < len(text) <= MOST_TEXT


def _properties(message: Plain, named: str, host: str, born_ms: int) -> bytes:
    """Return the properties of a record, in the order of `conversion.outgoing`. `named` are those that name the topic."""
    tags = f"{PROPERTY_TAGS}\x01{message.tag}\x02" if message.tag else ""
    if message.keys:
        tags += f"{PROPERTY_KEYS}\x01{message.keys}\x02"
    return (
        f"{PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX}\x01{message.message_id}\x02{tags}{named}"
        f"{PROPERTY_BORN_HOST}\x01{message.born_host or host}\x02{PROPERTY_BORN_TIMESTAMP}\x01{born_ms}\x02"
    ).encode()


@functools.lru_cache(maxsize=4096)
def _is_allowed(topic: str) -> bool:
    """Return whether clients may send to a topic of this name."""
    return topic_fault(topic) is None and not is_system_topic(topic)


class PlainSends:
    """Sends plain messages to the broker of this process. By `turn`, messages take the queues of a topic in turn."""

    def __init__(self, parts: Parts, own: OwnBroker, turn: Turn) -> None:
        self._parts = parts
        self._own = own
        self._turn = turn
        self._answer = SendMessageResponse(status=ok(), entries=[SendResultEntry(status=ok())]).SerializeToString()
        """The answer to every plain send, except for the message's id and place; each is parsed from it, see `PlainAcks`."""

    def take(self, client: GrpcClient, requests: Sequence[bytes]) -> TakenTogether:
        """Send the first messages, up to one that is not plain."""
        messages: list[Plain] = []
        for request in requests:
            message = read_plain(request)
            if message is None or (messages and message.topic != messages[0].topic) or not self._fits(message):
                break
            messages.append(message)
        return TakenTogether(self._sent(client, messages) if messages else ())

    def _fits(self, message: Plain) -> bool:
        """Return whether a message is within the limits of sizes."""
        limits = self._parts
        return (
            0 < len(message.body) <= limits.max_body_bytes
            and 4 * (len(message.tag) + len(message.keys)) <= limits.options.max_user_property_size
        )

    def _sent(self, client: GrpcClient, messages: Sequence[Plain]) -> list[bytes]:
        topic = messages[0].topic
        queue_ids = self._queue_ids(topic)
        if not queue_ids:
            return []
        now_ms, host, count = self._parts.now_ms(), client.remote_address[0], len(queue_ids)
        times = [now_ms if one.born_ms is None else one.born_ms for one in messages]
        named = f"{PROPERTY_RECONSUME_TIME}\x010\x02{PROPERTY_PRODUCER_GROUP}\x01{topic}\x02"
        columns = PlainColumns(
            topic,
            [queue_ids[(self._turn.count + number) % count] for number in range(len(messages))],
            [one.body for one in messages],
            [_properties(one, named, host, born_ms) for one, born_ms in zip(messages, times, strict=True)],
            [one.tag for one in messages],
            times,
        )
        offsets = self._own.put_plain(client, columns)
        self._turn.count += len(offsets)
        return [self._answered(one.message_id, offset) for one, offset in zip(messages, offsets)]  # noqa: B905

    def _answered(self, message_id: str, queue_offset: int) -> bytes:
        answer = SendMessageResponse.FromString(self._answer)
        entry = answer.entries[0]
        entry.message_id = entry.transaction_id = message_id
        entry.offset = queue_offset
        return frame(answer.SerializeToString())

    def _queue_ids(self, topic: str) -> Sequence[int]:
        """Return the queues of a topic that accepts plain messages, and that only this broker has; otherwise none."""
        if len(topic) > TOPIC_MAX_LENGTH or not _is_allowed(topic):
            return ()
        if self._parts.options.enable_topic_message_type_check and self._own.type_now(topic) not in TYPES:
            return ()
        return self._own.queue_ids_now(topic)

"""Requests that wait for a reply: the requester's table, and the message with which a consumer replies.

A request is an ordinary message with a correlation id, the id of the client that asks, and its timeout. Its consumer sends
`reply_message(request, body)`; the broker passes that to the client that asked (Apache: RequestFutureHolder, MessageUtil).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from twisted.internet import defer, interfaces

from twisted_mq.client.core.errors import MessageIllegal, RequestTimeout
from twisted_mq.clocks import time_of_day
from twisted_mq.logs import Logger
from twisted_mq.protocol.headers import ReplyMessageRequestHeader
from twisted_mq.protocol.messages.compression import plain_body
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.names.system_topics import reply_topic
from twisted_mq.protocol.text.properties import (
    PROPERTY_CLUSTER,
    PROPERTY_CORRELATION_ID,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MESSAGE_TTL,
    PROPERTY_MESSAGE_TYPE,
    PROPERTY_REPLY_MESSAGE_ARRIVE_TIME,
    decode_properties,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header

REPLY = "reply"
"""MixAll.REPLY_MESSAGE_FLAG: the MSG_TYPE of a reply."""


def request_message(message: Message, client_id: str, timeout_seconds: float) -> Message:
    """Return the message as it is sent to ask for a reply, with a new correlation id."""
    asking = {
        PROPERTY_CORRELATION_ID: str(uuid.uuid4()),
        PROPERTY_MESSAGE_REPLY_TO_CLIENT: client_id,
        PROPERTY_MESSAGE_TTL: str(int(timeout_seconds * 1000)),
    }
    return Message(message.topic, message.body, message.flag, {**message.properties, **asking})


def reply_message(request: MessageExt, body: bytes) -> Message:
    """Return the reply to a request; any producer of the cluster can send it. Raises MessageIllegal if it is not a request."""
    asked = request.properties
    names = (PROPERTY_CLUSTER, PROPERTY_CORRELATION_ID, PROPERTY_MESSAGE_REPLY_TO_CLIENT)
    missing = [name for name in names if not asked.get(name)]
    if missing:
        raise MessageIllegal(
            f"message {request.unique_key or request.msg_id} is not a request: it has no {', '.join(missing)}"
        )
    properties = {name: asked[name] for name in names[1:]} | {PROPERTY_MESSAGE_TYPE: REPLY}
    if PROPERTY_MESSAGE_TTL in asked:
        properties[PROPERTY_MESSAGE_TTL] = asked[PROPERTY_MESSAGE_TTL]
    return Message(reply_topic(asked[PROPERTY_CLUSTER]), body, properties=properties)


def pushed_reply(command: RemotingCommand, now_ms: int) -> MessageExt:
    """Return the reply that a broker pushes (326). Raises ProtocolError for a damaged one. It has no place in a log."""
    header = decode_header(ReplyMessageRequestHeader, command)
    arrived = {PROPERTY_REPLY_MESSAGE_ARRIVE_TIME: str(now_ms)}
    return MessageExt(
        topic=header.topic,
        queue_id=header.queue_id,
        queue_offset=0,
        physical_offset=0,
        store_size=0,
        body_crc=0,
        sys_flag=header.sys_flag,
        flag=header.flag,
        born_timestamp=header.born_timestamp,
        born_host=header.born_host.lstrip("/"),
        store_timestamp=header.store_timestamp,
        store_host=header.store_host.lstrip("/"),
        reconsume_times=header.reconsume_times or 0,
        prepared_transaction_offset=0,
        properties={**decode_properties(header.properties or ""), **arrived},
        body=plain_body(command.body, header.sys_flag),
        msg_id="",
    )


class PendingRequests:
    """The requests of one client that wait for their replies."""

    log = Logger()

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self._clock = clock
        self._seconds_of_day = time_of_day(clock)
        self._waiting: dict[str, defer.Deferred[MessageExt]] = {}

    def expect(self, request: Message, timeout_seconds: float) -> defer.Deferred[MessageExt]:
        """Wait for the reply to a request. Fails with RequestTimeout; cancelling forgets the request."""
        key = request.properties[PROPERTY_CORRELATION_ID]
        waiting: defer.Deferred[MessageExt] = defer.Deferred()
        self._waiting[key] = waiting
        waiting.addTimeout(timeout_seconds, self._clock, onTimeoutCancel=_timed_out(request.topic, key))
        return waiting.addBoth(self._ended, key)

    def _ended(self, result: MessageExt, key: str) -> MessageExt:
        self._waiting.pop(key, None)
        return result

    def wall_ms(self) -> int:
        """Return the time of day in ms."""
        return int(self._seconds_of_day() * 1000)

    def arrived(self, reply: MessageExt) -> None:
        """Handle a reply that a broker pushes; log a reply whose request has ended."""
        key = reply.properties.get(PROPERTY_CORRELATION_ID, "")
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            self.log.warn("unexpected reply, ignored: correlation={key} from={host}", key=key, host=reply.born_host)
        else:
            waiting.callback(reply)


def _timed_out(topic: str, key: str) -> Callable[[object, float], None]:
    def raise_timeout(_: object, seconds: float) -> None:
        raise RequestTimeout(topic, key, seconds)

    return raise_timeout

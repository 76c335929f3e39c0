"""Acknowledges messages of one client together: what `Receiving.ack` does for each call, without waiting.

A request is plain if it has one entry, with a handle of this process's broker. All others are left to `Receiving.ack`.
A test holds answers and effects of both equal.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError
from twisted.internet import defer

from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import AckMessageRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.proxy.brokers import OwnBroker
from twisted_mq.proxy.checks import checked_group, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.framing import frame
from twisted_mq.proxy.handles import parse_handle
from twisted_mq.proxy.messages import AckMessageRequest, AckMessageResponse, AckMessageResultEntry, Resource
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.renewal import Renewal
from twisted_mq.proxy.requests import make_request, succeeded
from twisted_mq.proxy.statuses import ProxyError, ok, status_of

MOST_NAME = 255
"""The limit of a name in characters: that of a group."""
Answer: TypeAlias = bytes | Awaitable[Any]
"""An answer as it goes on its stream, or one of protobuf's class that comes later or is no success."""


class Ack(NamedTuple):
    """A plain acknowledgement. `text` is the receipt handle as the client has it."""

    topic: str
    group: str
    message_id: str
    text: str


def read_ack(request: bytes) -> Ack | None:
    """Return the acknowledgement of an encoded AckMessageRequest; None if it is not plain."""
    try:
        asked = AckMessageRequest.FromString(request)
    except DecodeError:
        return None
    topic, group, entries = asked.topic.name, asked.group.name, asked.entries
    if len(entries) != 1 or max(len(topic), len(group)) > MOST_NAME or not _are_allowed(topic, group):
        return None
    entry = entries[0]
    return Ack(topic, group, entry.message_id, entry.receipt_handle)


@functools.lru_cache(maxsize=4096)
def _are_allowed(topic: str, group: str) -> bool:
    """Return whether clients may name this topic and this group."""
    try:
        checked_topic(Resource(name=topic))
        checked_group(Resource(name=group))
    except ProxyError:
        return False
    return True


class PlainAcks:
    """Hands plain acknowledgements to the broker of this process."""

    def __init__(self, parts: Parts, own: OwnBroker, renewal: Renewal) -> None:
        self._parts = parts
        self._renewal = renewal
        self._own = own
        self._success: Any = AckMessageResponse(status=ok(), entries=[AckMessageResultEntry(status=ok())])
        """The answer to every acknowledgement that succeeds, except for the message's id and handle."""

    def take(self, client: GrpcClient, requests: Sequence[bytes]) -> list[Answer]:
        """Acknowledge the first messages, up to a request that is not plain. Return the answer to each: one that is a success
        now as it goes on its stream.
        """
        answers: list[Answer] = []
        now_ms = self._parts.now_ms()
        for request in requests:
            ack = read_ack(request)
            answer = None if ack is None else self._answer(client, ack, now_ms)
            if answer is None:
                break
            answers.append(answer)
        return answers

    def _answer(self, client: GrpcClient, ack: Ack, now_ms: int) -> Answer | None:
        """Acknowledge a message. Return None, and change nothing, if `Receiving.ack` has to look at the request."""
        try:
            handle = parse_handle(ack.text)
            topic = handle.topic(ack.topic, ack.group)
        except ProxyError:
            return None
        if handle.receipt.broker_name != self._own.broker_name or not self._own.has_topic_now(ack.topic):
            return None
        renewed = self._renewal.remove(client, ack.group, ack.message_id, ack.text)
        if renewed is None and handle.expires_ms <= now_ms:
            return None
        receipt = (renewed or handle).receipt
        header = AckMessageRequestHeader(
            consumer_group=ack.group,
            topic=topic,
            queue_id=receipt.queue_id,
            extra_info=receipt.encode(),
            offset=receipt.queue_offset,
        )
        try:
            answer = self._own.ask_now(client, make_request(RequestCode.ACK_MESSAGE, header))
        except Exception as error:
            answer = defer.fail(error)
        if not isinstance(answer, defer.Deferred) and answer.code == ResponseCode.SUCCESS:
            return self._succeeded(ack)
        return _settled(ack, answer)

    def _succeeded(self, ack: Ack) -> bytes:
        entry = self._success.entries[0]
        entry.message_id, entry.receipt_handle = ack.message_id, ack.text
        return frame(self._success.SerializeToString())


async def _settled(ack: Ack, answer: RemotingCommand | defer.Deferred[RemotingCommand]) -> Any:
    """Return the answer to a plain acknowledgement, once the broker has answered."""
    try:
        succeeded(await answer if isinstance(answer, defer.Deferred) else answer)
        found = ok()
    except (ProxyError, ProtocolError) as error:
        found = status_of(error)
    entry = AckMessageResultEntry(message_id=ack.message_id, receipt_handle=ack.text, status=found)
    return AckMessageResponse(status=found, entries=[entry])

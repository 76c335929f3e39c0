"""Acknowledges messages of one client together: what `Receiving.ack` does for each call, with one request for each pop.

A request is plain if it has one entry, with a handle of an unordered pop of this process's broker, and if nothing is to be
said against it. All others are left to `Receiving.ack`: nothing is refused here. A test holds answers and effects of both
equal.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from twisted_mq.proxy.brokers import OwnBroker, PlainPop
from twisted_mq.proxy.checks import checked_group, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.framing import frame
from twisted_mq.proxy.handles import parse_handle
from twisted_mq.proxy.messages import AckMessageRequest, AckMessageResponse, AckMessageResultEntry, Resource
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.renewal import Renewal
from twisted_mq.proxy.statuses import ProxyError, ok

MOST_NAME = 255
"""The limit of a name in characters: that of a group."""


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
        self._answer: Any = AckMessageResponse(status=ok(), entries=[AckMessageResultEntry(status=ok())])
        """The answer to every plain acknowledgement, except for the message's id and handle."""

    def take(self, client: GrpcClient, requests: Sequence[bytes]) -> list[bytes]:
        """Acknowledge the first messages, up to a request that is not plain. Return their answers, as they go on their
        streams.
        """
        acks: list[Ack] = []
        pops: dict[PlainPop, list[int]] = {}
        now_ms = self._parts.now_ms()
        for request in requests:
            ack = read_ack(request)
            place = None if ack is None else self._place(client, ack, now_ms)
            if ack is None or place is None:
                break
            pop, queue_offset = place
            pops.setdefault(pop, []).append(queue_offset)
            acks.append(ack)
        for pop, queue_offsets in pops.items():
            self._own.ack_plain(pop, queue_offsets)
        return [self._answered(one) for one in acks]

    def _place(self, client: GrpcClient, ack: Ack, now_ms: int) -> tuple[PlainPop, int] | None:
        """Return the pop of a message and its queue offset, and stop renewing it. Return None, and change nothing, if
        `Receiving.ack` has to look at the request.
        """
        try:
            handle = parse_handle(ack.text)
            topic = handle.topic(ack.topic, ack.group)
        except ProxyError:
            return None
        if not self._own.may_ack(topic, handle.receipt):
            return None
        renewed = self._renewal.remove(client, ack.group, ack.message_id, ack.text)
        if renewed is None and handle.expires_ms <= now_ms:
            return None
        receipt = (renewed or handle).receipt
        pop = PlainPop(
            topic,
            ack.group,
            receipt.queue_id,
            receipt.start_offset,
            receipt.pop_time,
            receipt.invisible_time,
            receipt.revive_queue_id,
        )
        return pop, receipt.queue_offset

    def _answered(self, ack: Ack) -> bytes:
        entry = self._answer.entries[0]
        entry.message_id, entry.receipt_handle = ack.message_id, ack.text
        return frame(self._answer.SerializeToString())

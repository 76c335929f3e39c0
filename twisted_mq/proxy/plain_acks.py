"""Acknowledges messages of one client together: what `Receiving.ack` does for each call, with one request for each pop.

A request is plain if it has one entry, with a handle of an unordered pop of this process's broker, and if nothing is to be
said against it. All others are left to `Receiving.ack`: nothing is refused here but what the broker's store does not take. A test
holds answers and effects of both equal.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from twisted_mq.proxy.brokers import OwnBroker, PlainPop
from twisted_mq.proxy.checks import checked_group, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.framing import frame
from twisted_mq.proxy.handles import parse_handle
from twisted_mq.proxy.messages import AckMessageRequest, AckMessageResponse, AckMessageResultEntry, Resource
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.renewal import Kept, Renewal
from twisted_mq.proxy.statuses import FAILED, ProxyError, TakenTogether, ok, status

MOST_NAME = 255
"""The limit of a name in characters: that of a group."""


class Ack(NamedTuple):
    """A plain acknowledgement. `text` is the receipt handle as the client has it."""

    topic: str
    group: str
    message_id: str
    text: str


class AckedPlace(NamedTuple):
    """The place of a plain acknowledgement's message. `kept` is the message if it was renewed."""

    pop: PlainPop
    queue_offset: int
    kept: Kept | None


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
        self._answer = AckMessageResponse(status=ok(), entries=[AckMessageResultEntry(status=ok())]).SerializeToString()
        """The answer to every plain acknowledgement, except for the message's id and handle. Each answer is parsed from it:
        a message of protobuf that is filled in again and again keeps every text that it ever had.
        """

    def take(self, client: GrpcClient, requests: Sequence[bytes]) -> TakenTogether:
        """Acknowledge the first messages, up to a request that is not plain."""
        acks: list[tuple[Ack, AckedPlace]] = []
        pops: dict[PlainPop, list[int]] = {}
        now_ms = self._parts.now_ms()
        for request in requests:
            ack = read_ack(request)
            place = None if ack is None else self._place(client, ack, now_ms)
            if ack is None or place is None:
                break
            pops.setdefault(place.pop, []).append(place.queue_offset)
            acks.append((ack, place))
        refused = {pop: reasons for pop, offsets in pops.items() if (reasons := self._own.ack_plain(pop, offsets))}
        if refused:
            return self._taken_in_part(client, acks, refused)
        return TakenTogether([self._answered(ack) for ack, _ in acks])

    def _taken_in_part(
        self, client: GrpcClient, acks: Sequence[tuple[Ack, AckedPlace]], refused: Mapping[PlainPop, Mapping[int, str]]
    ) -> TakenTogether:
        answers, failed = [], 0
        for ack, place in acks:
            reason = refused.get(place.pop, {}).get(place.queue_offset)
            if reason is None:
                answers.append(self._answered(ack))
                continue
            if place.kept is not None:
                self._renewal.put_back(client, ack.message_id, ack.text, place.kept)
            answers.append(_failed(ack, reason))
            failed += 1
        return TakenTogether(answers, failed)

    def _place(self, client: GrpcClient, ack: Ack, now_ms: int) -> AckedPlace | None:
        """Return the place of a message, and stop renewing it. Return None, and change nothing, if `Receiving.ack` has to
        look at the request.
        """
        try:
            handle = parse_handle(ack.text)
            topic = handle.topic(ack.topic, ack.group)
        except ProxyError:
            return None
        if not self._own.may_ack(topic, handle.receipt):
            return None
        key = ack.group, ack.message_id, ack.text
        if self._renewal.is_busy(client, *key):
            return None
        kept = self._renewal.remove(client, *key)
        if kept is None and handle.expires_ms <= now_ms:
            return None
        receipt = (handle if kept is None else kept.handle).receipt
        pop = PlainPop(
            topic,
            ack.group,
            receipt.queue_id,
            receipt.start_offset,
            receipt.pop_time,
            receipt.invisible_time,
            receipt.revive_queue_id,
        )
        return AckedPlace(pop, receipt.queue_offset, kept)

    def _answered(self, ack: Ack) -> bytes:
        answer = AckMessageResponse.FromString(self._answer)
        entry = answer.entries[0]
        entry.message_id, entry.receipt_handle = ack.message_id, ack.text
        return frame(answer.SerializeToString())


def _failed(ack: Ack, reason: str) -> bytes:
    """Return the answer to an acknowledgement that the broker's store did not take."""
    found = status(FAILED, reason)
    entry = AckMessageResultEntry(message_id=ack.message_id, receipt_handle=ack.text, status=found)
    return frame(AckMessageResponse(status=found, entries=[entry]).SerializeToString())

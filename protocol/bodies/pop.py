"""Acknowledging popped messages in one request, and what the broker notes of pops in its revive log.

A revive log's messages have one of these as their JSON body, and as their tag `ck` (PopCheckPoint), `ack` (AckMsg) or
`bAck` (BatchAckMsg).
"""

from __future__ import annotations

import base64
from typing import Annotated

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import Bits, Int32, Int64, wire
from twisted_mq.protocol.errors import BodyError

MOST_POPPED = 32
"""A pop gives at most so many messages: the bits of its check point (Apache: PopMessageProcessor)."""
MOST_BIT_SET_BYTES = 8192
"""Far more than a pop of 32 messages spans; a bit set costs time for each of its bits."""
CHECK_POINT_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"
"""Apache: PopAckConstants."""


@attrs.frozen
class BatchAck:
    """Queue offsets that are acknowledged: `start_offset` plus the bits set in `bit_set`, which is Java's BitSet as
    Base64 of its bytes, lowest first.
    """

    consumer_group: str | None = field(default=None, metadata=wire("c", older="consumerGroup"))
    topic: str | None = field(default=None, metadata=wire("t", older="topic"))
    retry: str | None = field(default=None, metadata=wire("r", older="retry"))
    start_offset: Int64 = field(default=0, metadata=wire("so", older="startOffset"))
    queue_id: Int32 = field(default=0, metadata=wire("q", older="queueId"))
    revive_queue_id: Int32 = field(default=0, metadata=wire("rq", older="reviveQueueId"))
    pop_time: Int64 = field(default=0, metadata=wire("pt", older="popTime"))
    invisible_time: Int64 = field(default=0, metadata=wire("it", older="invisibleTime"))
    bit_set: str | None = field(default=None, metadata=wire("b", older="bitSet"))

    def offsets_between(self, first: int, last: int) -> list[int]:
        """Return the acknowledged offsets in a range, both ends included: at most MOST_POPPED.

        Raises BodyError for a bit set that is damaged, too long, or of more messages than one pop gives. Each bit would be a
        number in the revive log, so that a request of 6 MB would make 240 MB of records.
        """
        if self.bit_set is None:
            raise BodyError("BatchAck.b", "a bit set is needed, got none")
        try:
            data = base64.b64decode(self.bit_set, validate=True)
        except ValueError as error:
            raise BodyError("BatchAck.b", f"{error}, got {self.bit_set[:80]!r}") from error
        if len(data) > MOST_BIT_SET_BYTES:
            raise BodyError("BatchAck.b", f"at most {MOST_BIT_SET_BYTES} bytes are taken, got {len(data)}")
        bits = int.from_bytes(data, "little")
        if bits.bit_count() > MOST_POPPED:
            raise BodyError("BatchAck.b", f"a pop gives at most {MOST_POPPED} messages, got {bits.bit_count()} bits")
        offsets = []
        while bits:
            lowest = bits & -bits
            offsets.append(self.start_offset + lowest.bit_length() - 1)
            bits ^= lowest
        return [offset for offset in offsets if first <= offset <= last]


@attrs.frozen
class BatchAckMessageRequestBody:
    """Request body of BATCH_ACK_MESSAGE."""

    broker_name: str | None = None
    acks: list[BatchAck] = field(factory=list)


@attrs.define
class PopCheckPoint:
    """A pop of one queue: which messages come back at `pop_time` + `invisible_time` unless they are acknowledged.

    Message i of `count` has the queue offset `start_offset` + `offset_differences[i]`; without differences, as older
    brokers write it, `start_offset` + i. `bit_map` has bit i set once it is acknowledged. `revive_offset` is where the
    revive log has this check point; known to its reader only.
    """

    start_offset: Int64 = field(default=0, metadata=wire("so"))
    pop_time: Int64 = field(default=0, metadata=wire("pt"))
    invisible_time: Int64 = field(default=0, metadata=wire("it"))
    bit_map: Int32 = field(default=0, metadata=wire("bm"))
    count: Annotated[int, Bits(8)] = field(default=0, metadata=wire("n"))
    queue_id: Int32 = field(default=0, metadata=wire("q"))
    topic: str | None = field(default=None, metadata=wire("t"))
    consumer_group: str | None = field(default=None, metadata=wire("c"))
    revive_offset: Int64 = field(default=0, metadata=wire("ro"))
    offset_differences: list[Int32] | None = field(default=None, metadata=wire("d"))
    broker_name: str | None = field(default=None, metadata=wire("bn"))
    times_put_again: str | None = field(default=None, metadata=wire("rp"))
    revive_time: Int64 = field(
        default=attrs.Factory(lambda made: made.pop_time + made.invisible_time, takes_self=True),
        metadata=wire("reviveTime"),
    )

    def offset_of(self, index: int) -> int:
        """Return the queue offset of a message. Raises IndexError."""
        differences = self.offset_differences
        return self.start_offset + (differences[index] if differences else index)

    def index_of(self, queue_offset: int) -> int | None:
        """Return the number of the message with that queue offset; None if no message has it."""
        difference = queue_offset - self.start_offset
        if self.offset_differences:
            return self.offset_differences.index(difference) if difference in self.offset_differences else None
        return difference if 0 <= difference < self.count else None


@attrs.frozen
class AckMsg:
    """The acknowledgement of one message of a check point."""

    ack_offset: Int64 = field(default=0, metadata=wire("ao", older="ackOffset"))
    start_offset: Int64 = field(default=0, metadata=wire("so", older="startOffset"))
    consumer_group: str | None = field(default=None, metadata=wire("c", older="consumerGroup"))
    topic: str | None = field(default=None, metadata=wire("t", older="topic"))
    queue_id: Int32 = field(default=0, metadata=wire("q", older="queueId"))
    pop_time: Int64 = field(default=0, metadata=wire("pt", older="popTime"))
    broker_name: str | None = field(default=None, metadata=wire("bn", older="brokerName"))


@attrs.frozen
class BatchAckMsg(AckMsg):
    """Several messages of a check point that are acknowledged; `ack_offset` means nothing."""

    ack_offsets: list[Int64] = field(factory=list, metadata=wire("aol", older="ackOffsetList"))

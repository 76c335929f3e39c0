"""Acknowledging popped messages in one request."""

from __future__ import annotations

import attrs
from attrs import field

from protocol.bodies.types import Int32, Int64, wire


@attrs.frozen
class BatchAck:
    """Queue offsets that are acknowledged: `start_offset` plus the bits set in `bit_set`, which is Java's BitSet as
    Base64 of its bytes, lowest first.
    """

    consumer_group: str | None = field(default=None, metadata=wire("c"))
    topic: str | None = field(default=None, metadata=wire("t"))
    retry: str | None = field(default=None, metadata=wire("r"))
    start_offset: Int64 = field(default=0, metadata=wire("so"))
    queue_id: Int32 = field(default=0, metadata=wire("q"))
    revive_queue_id: Int32 = field(default=0, metadata=wire("rq"))
    pop_time: Int64 = field(default=0, metadata=wire("pt"))
    invisible_time: Int64 = field(default=0, metadata=wire("it"))
    bit_set: str | None = field(default=None, metadata=wire("b"))


@attrs.frozen
class BatchAckMessageRequestBody:
    """Request body of BATCH_ACK_MESSAGE."""

    broker_name: str | None = None
    acks: list[BatchAck] = field(factory=list)

"""Writes operations: messages of RMQ_SYS_TRANS_OP_HALF_TOPIC that say which half messages are over.

Their tag is "d", their body the half queue offsets in text, each with a comma: b"7,9,12,". Several decisions go into
one (Apache: TransactionalOpBatchService), written at the latest `interval` after the first of them, or when their text
is longer than the limit. Decisions that are not written when the broker dies are asked for again. If answers wait for the
disk or a slave, each decision is written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from twisted.internet import interfaces

from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.names.system_topics import OP_TOPIC
from twisted_mq.protocol.text.java import parse_int, tags_code
from twisted_mq.protocol.text.properties import PROPERTY_TAGS, PROPERTY_WAIT_STORE_MSG_OK, encode_properties
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutStatus

REMOVE_TAG = "d"
SEPARATOR = ","


class OperationError(ValueError):
    """Raised for an operation whose body is malformed."""


def listed_halves(operation: StoredMessage) -> list[int]:
    """Return the half queue offsets in an operation. Raises OperationError for another tag or something that is not a number."""
    if operation.properties.get(PROPERTY_TAGS) != REMOVE_TAG:
        raise OperationError(f"tag {operation.properties.get(PROPERTY_TAGS)!r} instead of {REMOVE_TAG!r}")
    text = operation.body.decode("utf-8", "replace")
    offsets = [parse_int(part, 64) for part in text.split(SEPARATOR) if part]
    found = [offset for offset in offsets if offset is not None]
    if len(found) != len(offsets):
        raise OperationError(f"body {text[:80]!r} instead of offsets")
    return found


def make_operation(queue_id: int, halves: Iterable[int], now_ms: int, host: bytes) -> InnerMessage:
    """Return an operation; `host` is the broker's address as records hold it."""
    properties = {PROPERTY_WAIT_STORE_MSG_OK: "true", PROPERTY_TAGS: REMOVE_TAG}
    body = "".join(f"{half}{SEPARATOR}" for half in halves).encode()
    text = encode_properties(properties).encode()
    return InnerMessage(
        OP_TOPIC,
        queue_id,
        body,
        text,
        properties,
        tags_code(REMOVE_TAG),
        born_timestamp=now_ms,
        born_host=host,
    )


class OperationParts(Protocol):
    """The parts of the broker that writes operations."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    wall_ms: Callable[[], int]
    store: IMessageStore
    durability: Durability

    @property
    def store_host(self) -> bytes: ...


class OperationWriter:
    """Collects and writes decisions. `written` is called after each write, to make it visible."""

    log = Logger()

    def __init__(self, broker: OperationParts, written: Callable[[], object]) -> None:
        self._broker = broker
        self._written = written
        self._waiting: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._call: interfaces.IDelayedCall | None = None

    def add(self, queue_id: int, halves: Sequence[int]) -> None:
        """Record that half messages of a queue are over."""
        self._waiting.setdefault(queue_id, []).extend(halves)
        size = sum(map(len, map(str, halves))) + len(halves) * len(SEPARATOR)
        self._sizes[queue_id] = self._sizes.get(queue_id, 0) + size
        if self._broker.durability.waits or self._sizes[queue_id] > self._broker.options.transaction_op_msg_max_size:
            self._write(queue_id)
        self._write_later()

    def flush(self) -> None:
        """Write everything now; also used when the broker stops."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()
        for queue_id in list(self._waiting):
            self._write(queue_id)

    def _due(self) -> None:
        self._call = None
        self.flush()
        self._written()
        self._write_later()

    def _write_later(self) -> None:
        if self._waiting and self._call is None:
            seconds = self._broker.options.transaction_op_batch_interval / 1000
            self._call = self._broker.clock.callLater(seconds, self._due)

    def _write(self, queue_id: int) -> None:
        """Write a queue's decisions. Those that the store does not accept now wait for the next time."""
        broker, halves = self._broker, self._waiting[queue_id]
        operation = make_operation(queue_id, halves, broker.wall_ms(), broker.store_host)
        status = broker.store.put_message(operation).status
        if status is PutStatus.PUT_OK:
            del self._waiting[queue_id], self._sizes[queue_id]
            return
        self.log.error(
            "decided transactions not written, retrying: queue={q} count={n} status={s}",
            q=queue_id, n=len(halves), s=status.name,
        )  # fmt: skip

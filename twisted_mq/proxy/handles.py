"""Reads and writes receipt handles of gRPC clients: the receipt of a pop (POP_CK) and, as a ninth part, the message's
place in the log.
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.names.pop_receipt import Receipt, ReceiptError
from twisted_mq.protocol.names.pop_topics import marked_topic
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.proxy.statuses import ProxyError

PARTS = 8
UNKNOWN_OFFSET = -1


@attrs.frozen
class Handle:
    """A receipt handle; `physical_offset` is -1 if the handle does not have it."""

    receipt: Receipt
    physical_offset: int = UNKNOWN_OFFSET

    @property
    def expires_ms(self) -> int:
        """Return the time when the message becomes visible again."""
        return self.receipt.pop_time + self.receipt.invisible_time

    def encode(self) -> str:
        """Return the text that a client gets."""
        return handle_text(self.receipt.encode(), self.physical_offset)

    def topic(self, topic: str, group: str) -> str:
        """Return the topic that the message was taken from: the one popped, or the group's retry topic. Raises ProxyError."""
        try:
            return marked_topic(topic, group, self.receipt.mark)
        except ValueError as error:
            raise ProxyError("INVALID_RECEIPT_HANDLE", f"receipt_handle: {error}") from None

    def renewed(self, pop_time: int, invisible_time: int, revive_queue_id: int) -> Handle:
        """Return the handle after its invisible time was changed: the message has a check point of its own, which starts at it
        (Apache: MQClientAPIImpl.changeInvisibleTimeAsync).
        """
        receipt = attrs.evolve(
            self.receipt,
            start_offset=self.receipt.queue_offset,
            pop_time=pop_time,
            invisible_time=invisible_time,
            revive_queue_id=revive_queue_id,
        )
        return attrs.evolve(self, receipt=receipt)


def handle_text(receipt: str, physical_offset: int) -> str:
    """Return the handle with a full receipt."""
    return f"{receipt} {physical_offset}"


def parse_handle(text: str) -> Handle:
    """Raises ProxyError for a text that is no handle."""
    parts = text.split(" ")
    if not PARTS <= len(parts) <= PARTS + 1:
        raise ProxyError("INVALID_RECEIPT_HANDLE", f"receipt_handle has {len(parts)} parts, it must have 8 or 9")
    try:
        receipt = Receipt.parse(" ".join(parts[:PARTS]))
    except ReceiptError as error:
        raise ProxyError("INVALID_RECEIPT_HANDLE", f"receipt_handle: {error}") from None
    offset = UNKNOWN_OFFSET if len(parts) == PARTS else parse_int(parts[PARTS], 64)
    if offset is None:
        raise ProxyError("INVALID_RECEIPT_HANDLE", f"receipt_handle: commitLogOffset {parts[PARTS]!r} is not a number")
    return Handle(receipt, offset)


def live_handle(text: str, now_ms: int) -> Handle:
    """Return the handle. Raises ProxyError for a malformed text, or if the message is visible again."""
    handle = parse_handle(text)
    if handle.expires_ms <= now_ms:
        raise ProxyError("INVALID_RECEIPT_HANDLE", "receipt_handle has expired")
    return handle

"""The fields of a pop's answer about its messages, and the receipt handle that acknowledges one (Apache: ExtraInfoUtil).

    startOffsetInfo   0 3 17;1 0 4            mark, queue id, queue offset that the pop of this queue began at
    msgOffsetInfo     0 3 17,18,20;1 0 4      mark, queue id, queue offsets of the messages
    orderCountInfo    0 qo3%18 1;0 3 0        mark, queue and offset (or queue alone), times consumed before
    receipt handle    17 1795284884053 60000 0 0 broker-a 3 18

A receipt has the start offset, pop time and invisible time in ms, the revive log's queue, the topic's mark, the broker,
the queue id and the queue offset. A client puts it together from the three infos, or finds it in the property POP_CK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.pop_topics import ORDER_REVIVE_QUEUE, retry_mark
from twisted_mq.protocol.text.java import parse_int

_INFO_SEPARATOR = ";"
_FEWEST_FIELDS = 6
_NAMES = ("ckQueueOffset", "popTime", "invisibleTime", "reviveQid", "retry", "brokerName", "queueId", "queueOffset")
_NUMBER_BITS = {0: 64, 1: 64, 2: 64, 3: 32, 6: 32, 7: 64}

InfoKey = tuple[str, int]
"""Mark and queue id."""


class ReceiptError(ProtocolError):
    """A receipt or an info that cannot be read."""


@attrs.frozen
class Receipt:
    """A receipt handle; queue id and offset are -1 where an older client leaves them out."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int
    mark: str
    broker_name: str
    queue_id: int = -1
    queue_offset: int = -1

    @property
    def is_order(self) -> bool:
        """Return whether the pop was an ordered one."""
        return self.revive_queue_id == ORDER_REVIVE_QUEUE

    def encode(self) -> str:
        """Return the text form, all eight fields."""
        return (
            f"{self.start_offset} {self.pop_time} {self.invisible_time} {self.revive_queue_id}"
            f" {self.mark} {self.broker_name} {self.queue_id} {self.queue_offset}"
        )

    @classmethod
    def parse(cls, text: str) -> Receipt:
        """Raises ReceiptError, which names the field and its value."""
        plain = _plain_or_longer(text)
        if plain is not None:
            start, popped, invisible, revive, mark, broker_name, queue_id, offset = plain.groups()
            return cls(
                int(start), int(popped), int(invisible), int(revive), mark, broker_name, int(queue_id), int(offset)
            )
        parts = text.split(" ")
        if len(parts) < _FEWEST_FIELDS:
            raise ReceiptError(f"extraInfo: {_FEWEST_FIELDS} fields are needed at least, got {len(parts)} in {text!r}")
        return cls(*(_field(index, part) for index, part in enumerate(parts[: len(_NAMES)])))  # type: ignore[arg-type]


_PLAIN = r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,9}) ([^ ]*) ([^ ]*) ([0-9]{1,9}) ([0-9]{1,18})"
"""A receipt as brokers write nearly all of them: eight fields, without signs, no number near its limit."""
_plain = re.compile(_PLAIN).fullmatch
_plain_or_longer = re.compile(rf"{_PLAIN}(?: .*)?", re.DOTALL).fullmatch


def full_receipt(text: str) -> str:
    """Return a receipt with all its eight fields and no further ones. Raises ReceiptError."""
    return text if _plain(text) else Receipt.parse(text).encode()


def _field(index: int, part: str) -> str | int:
    bits = _NUMBER_BITS.get(index)
    if bits is None:
        return part
    number = parse_int(part, bits)
    if number is None:
        raise ReceiptError(f"extraInfo: field {_NAMES[index]}: a number is needed, got {part!r}")
    return number


def start_offset_info(topic: str, queue_id: int, start_offset: int) -> str:
    """Return the part of startOffsetInfo for one queue."""
    return f"{retry_mark(topic)} {queue_id} {start_offset}"


def message_offset_info(topic: str, queue_id: int, queue_offsets: Iterable[int]) -> str:
    """Return the part of msgOffsetInfo for one queue."""
    return f"{retry_mark(topic)} {queue_id} {','.join(map(str, queue_offsets))}"


def offset_count_info(topic: str, queue_id: int, queue_offset: int, count: int) -> str:
    """Return the part of orderCountInfo for one message that was consumed before."""
    return f"{retry_mark(topic)} {offset_count_key(queue_id, queue_offset)} {count}"


def queue_count_info(topic: str, queue_id: int, count: int) -> str:
    """Return the part of orderCountInfo for a queue as a whole: the least of its messages' counts."""
    return f"{retry_mark(topic)} {queue_id} {count}"


def offset_count_key(queue_id: int, queue_offset: int) -> str:
    """Return the name of a message in orderCountInfo."""
    return f"qo{queue_id}%{queue_offset}"


def join_infos(parts: Iterable[str]) -> str:
    """Return an info of all queues."""
    return _INFO_SEPARATOR.join(parts)


def parse_start_offsets(text: str | None) -> dict[InfoKey, int]:
    """Parse startOffsetInfo by mark and queue id. Raises ReceiptError."""
    return {(mark, _number(queue, text)): _number(value, text) for mark, queue, value in _parts(text)}


def parse_message_offsets(text: str | None) -> dict[InfoKey, list[int]]:
    """Parse msgOffsetInfo by mark and queue id. Raises ReceiptError."""
    rows = _parts(text)
    return {
        (mark, _number(queue, text)): [_number(one, text) for one in value.split(",")] for mark, queue, value in rows
    }


def parse_order_counts(text: str | None) -> dict[tuple[str, str], int]:
    """Parse orderCountInfo by mark and what is counted: `offset_count_key` or a queue id as text. Raises ReceiptError."""
    return {(mark, counted): _number(value, text) for mark, counted, value in _parts(text)}


def _parts(text: str | None) -> list[tuple[str, str, str]]:
    rows = [part.split(" ") for part in text.split(_INFO_SEPARATOR)] if text else []
    if any(len(row) != 3 for row in rows) or len({(mark, key) for mark, key, _ in rows}) < len(rows):
        raise ReceiptError(f"three fields a queue, each queue once, are needed, got {text!r}")
    return [(mark, key, value) for mark, key, value in rows]


def _number(part: str, text: str | None) -> int:
    number = parse_int(part, 64)
    if number is None:
        raise ReceiptError(f"a number is needed, got {part!r} in {text!r}")
    return number

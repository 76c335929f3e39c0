"""Prepares the messages of a batch send for the store: back to back, all or none. Pure: no topic is looked up here.

Each message keeps its own properties and gets the batch's where it lacks a property of that name. Apache's broker appends
the batch's unique key to every message, and readers then take it for the message's own. This broker leaves each message
the key that its producer reports for it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Generator, Iterable, Mapping, Sequence, Set

import attrs

from twisted_mq.broker.processors.send_checks import SendHeader, SendTarget
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import MessageSysFlag, without_commit
from twisted_mq.protocol.layouts.batch_entry import LEAST_ENTRY_BYTES, cut_batch, read_batch, read_columns
from twisted_mq.protocol.layouts.queue_entry import MAX_BATCH_NUM
from twisted_mq.protocol.text.java import from_utf8, tags_code, utf8
from twisted_mq.protocol.text.properties import (
    BROKERS_PROPERTIES,
    PROPERTY_INNER_NUM,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    decode_properties,
    delete_property,
    encode_properties,
)
from twisted_mq.storage.interfaces import InnerBatch, InnerMessage

MOST_TOGETHER = 4096
"""Messages of a batch that are stored in one turn, about 25 ms. A larger batch is stored in several turns."""
_SEPARATOR = 2
_WAITED = utf8(f"{PROPERTY_REAL_TOPIC}\x01")
"""A property that marks a message that has waited, for readers that look in a topic for delivered messages."""
INNER_BATCH = MessageSysFlag.INNER_BATCH_FLAG
_INNER_FLAGS = INNER_BATCH | MessageSysFlag.NEED_UNWRAP_FLAG


@attrs.frozen(eq=False)
class BatchSends:
    """Makes the batches of one broker; the broker gives every message the properties `always`."""

    always: Mapping[str, str]
    _not_own: Set[str] = attrs.field(init=False)
    _suffix: bytes = attrs.field(init=False)

    @_not_own.default
    def _every_brokers_property(self) -> Set[str]:
        return BROKERS_PROPERTIES | self.always.keys()

    @_suffix.default
    def _encoded_always(self) -> bytes:
        return utf8(encode_properties(self.always))

    def pattern(self, header: SendHeader, target: SendTarget, queue_id: int, born_host: bytes) -> InnerMessage:
        """Return what the messages of a batch share. Raises BrokerError for a retry topic, which takes no batches."""
        if target.is_retry:
            remark = f"batch request does not support retry group {target.topic}"
            raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)
        return InnerMessage(
            target.topic,
            queue_id,
            b"",
            b"",
            decode_properties(header.properties or ""),
            0,
            sys_flag=without_commit(header.sys_flag) | (2 if target.multi_tag else 0),
            born_timestamp=header.born_timestamp,
            born_host=born_host,
            reconsume_times=header.reconsume_times or 0,
        )

    def _own(self, pattern: InnerMessage) -> dict[str, str]:
        """Return the properties that the producer gave the batch."""
        return {name: value for name, value in pattern.property_map.items() if name not in self._not_own}

    def inner_key(self, target: SendTarget, pattern: InnerMessage) -> str | None:
        """Return the unique key that identifies a batch stored as one record to its producer; None for other batches."""
        key = pattern.property_map.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) if target.batch_queues else None
        return key or None

    def messages(self, body: bytes, pattern: InnerMessage) -> InnerBatch:
        """Return each message as a record of its own. Raises RecordError, and BrokerError for an empty batch."""
        batch = batch_messages(body, self._own(pattern), self._suffix, pattern)
        if not len(batch):
            raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, "body: must have at least one message")
        return batch

    def inner(self, body: bytes, flag: int, pattern: InnerMessage) -> InnerMessage:
        """Return all messages as one record. Raises RecordError, and BrokerError for too many messages."""
        return inner_batch(body, {**self._own(pattern), **self.always}, flag, pattern)


def is_long(body: bytes) -> bool:
    """Return True if a batch has more than MOST_TOGETHER messages. Raises RecordError if it is cut off before that."""
    return len(body) > MOST_TOGETHER * LEAST_ENTRY_BYTES and next(cut_batch(body, MOST_TOGETHER)) < len(body)


def check_short(body: bytes) -> None:
    """Raise BrokerError for a batch of more than MOST_TOGETHER messages."""
    if is_long(body):
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, f"body: a batch of more than {MOST_TOGETHER} ordered messages")


def stretches(body: bytes) -> Generator[None, None, list[bytes]]:
    """Split a long batch into several of at most MOST_TOGETHER messages, in steps of one. Raises RecordError."""
    ends = [0]
    for end in cut_batch(body, MOST_TOGETHER):
        ends.append(end)
        yield
    return [body[start:end] for start, end in itertools.pairwise(ends)]


def batch_messages(body: bytes, shared: Mapping[str, str], suffix: bytes, message: InnerMessage) -> InnerBatch:
    """Return the messages of an encoded batch, which share the fields of `message` (topic, queue, flags, hosts).

    `shared` are the batch's own properties, `suffix` has those that the broker gives every message. Raises RecordError.
    """
    flags, bodies, texts, alike = read_columns(body)
    joined = b"".join(texts)
    if _WAITED in joined:
        texts, alike = [_without_brokers_own(text) for text in texts], False
    if len({*map(len, texts)}) == 1 and _are_complete(texts, joined, shared):
        return InnerBatch(message, flags, bodies, texts, [0] * len(texts), suffix, alike=alike)
    properties = SharedProperties(texts)
    for name, value in shared.items():
        properties.complete(utf8(f"{name}\x01"), utf8(value))
    return InnerBatch(message, flags, bodies, properties.texts, properties.tags_codes(), suffix)


def _without_brokers_own(text: bytes) -> bytes:
    """Return properties without those that only brokers write."""
    return utf8(functools.reduce(delete_property, BROKERS_PROPERTIES, from_utf8(text)))


def _are_complete(texts: Sequence[bytes], joined: bytes, names: Iterable[str]) -> bool:
    """Return True if texts of one length obviously all end well, have these names at the same place, and have no tags."""
    count, size = len(texts), len(texts[0])
    if not size or joined.find(b"TAGS\x01") >= 0 or joined[size - 1 :: size] != b"\x02" * count:
        return False
    for name in names:
        mark = utf8(f"\x02{name}\x01")
        place = texts[0].find(mark)
        if place < 0:
            mark, place = mark[1:], 0
        for index in range(len(mark)):
            if joined[place + index :: size] != mark[index : index + 1] * count:
                return False
    return True


class SharedProperties:
    """Properties of messages in the text form, in columns: `texts` as they are stored, each ended by a separator.

    `_marked` are the same as Latin-1 with a separator before them, so that every name follows a separator. A search in
    text costs a third of a search in bytes.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        joined = b"\x02" + b"\0\x02".join(texts) + b"\0"
        if not joined.count(b"\x02\0") == joined.count(b"\0") == len(texts):
            texts = [text if not text or text[-1] == _SEPARATOR else text + b"\x02" for text in texts]
            self._marked = [(b"\x02" + text).decode("latin-1") for text in texts]
        else:
            self._marked = joined.decode("latin-1").split("\0")[:-1]
        self.texts = list(texts)

    def complete(self, name: bytes, value: bytes) -> None:
        """Give a property to the messages that have none of its name, which ends with 0x01."""
        mark = (b"\x02" + name).decode("latin-1")
        entry = name + value + b"\x02"
        for place in [place for place, text in enumerate(self._marked) if mark not in text]:
            self.texts[place] += entry
            self._marked[place] += entry.decode("latin-1")

    def tags_codes(self) -> list[int]:
        """Return the tags codes for the queue entries."""
        mark = "\x02TAGS\x01"
        return [_tags_code(text.partition(mark)[2]) if mark in text else 0 for text in self._marked]


def _tags_code(rest: str) -> int:
    """Return the code of the tags at the beginning of properties, as Latin-1."""
    tags = rest.partition("\x02")[0]
    return tags_code(tags if tags.isascii() else from_utf8(tags.encode("latin-1")))


def inner_batch(body: bytes, properties: Mapping[str, str], flag: int, message: InnerMessage) -> InnerMessage:
    """Return the one record of a batch for a topic with batch queues, based on `message` (topic, queue, flags, hosts).

    Raises RecordError, BrokerError for more messages than a queue's entry can count.
    """
    ends = list(itertools.islice(cut_batch(body, MAX_BATCH_NUM), 2))
    count = len(read_batch(body)) if len(ends) < 2 else MAX_BATCH_NUM + 1
    if not 1 <= count <= MAX_BATCH_NUM:
        many = str(count) if len(ends) < 2 else f"more than {MAX_BATCH_NUM}"
        remark = f"body: a batch of {many} messages, a batch queue accepts 1 to {MAX_BATCH_NUM}"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)
    counted = {**properties, PROPERTY_INNER_NUM: str(count)}
    tags = counted.get(PROPERTY_TAGS)
    return attrs.evolve(
        message,
        body=body,
        properties=utf8(encode_properties(counted)),
        property_map=counted,
        tags_code=tags_code(tags) if tags else 0,
        flag=flag,
        sys_flag=message.sys_flag | _INNER_FLAGS,
    )


def check_inner_number(properties: Mapping[str, str], sys_flag: int, body: bytes) -> None:
    """Check that a message with a number of inner messages is such a batch. Raises BrokerError, RecordError.

    Apache's broker refuses one without the flag (HookUtils.checkInnerBatch), and otherwise trusts the number.
    """
    number = properties.get(PROPERTY_INNER_NUM)
    if number is None:
        return
    if not sys_flag & INNER_BATCH:
        remark = f"properties: {PROPERTY_INNER_NUM} is {number}, but sysFlag {sys_flag} is not that of an inner batch"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)
    count = len(read_batch(body))
    if number != str(count):
        remark = f"properties: {PROPERTY_INNER_NUM} is {number}, the body has {count} messages"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)

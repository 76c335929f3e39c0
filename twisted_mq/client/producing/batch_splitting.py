"""Splits many messages into as few batches as their sizes allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twisted_mq.client.producing.outgoing import sent_properties
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.text.java import utf8
from twisted_mq.protocol.text.properties import encode_properties

_A_KEY = "0" * 32
"""A key of the length of every unique key."""


def entry_bytes(message: Message) -> int:
    """Return the bytes that the message takes in a batch's body."""
    properties = utf8(encode_properties(sent_properties(message, _A_KEY)))
    return len(encode_entry(message.flag, b"", properties)) + len(message.body)


def split_batch(messages: Iterable[Message], max_bytes: int) -> Iterator[list[Message]]:
    """Split messages into batches of neighbours, in order, none larger than that. A larger message is a batch of its own."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        more = entry_bytes(message)
        if batch and size + more > max_bytes:
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += more
    if batch:
        yield batch

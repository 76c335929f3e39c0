"""Splits many messages into as few batches as their sizes allow, and says which were stored if one fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from twisted_mq.client.core.errors import ClientError
from twisted_mq.client.producing.outgoing import sent_properties
from twisted_mq.client.producing.send_result import SendResult
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


class BatchIncomplete(ClientError):
    """Raised when some batches of many messages were stored, and the next one failed; `__cause__` says why."""

    def __init__(self, results: Sequence[SendResult], unsent: Sequence[Message], error: BaseException) -> None:
        super().__init__(
            f"{len(results)} batches were stored, the next one failed: {error}. `unsent` has the {len(unsent)} messages "
            "from that batch on; the failed batch may have been stored"
        )
        self.results = tuple(results)
        self.unsent = tuple(unsent)

"""The traces of a message, which clients sent to the trace topic."""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.trace import Trace, decode_traces

Shown = tuple[Trace, str]
"""A trace and the host of its client."""


def traces_of(message: MessageExt, message_id: str) -> Iterator[Shown]:
    """Yield the traces of an id in a message of the trace topic, in the order in which the client wrote them."""
    host = message.born_host.rpartition(":")[0]
    for trace in decode_traces(message.body):
        if trace.msg_id == message_id:
            yield trace, host

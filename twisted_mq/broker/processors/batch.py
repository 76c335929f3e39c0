"""The messages of a batch send as the store takes them. Pure: no topic is looked up here.

Each message keeps its own properties and gets the batch's where it has none of that name. Apache's broker appends the
batch's unique key to every message, where readers then take it for the message's own; ours leaves each message the key
that its producer reports for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.java import from_utf8, tags_code
from protocol.message_batch import read_batch
from storage.interfaces import InnerMessage

_SEPARATOR = 2


def property_of(properties: bytes, name: bytes) -> bytes:
    """The value of a property in the text form; empty where it is missing."""
    mark = b"\x02" + name + b"\x01"
    start = 0 if properties.startswith(mark[1:]) else properties.find(mark) + 1
    if not start and not properties.startswith(mark[1:]):
        return b""
    return properties[start + len(mark) - 1 :].partition(b"\x02")[0]


def batch_messages(
    body: bytes, shared: Mapping[str, str], always: Mapping[str, str], message: InnerMessage
) -> list[InnerMessage]:
    """The messages of an encoded batch, made after `message` (topic, queue, flags, hosts).

    `shared` are the batch's own properties, `always` those that the broker gives every message. Raises RecordError.
    """
    added = {f"{name}\x01".encode(): f"{name}\x01{value}\x02".encode() for name, value in shared.items()}
    suffix = "".join(f"{name}\x01{value}\x02" for name, value in always.items()).encode()
    messages = []
    for flag, content, properties in read_batch(body):
        if properties and properties[-1] != _SEPARATOR:
            properties += b"\x02"
        for mark, entry in added.items():
            if b"\x02" + mark not in properties and not properties.startswith(mark):
                properties += entry
        tags = property_of(properties, b"TAGS") if b"TAGS\x01" in properties else b""
        messages.append(
            InnerMessage(
                message.topic,
                message.queue_id,
                content,
                properties + suffix,
                message.property_map,
                tags_code(from_utf8(tags)) if tags else 0,
                flag,
                message.sys_flag,
                message.born_timestamp,
                message.born_host,
                message.reconsume_times,
            )
        )
    return messages

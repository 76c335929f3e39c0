"""The handle by which a producer recalls a message that waits for its time (Apache: RecallMessageHandle).

The text `v1 topic brokerName timestamp uniqueKey` in the URL form of base64; the timestamp is TIMER_OUT_MS + 1.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

import attrs

from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.text.java import from_utf8, parse_int, utf8
from twisted_mq.protocol.text.properties import (
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_OUT_MS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)

VERSION = "v1"
_PARTS = 5


@attrs.frozen
class RecallHandle:
    """The content of a handle."""

    topic: str
    broker_name: str
    timestamp: str
    unique_key: str

    def encode(self) -> str:
        """Return the text that a producer gets."""
        parts = (VERSION, self.topic, self.broker_name, self.timestamp, self.unique_key)
        return base64.urlsafe_b64encode(utf8(" ".join(parts))).decode()

    @classmethod
    def decode(cls, text: str) -> RecallHandle:
        """Raises ValueError for what is no handle; Java takes missing padding, other letters not."""
        try:
            raw = base64.b64decode(utf8(text + "=" * (-len(text) % 4)), altchars=b"-_", validate=True)
        except binascii.Error as error:
            raise ValueError("recall handle is invalid") from error
        parts = from_utf8(raw).split(" ")
        if len(parts) < _PARTS or parts[0] != VERSION:
            raise ValueError("recall handle is invalid")
        return cls(*parts[1:_PARTS])


def handle_of(properties: Mapping[str, str], broker_name: str) -> str | None:
    """Return the handle of a message that waits for its time; None for others, and for messages that a consumer gave back."""
    due_ms, topic = parse_int(properties.get(PROPERTY_TIMER_OUT_MS), 64), properties.get(PROPERTY_REAL_TOPIC)
    if due_ms is None or topic is None or topic.startswith(RETRY_PREFIX):
        return None
    unique_key = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, "")
    return RecallHandle(topic, broker_name, str(due_ms + 1), unique_key).encode()

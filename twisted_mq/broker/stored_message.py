"""Reads a stored record as the source of another message: retries, dead letters and delayed deliveries copy stored messages.

The body keeps its stored form, compressed or not; hosts, born time and flags are copied.
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.layouts.message_id import offset_message_id
from twisted_mq.protocol.layouts.record import RecordHead, read_head, span_values
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.names.system_topics import NOT_ALLOWED_SEND_TOPICS, TIMER_TOPIC
from twisted_mq.protocol.text.java import from_utf8, parse_int, tags_code, utf8
from twisted_mq.protocol.text.properties import (
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    decode_property_bytes,
    encode_properties,
)
from twisted_mq.storage.interfaces import InnerMessage

Place = tuple[str, int]
"""Topic and queue id."""

_NEVER_WAITED_FOR = NOT_ALLOWED_SEND_TOPICS | {TIMER_TOPIC}
"""Topics that no waiting message is for. A message that names one of them was forged; delivered there it would come back
forever.
"""


@attrs.define(eq=False)
class StoredMessage:
    """The parts of one record; `properties` may be changed before it is copied."""

    head: RecordHead
    topic: str
    body: bytes
    properties: dict[str, str]

    @classmethod
    def read(cls, record: Buffer) -> StoredMessage:
        """Parse a record. Raises RecordError for a damaged one; the body's CRC is not checked."""
        head = read_head(record, 0)
        body, body_end, topic, topic_end, properties, end = span_values(
            record, 0, head.size, magic=head.magic, sys_flag=head.sys_flag, body_length=head.body_length
        )
        return cls(
            head,
            from_utf8(record[topic:topic_end]),
            bytes(record[body:body_end]),
            decode_property_bytes(record[properties:end]),
        )

    @property
    def message_id(self) -> str:
        """Return the offset id: store host and physical offset."""
        return offset_message_id(self.head.store_host, self.head.physical_offset)

    def number(self, name: str) -> int | None:
        """Return a property that holds a long; None if it is missing or not a number."""
        return parse_int(self.properties.get(name), 64)

    @property
    def real_place(self) -> Place | None:
        """Return the topic and queue that a waiting message is for; None if its properties name no allowed place."""
        topic, queue_id = self.properties.get(PROPERTY_REAL_TOPIC), self.number(PROPERTY_REAL_QUEUE_ID)
        return None if not topic or queue_id is None or topic in _NEVER_WAITED_FOR else (topic, queue_id)

    def encoded(self, topic: str, queue_id: int, queue_offset: int, physical_offset: int) -> bytes:
        """Return the record under another topic and at another place, with the properties as they are now."""
        head = self.head
        return encode_record(
            utf8(topic),
            self.body,
            utf8(encode_properties(self.properties)),
            queue_id=queue_id,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            born_timestamp=head.born_timestamp,
            born_host=head.born_host,
            store_timestamp=head.store_timestamp,
            store_host=head.store_host,
            flag=head.flag,
            sys_flag=head.sys_flag,
            reconsume_times=head.reconsume_times,
            prepared_transaction_offset=head.prepared_transaction_offset,
            body_crc=head.body_crc,
        )

    def copy_to(self, topic: str, queue_id: int, reconsume_times: int | None = None) -> InnerMessage:
        """Return the message for another queue, with the properties as they are now."""
        head, properties = self.head, self.properties
        return InnerMessage(
            topic,
            queue_id,
            self.body,
            utf8(encode_properties(properties)),
            properties,
            tags_code(properties.get(PROPERTY_TAGS)),
            head.flag,
            head.sys_flag,
            head.born_timestamp,
            head.born_host,
            head.reconsume_times if reconsume_times is None else reconsume_times,
        )

"""Bodies with bytes in them that look like a record and name their own place in the log."""

from __future__ import annotations

from typing import Any

from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record import HEAD_BYTES
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.text.properties import encode_properties

HOST = pack_host("127.0.0.1", 52174)


def forged_body(log_end: int, topic: str, body: bytes = b"forged", **fields: Any) -> tuple[int, bytes]:
    """Return the offset of the forged record after its message is appended at the log's end, and the body of that message."""
    place = log_end + HEAD_BYTES
    properties = encode_properties(fields.pop("properties", {})).encode()
    values: dict[str, Any] = {"queue_id": 0, "queue_offset": 0, "born_timestamp": 1, "born_host": HOST}
    values |= {"store_timestamp": 1, "store_host": HOST, "physical_offset": place}
    return place, encode_record(topic.encode(), body, properties, **(values | fields))

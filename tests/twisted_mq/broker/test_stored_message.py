from __future__ import annotations

import pytest

from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record_codec import encode_record

HOST = bytes([10, 0, 0, 1, 0, 0, 1, 2])


def record(properties: bytes = b"TAGS\x01A\x02N\x0112\x02", born_host: bytes = HOST) -> bytes:
    return encode_record(
        b"T", b"body", properties, queue_id=3, queue_offset=4, physical_offset=240, born_timestamp=5,
        born_host=born_host, store_timestamp=6, store_host=HOST, flag=7, sys_flag=1, reconsume_times=2,
    )  # fmt: skip


@pytest.mark.parametrize("born_host", [HOST, bytes(12) + HOST])
def test_copy_has_the_parts_of_its_source(born_host: bytes) -> None:
    stored = StoredMessage.read(memoryview(record(born_host=born_host)))
    stored.properties["TAGS"] = "B"
    copy = stored.copy_to("U", 9)
    assert (copy.topic, copy.queue_id, copy.body, copy.properties) == ("U", 9, b"body", b"TAGS\x01B\x02N\x0112\x02")
    assert (copy.flag, copy.born_timestamp, copy.born_host, copy.reconsume_times) == (7, 5, born_host, 2)
    assert (copy.tags_code, copy.sys_flag & 1, copy.property_map) == (66, 1, {"TAGS": "B", "N": "12"})
    assert stored.copy_to("U", 9, 0).reconsume_times == 0


def test_its_id_and_numbers() -> None:
    stored = StoredMessage.read(record())
    assert stored.message_id == "0A0000010000010200000000000000F0"
    assert (stored.number("N"), stored.number("TAGS"), stored.number("X")) == (12, None, None)


def test_damage_is_told() -> None:
    with pytest.raises(RecordError):
        StoredMessage.read(record()[:-1])

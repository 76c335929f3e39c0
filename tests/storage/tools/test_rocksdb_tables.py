"""Tables of Apache's RocksDB as a store's files: both versions give the same, damage is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable, SubscriptionGroupTable, TopicTable
from twisted_mq.storage.tools.rocksdb_tables import tables_of_v1, tables_of_v2

TOPIC = b'{"topicName":"Orders","readQueueNums":4,"writeQueueNums":4,"perm":6}'
GROUP = b'{"groupName":"audit","retryMaxTimes":7}'
HEAD = {"offset": "01000102", "topic": "01000302", "group": "01000402"}


def named(table: str, name: bytes) -> bytes:
    return bytes.fromhex(HEAD[table]) + bytes([0, len(name)]) + name


def offset_key(queue_id: int) -> bytes:
    return named("offset", b"audit") + b"\x01\x00\x06Orders\x01" + bytes([0, 0, 0, queue_id])


V1 = {
    "topics": [(b"Orders", TOPIC)],
    "groups": [(b"audit", GROUP)],
    "forbidden": [(b"audit", b'{"Orders":1}')],
    "offsets": [(b"Orders@audit", b'{"offsetTable":{0:5,3:258}}')],
}
V2 = [
    (bytes.fromhex("01000301") + b"data_version", bytes(24)),
    (named("topic", b"Orders"), b"\x01" + TOPIC),
    (named("group", b"audit"), b"\x01" + GROUP),
    (offset_key(0), bytes([0] * 7 + [5])),
    (offset_key(3), bytes([0] * 6 + [1, 2])),
    (bytes.fromhex("01000202") + offset_key(0)[4:], bytes(8)),
]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_files_have_what_rocksdb_had(version: str, tmp_path: Path) -> None:
    tables = tables_of_v1(**V1) if version == "v1" else tables_of_v2(V2)
    tables.write(str(tmp_path))
    topics = TopicTable(str(tmp_path / "topics.json"))
    groups = SubscriptionGroupTable(str(tmp_path / "subscriptionGroup.json"))
    offsets = ConsumerOffsetTable(str(tmp_path / "consumerOffset.json"))
    for table in (topics, groups, offsets):
        assert table.load() == []
    assert topics.topics["Orders"].read_queue_nums == 4
    assert groups.groups["audit"].retry_max_times == 7
    assert groups.forbidden == ({"audit": {"Orders": 1}} if version == "v1" else {})
    assert offsets.offsets == {"Orders@audit": {0: 5, 3: 258}}


@pytest.mark.parametrize("value", [b"[1]", b'{"offsets":{}}', b'{"offsetTable":{0:"x"}}', b"no json"])
def test_offsets_that_are_none_are_refused(value: bytes) -> None:
    with pytest.raises((ValueError, ProtocolError)):
        tables_of_v1([], [], [], [(b"Orders@audit", value)])

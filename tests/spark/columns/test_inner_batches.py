"""Records that hold several messages read as the messages that consumers take out of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.spark.columns.test_makers import batches, rows
from tests.spark.stores import StoreWriter, everything
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import encode_batch, unwrapped
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.compression import CompressionType, compress
from twisted_mq.protocol.messages.message import Message
from twisted_mq.spark.columns import makers
from twisted_mq.spark.columns.makers import record_batches
from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.files.mapped_log import MappedLog

INNER = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG
ONE, TWO = (
    Message("Batches", b"one", 7, {"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "U1", "own": "ü"}),
    Message("Batches", b"two", 8, {}),
)


def store(root: Path) -> str:
    """A single message, a batch of two, a batch of one, and a body that only says that it is a batch."""
    writer = StoreWriter(root)
    writer.append("Batches", b"single", {"UNIQ_KEY": "U0"})
    writer.append("Batches", encode_batch([ONE, TWO]), {"UNIQ_KEY": "B", "INNER_NUM": "2"}, sys_flag=INNER)
    writer.append("Batches", encode_batch([TWO]), {"TAGS": "B"}, queue_offset=3, sys_flag=INNER)
    writer.append("Batches", b"no batch", queue_offset=4, sys_flag=INNER)
    writer.append("Other", encode_batch([ONE]), sys_flag=MessageSysFlag.INNER_BATCH_FLAG)
    return writer.write()


def test_a_row_is_a_message_as_a_consumer_sees_it(tmp_path: Path) -> None:
    found = rows(store(tmp_path), "queueOffset", "body", "flag", "tags", "keys", "uniqKey", "properties")
    assert [(one["queueOffset"], one["body"]) for one in found[:5]] == [
        (0, b"single"), (1, b"one"), (2, b"two"), (3, b"two"), (4, b"no batch"),
    ]  # fmt: skip
    assert found[1] == {
        "queueOffset": 1, "body": b"one", "flag": 7, "tags": "A", "keys": "k1 k2", "uniqKey": "U1",
        "properties": list(ONE.properties.items()),
    }  # fmt: skip
    assert (found[2]["tags"], found[2]["uniqKey"], found[2]["properties"]) == (None, None, [])
    assert len(found) == 6


def test_rows_are_what_the_protocol_takes_apart(tmp_path: Path) -> None:
    path = store(tmp_path)
    (first,) = list_log_files(Store(path))
    file = MappedLog(first.path, first.first_offset)
    offsets = sorted({row["physicalOffset"] for row in rows(path)})
    expected = [
        (one.topic, one.queue_offset, one.body, one.flag, one.tags, one.sys_flag, one.physical_offset)
        for offset in offsets[:3]
        for one in unwrapped(decode_message(file.data, offset))
    ]
    names = ("topic", "queueOffset", "body", "flag", "tags", "sysFlag", "physicalOffset")
    assert [tuple(row[name] for name in names) for row in rows(path)][: len(expected)] == expected


def test_sums_of_sizes_are_those_of_the_log(tmp_path: Path) -> None:
    found = rows(store(tmp_path))
    assert found[2]["storeSize"] == 0
    by_record = {row["physicalOffset"]: row["storeSize"] for row in reversed(found)}
    assert (
        sum(row["storeSize"] for row in found)
        == sum(by_record.values())
        == sorted(by_record)[-1] + found[-1]["storeSize"]
    )
    assert {row["crcOk"] for row in found} == {True}


def test_few_columns_count_the_same_rows(tmp_path: Path) -> None:
    path = store(tmp_path)
    assert [len(rows(path, name)) for name in COLUMN_NAMES] == [6] * len(COLUMN_NAMES)
    assert len(rows(path, "topic", topics=("Batches",))) == 5


def test_a_compressed_batch_is_taken_apart_too(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path)
    body = compress(encode_batch([ONE, TWO]), CompressionType.ZLIB)
    flags = INNER | MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    writer.append("Batches", body, sys_flag=flags)
    assert [row["body"] for row in rows(writer.write(), "body")] == [b"one", b"two"]


def test_large_batches_are_copied_once(tmp_path: Path) -> None:
    """Each message had the whole body of its batch for a moment: four of 1,000 KiB overflowed at 2.2 GiB."""
    writer = StoreWriter(tmp_path, file_size=8 << 20)
    message = Message("Batches", b"x" * 1024, 0, {})
    for _ in range(4):
        writer.append("Batches", encode_batch([message] * 1000), sys_flag=INNER)
    before = pa.total_allocated_bytes()
    peaks = []
    for batch in batches(writer.write(), ("queueOffset", "body")):
        peaks.append(pa.total_allocated_bytes() - before)
        assert batch.num_rows == 4000
        assert batch["body"].nbytes < 5 << 20
    assert max(peaks) < 40 << 20


def test_batches_whose_messages_are_too_many_for_one_arrow_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(makers, "MAX_BATCH_BODY_BYTES", 3000)
    writer = StoreWriter(tmp_path)
    body = compress(encode_batch([Message("Batches", b"x" * 100, 0, {"TAGS": "a"})] * 10), CompressionType.ZLIB)
    flags = INNER | MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    for _ in range(8):
        writer.append("Batches", body, sys_flag=flags)
    found = [batch.num_rows for batch in batches(writer.write(), ("body",))]
    assert found == [20, 20, 20, 20]


def test_messages_of_batches_are_selected_by_their_own_tags(tmp_path: Path) -> None:
    for names in (("queueOffset",), ("queueOffset", "tags")):
        found = [
            row["queueOffset"]
            for piece in everything(store(tmp_path))
            for batch in record_batches(piece, names, MessageConditions(tags=("A",)))
            for row in batch.to_pylist()
        ]
        assert found == [1]

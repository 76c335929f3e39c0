"""Every column of every record equals what twisted_mq.protocol.layouts.record_codec.decode_message says, field by field."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.stores import IPV4_BORN, IPV4_STORE, IPV6_BORN, IPV6_STORE, StoreWriter, everything
from tests.support.captures import STORES
from tests.support.forms import each_form as each_form
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages import compression
from twisted_mq.protocol.messages.compression import CompressionType
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.spark.columns import makers as columns_module
from twisted_mq.spark.columns.makers import Origin, record_batches
from twisted_mq.spark.columns.schema import COLUMN_NAMES, arrow_schema
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.files.mapped_log import MappedLog

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def batches(
    store: str, names: tuple[str, ...] = COLUMN_NAMES, topics: tuple[str, ...] = ()
) -> Iterator[pa.RecordBatch]:
    for piece in everything(store):
        if isinstance(piece, RecordColumns):
            yield from record_batches(piece, names, MessageConditions(topics), Origin("/a/store", "broker-a"))


def rows(store: str, *names: str, topics: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in batches(store, names or COLUMN_NAMES, topics):
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def expected_row(message: MessageExt, file: str) -> dict[str, Any]:
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "physicalOffset": message.physical_offset,
        "file": file,
        "store": "/a/store",
        "brokerName": "broker-a",
        "tags": message.tags,
        "keys": message.properties.get("KEYS"),
        "uniqKey": message.unique_key,
        "properties": message.properties,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "bornTimestamp": EPOCH + datetime.timedelta(milliseconds=message.born_timestamp),
        "storeTimestamp": EPOCH + datetime.timedelta(milliseconds=message.store_timestamp),
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "crcOk": True,
        "body": message.body,
    }


def decoded(store: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that the protocol's decoder gives for the same places."""
    logs = {file.path[-20:]: MappedLog(file.path, file.first_offset) for file in list_log_files(Store(store))}
    places = [(logs[row["file"]], row["physicalOffset"]) for row in found]
    return [expected_row(decode_message(log.data, offset - log.first_offset), log.name) for log, offset in places]


def plain(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "properties": dict(row["properties"])} for row in found]


@pytest.mark.parametrize("store", STORES)
def test_recorded_stores_equal_the_decoder(captured: Callable[[str], str], store: str) -> None:
    found = rows(captured(store))
    assert plain(found) == decoded(captured(store), found)


SMALL = st.integers(-(2**31), 2**31 - 1)
BIG = st.integers(-(2**63), 2**63 - 1)
MESSAGES = st.fixed_dictionaries(
    {
        "topic": st.one_of(st.just("Orders"), st.text(max_size=40)),
        "body": st.binary(max_size=40),
        "properties": st.one_of(
            st.binary(max_size=30),
            st.dictionaries(st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "own"]), st.text(min_size=1, max_size=5)),
        ),
        "queue_id": SMALL,
        "queue_offset": BIG,
        "flag": SMALL,
        "sys_flag": st.sampled_from([0, 4, 8, 12]),
        "born_timestamp": st.integers(-(10**13), 10**14),
        "reconsume_times": SMALL,
        "prepared_transaction_offset": BIG,
        "born_host": st.sampled_from([IPV4_BORN, IPV6_BORN]),
        "store_host": st.sampled_from([IPV4_STORE, IPV6_STORE]),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=8))
def test_any_records_equal_the_decoder(
    tmp_path_factory: pytest.TempPathFactory, messages: list[dict[str, Any]]
) -> None:
    writer = StoreWriter(tmp_path_factory.mktemp("any"))
    for message in messages:
        writer.append(**message)
    found = rows(writer.write(queues=False))
    assert len(found) == len(messages)
    assert plain(found) == decoded(str(writer.root), found)


def test_batches_have_the_schema_that_spark_is_told(writer: StoreWriter) -> None:
    writer.append()
    (batch,) = batches(writer.write(), ("body", "topic"))
    assert batch.schema == arrow_schema(("body", "topic"))


def test_only_wanted_topics(writer: StoreWriter) -> None:
    for topic in ("Orders", "Payments", "Orders", "Returns"):
        writer.append(topic=topic)
    store = writer.write()
    wanted = rows(store, "topic", "queueOffset", topics=("Orders", "Returns"))
    assert wanted == [
        {"topic": "Orders", "queueOffset": 0},
        {"topic": "Orders", "queueOffset": 1},
        {"topic": "Returns", "queueOffset": 0},
    ]
    assert rows(store, topics=("Absent",)) == []


def test_a_damaged_body_is_a_row_with_a_wrong_crc(writer: StoreWriter) -> None:
    good = writer.append(body=b"same length")
    bad = writer.append(body=b"same length")
    writer.append(body=b"", body_crc=7)
    writer.overwrite(bad + 88, b"S")
    assert rows(writer.write(), "physicalOffset", "crcOk", "body")[:2] == [
        {"physicalOffset": good, "crcOk": True, "body": b"same length"},
        {"physicalOffset": bad, "crcOk": False, "body": b"Same length"},
    ]
    assert rows(str(writer.root), "crcOk")[2] == {"crcOk": True}


def test_compressed_bodies_and_those_that_cannot_be_decompressed(writer: StoreWriter) -> None:
    body = b"a body " * 100
    for kind in CompressionType:
        writer.append(body=compression.compress(body, kind), sys_flag=1 | kind.sys_flag)
    writer.append(body=b"not compressed", sys_flag=1)
    writer.append(body=b"plain")
    found = rows(writer.write(), "body", "crcOk")
    assert [row["body"] for row in found] == [body, body, body, None, b"plain"]
    assert all(row["crcOk"] for row in found)


def test_bodies_that_grow_too_large_for_one_batch_come_in_several(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_module, "MAX_BATCH_BODY_BYTES", 250)
    packed = compression.compress(b"x" * 100)
    for _ in range(8):
        writer.append(body=packed, sys_flag=1)
    found = list(batches(writer.write(), ("queueOffset", "body")))
    assert [batch.num_rows for batch in found] == [2, 2, 2, 2]
    assert [row["queueOffset"] for batch in found for row in batch.to_pylist()] == list(range(8))


def test_times_that_no_calendar_knows_are_null(writer: StoreWriter) -> None:
    for born in (2**63 - 10, -(2**63), 253_402_300_799_997, 0):
        writer.append(born_timestamp=born, latency_ms=0)
    found = [row["bornTimestamp"] for row in rows(writer.write(), "bornTimestamp")]
    last = datetime.datetime(9999, 12, 31, 23, 59, 59, 997000, tzinfo=datetime.UTC)
    assert found == [None, None, last, EPOCH]

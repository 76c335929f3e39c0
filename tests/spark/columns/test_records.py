"""Heads and spans of many records equal what the protocol's own reader says of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.spark.stores import IPV6_BORN, IPV6_STORE, StoreWriter
from twisted_mq.protocol.layouts.record import read_head, read_spans
from twisted_mq.protocol.layouts.record_columns import HOST_FIELDS, NUMBER_FIELDS, hosts_at
from twisted_mq.spark.columns.arrow_texts import gather
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns, intact_records
from twisted_mq.storage.files.mapped_log import MappedLog


def open_first(store: str) -> MappedLog:
    file = list_log_files(Store(store))[0]
    return MappedLog(file.path, file.first_offset)


def mixed_store(writer: StoreWriter) -> MappedLog:
    """All four kinds of heads, both versions, empty and filled fields, in one file."""
    for number, hosts in enumerate([{}, {"born_host": IPV6_BORN}, {"store_host": IPV6_STORE}] * 2):
        writer.append(body=b"x" * number, properties={"TAGS": "t"} if number % 2 else b"", flag=-number, **hosts)
    writer.append(topic="long" * 40, born_host=IPV6_BORN, store_host=IPV6_STORE, reconsume_times=3)
    writer.append(topic="", body=b"")
    return open_first(writer.write())


def test_fields_and_spans_equal_the_protocols_reader(writer: StoreWriter) -> None:
    log = mixed_store(writer)
    records = intact_records(log, np.array(writer.positions))
    assert records.starts.tolist() == writer.positions
    assert len(records) == 8
    hosts = {name: dict(_host_rows(records, name)) for name in HOST_FIELDS}
    for row, start in enumerate(writer.positions):
        head = read_head(log.data, start)
        found = {name: records.numbers(name)[row].item() for name in NUMBER_FIELDS}
        found |= {name: rows[row] for name, rows in hosts.items()}
        assert found == head._asdict()
        spans = (records.body, records.body_end, records.topic, records.topic_end, records.properties, records.ends)
        assert [int(column[row]) for column in spans] == list(read_spans(log.data, start, head))


def _host_rows(records: RecordColumns, name: str) -> Iterator[tuple[int, bytes]]:
    for rows, packed in hosts_at(records.log.data, records.starts, records.heads, name):
        yield from zip(rows.tolist(), map(bytes, packed), strict=True)


def test_selected_rows(writer: StoreWriter) -> None:
    log = mixed_store(writer)
    records = intact_records(log, np.array(writer.positions)).rows(np.array([1, 6]))
    assert records.starts.tolist() == [writer.positions[1], writer.positions[6]]
    assert records.numbers("flag").tolist() == [-1, 0]
    assert gather(log, records.topic, records.topic_end).to_pylist() == [b"Orders", b"long" * 40]


def test_nothing_to_load(writer: StoreWriter) -> None:
    log = mixed_store(writer)
    none = np.array([], np.int64)
    assert len(intact_records(log, none)) == 0
    assert gather(log, none, none).to_pylist() == []


@pytest.mark.parametrize(
    ("position", "data"),
    [
        (0, b"\x00\x00\x00\x10"),
        (0, b"\xff\xff\xff\xff"),
        (0, b"\x7f\xff\xff\xff"),
        (4, b"\xda\xa3\x20\xa8"),
        (4, b"\xda\xa3\x20\xab"),
        (28, bytes(8)),
        (36, b"\x00\x00\x00\x30"),
        (84, b"\xff\xff\xff\xff"),
        (84, b"\x7f\xff\xff\xff"),
        (92, b"\xff"),
        (92, b"\x7f"),
        (99, b"\xff\xff"),
        (99, b"\x00\x01"),
    ],
    ids=[
        "size smaller than a head",
        "negative size",
        "size beyond the file",
        "other magic",
        "wrong version",
        "other offset",
        "IPv6 hosts that are not there",
        "negative body",
        "body beyond the record",
        "negative topic",
        "topic beyond the record",
        "negative properties",
        "properties beyond the record",
    ],
)
def test_a_damaged_record_ends_the_intact_ones(writer: StoreWriter, position: int, data: bytes) -> None:
    for _ in range(3):
        writer.append()
    writer.overwrite(writer.positions[1] + position, data)
    log = open_first(writer.write())
    starts = np.array(writer.positions)
    assert not log.is_record(writer.positions[1])
    assert intact_records(log, starts).starts.tolist() == writer.positions[:1]


def test_starts_too_close_to_the_end_are_not_read(writer: StoreWriter) -> None:
    writer.append()
    log = open_first(writer.write())
    assert intact_records(log, np.array([0, log.size - 90])).starts.tolist() == [0]

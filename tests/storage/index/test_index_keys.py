"""Keys of records: the fast walk against its readable twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.apache_stores import FILE_SIZES, sizes_of, unpack
from tests.storage.conftest import START_MS, OpenFileStore, message, put
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.index import key_hash
from twisted_mq.protocol.layouts.record_codec import dispatch_fields
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.storage.index.index_keys import keys_of, record_keys
from twisted_mq.storage.index.key_collector import KeyCollector
from twisted_mq.storage.log.log_scan import LogScan


@pytest.mark.parametrize(
    ("properties", "keys"),
    [
        (b"", []),
        (b"UNIQ_KEY\x01U\x02", [b"U"]),
        (b"UNIQ_KEY\x01U", [b"U"]),
        (b"TAGS\x01T\x02UNIQ_KEY\x01U\x02WAIT\x01true\x02", [b"U"]),
        (b"KEYS\x01a b\x02UNIQ_KEY\x01U\x02", [b"U", b"a", b"b"]),
        (b"KEYS\x01  a  b \x02", [b"a", b"b"]),
        (b"KEYS\x01a a\x02", [b"a", b"a"]),
        (b"KEYS\x01 \x02", []),
        (b"UNIQ_KEY\x01first\x02UNIQ_KEY\x01last\x02", [b"last"]),
        (b"UNIQ_KEY\x01first\x02UNIQ_KEY\x01\x02", [b"first"]),
        (b"MY_UNIQ_KEY\x01no\x02MYKEYS\x01no\x02", []),
        (b"UNIQ_KEY\x01U\x02OTHER\x01UNIQ_KEY\x01x\x02", [b"U"]),
        ("KEYS\x01schlüssel 鍵\x02".encode(), ["schlüssel".encode(), "鍵".encode()]),
        (b"UNIQ_KEY\x01one\x01two\x02", [b"one\x01two"]),
    ],
)
def test_keys_of_properties(properties: bytes, keys: list[bytes]) -> None:
    assert keys_of(properties) == keys


@given(st.text("UNIQ_KEYS\x01\x02 a", max_size=40))
def test_keys_are_those_of_the_parsed_properties(text: str) -> None:
    parsed = record_keys("T", decode_property_bytes(text.encode()), 0)
    assert [f"T#{key.decode()}" for key in keys_of(text.encode())] == parsed


@pytest.mark.parametrize(
    ("transaction", "keys"),
    [
        (MessageSysFlag.TRANSACTION_NOT_TYPE, ["T#k"]),
        (MessageSysFlag.TRANSACTION_PREPARED_TYPE, ["T#k"]),
        (MessageSysFlag.TRANSACTION_COMMIT_TYPE, ["T#k"]),
        (MessageSysFlag.TRANSACTION_ROLLBACK_TYPE, []),
    ],
)
def test_rolled_back_messages_have_no_keys(transaction: int, keys: list[str]) -> None:
    assert record_keys("T", {"KEYS": "k"}, transaction) == keys


def readable(store: Any) -> list[tuple[int, int, int]]:
    """The keys of a whole log by way of dispatch_fields and key_hash."""
    records = LogScan(store._log.files.files, store.min_physical_offset())
    return [
        (key_hash(text), record.physical_offset, record.store_timestamp)
        for record in records
        for text in record_keys(record.topic, record.properties, record.sys_flag)
    ]


def keyed(keys: str, **fields: Any) -> Any:
    return message(properties=f"UNIQ_KEY\x01{keys}#\x02KEYS\x01{keys}\x02".encode(), **fields)


def test_walk_collects_what_the_readable_way_gives(open_store: OpenFileStore) -> None:
    """Rolls, long topics, IPv6 hosts, transactions, odd keys, and records without keys."""
    store = open_store()
    for number in range(60):
        put(
            store,
            keyed(f"k{number} common"),
            keyed("ключ 鍵 𝒳", topic="Other"),
            message(),
            keyed("long", topic="%RETRY%" + "L" * 150),
            keyed("six", born_host=bytes(range(16)) + (80).to_bytes(4, "big")),
            keyed("half", sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE),
            keyed("gone", sys_flag=MessageSysFlag.TRANSACTION_ROLLBACK_TYPE),
            keyed("done", sys_flag=MessageSysFlag.TRANSACTION_COMMIT_TYPE),
            keyed("x" * 300),
        )
    expected = readable(store)
    assert len({offset // 4096 for _, offset, _ in expected}) > 5
    whole = KeyCollector(store._log)
    assert whole.collect(store.max_physical_offset(), 1 << 30).tolist() == expected
    assert whole.position == store.max_physical_offset()
    pieces, collector = [], KeyCollector(store._log)
    while collector.position < store.max_physical_offset():
        pieces += collector.collect(store.max_physical_offset(), 300).tolist()
    assert pieces == expected


@pytest.mark.parametrize("name", sorted(FILE_SIZES))
def test_walk_of_apaches_logs(open_store: OpenFileStore, tmp_path: Path, name: str) -> None:
    store = open_store(unpack(name, tmp_path), **sizes_of(name))
    collected = (
        KeyCollector(store._log, store.min_physical_offset()).collect(store.max_physical_offset(), 1 << 30).tolist()
    )
    assert collected == readable(store)
    assert collected


def test_walk_stops_at_the_end_that_it_is_given(open_store: OpenFileStore) -> None:
    store = open_store()
    results = put(store, keyed("a"), keyed("b"), keyed("c"))
    collector = KeyCollector(store._log)
    collected = collector.collect(results[1].end_offset + 5, 1 << 20).tolist()
    assert [entry[1] for entry in collected] == [results[0].physical_offset] * 2 + [results[1].physical_offset] * 2
    assert collector.position == results[1].end_offset
    assert collected[0][2] == START_MS
    record = store.look_message(0)
    assert record is not None and dispatch_fields(record).properties == {"UNIQ_KEY": "a#", "KEYS": "a"}

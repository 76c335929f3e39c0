"""Keys of the tables that Apache's broker keeps in RocksDB."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.layouts.config_keys import (
    ConfigKeyError,
    OffsetName,
    TableId,
    data_key,
    json_of,
    name_of,
    offset_name_of,
    offset_of,
)

TOPIC_KEY = bytes.fromhex("01 0003 02 0006") + b"Orders"
OFFSET_KEY = bytes.fromhex("01 0001 02 0005") + b"audit" + b"\x01\x00\x06Orders\x01" + bytes.fromhex("00000003")
VERSION_KEY = bytes.fromhex("01 0003 01") + b"data_version"


def test_a_topics_key_has_table_and_name() -> None:
    table, rest = data_key(TOPIC_KEY) or (0, b"")
    assert (table, name_of(rest)) == (TableId.TOPIC, "Orders")


def test_an_offsets_key_has_group_topic_and_queue() -> None:
    table, rest = data_key(OFFSET_KEY) or (0, b"")
    assert (table, offset_name_of(rest)) == (TableId.CONSUMER_OFFSET, OffsetName("audit", "Orders", 3))
    assert offset_of(bytes.fromhex("0000000000000102")) == 258


@pytest.mark.parametrize(
    ("number", "name"), [(1, "CONSUMER_OFFSET"), (2, "PULL_OFFSET"), (3, "TOPIC"), (4, "SUBSCRIPTION_GROUP")]
)
def test_tables_have_apaches_numbers(number: int, name: str) -> None:
    table, _ = data_key(bytes([1, 0, number, 2]) + b"\x00\x01T") or (0, b"")
    assert TableId(table).name == name


@pytest.mark.parametrize("key", [b"", b"\x01\x00", VERSION_KEY, b"\x02" + TOPIC_KEY[1:]])
def test_other_keys_are_none_of_these(key: bytes) -> None:
    assert data_key(key) is None


def test_json_is_the_only_kind_of_value() -> None:
    assert json_of(b"\x01{}") == b"{}"
    with pytest.raises(ConfigKeyError, match="value of kind 02: only JSON"):
        json_of(b"\x02{}")


def test_a_key_without_a_name_is_of_its_table() -> None:
    assert data_key(TOPIC_KEY[:4]) == (TableId.TOPIC, b"")


@pytest.mark.parametrize("rest", [b"", b"\x00\x09short", b"\x00\x02\xff\xfe"])
def test_damaged_names_are_refused(rest: bytes) -> None:
    with pytest.raises(ConfigKeyError):
        name_of(rest)
    with pytest.raises(ConfigKeyError):
        offset_name_of(rest)

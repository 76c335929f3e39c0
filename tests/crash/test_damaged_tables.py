"""A cut at every byte and a flipped bit in every byte of the broker's JSON tables: each loads, and says what it did."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.crash_rounds import thorough
from twisted_mq.broker.filter.bloom_filter import BloomFilterData
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterData, ConsumerFilterTable
from twisted_mq.protocol.bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable, SubscriptionGroupTable, TopicTable
from twisted_mq.storage.tables.small_tables import DelayOffsetTable

STRIDE = 1 if thorough() else 7


def topics(path: str, version: int) -> Any:
    table = TopicTable(path)
    table.topics = {name: TopicConfig(name, 4, 4 + version) for name in ("TopicA", "TopicB")}
    return table


def groups(path: str, version: int) -> Any:
    table = SubscriptionGroupTable(path)
    table.groups = {"GroupA": SubscriptionGroupConfig("GroupA", retry_max_times=version)}
    return table


def offsets(path: str, version: int) -> Any:
    table = ConsumerOffsetTable(path)
    table.offsets = {"TopicA@GroupA": {0: version, 1: 7}}
    return table


def delays(path: str, version: int) -> Any:
    table = DelayOffsetTable(path)
    table.offsets = {1: version, 3: 12}
    return table


def filters(path: str, version: int) -> Any:
    table = ConsumerFilterTable(path)
    bits = BloomFilterData((3, 5), 112)
    data = ConsumerFilterData("GroupA", "TopicA", f"a > {version}", "SQL92", 1_700_000_000_000, 5, bits)
    table.filters = {"TopicA": {"GroupA": data}}
    return table


TABLES: dict[str, Callable[[str, int], Any]] = {
    "topics.json": topics,
    "subscriptionGroup.json": groups,
    "consumerOffset.json": offsets,
    "delayOffset.json": delays,
    "consumerFilter.json": filters,
}


def saved(directory: Path, name: str, version: int) -> bytes:
    table = TABLES[name](str(directory / name), version)
    table.data_version = DataVersion(0, 1_700_000_000_000, version)
    table.save()
    return (directory / name).read_bytes()


def state(table: Any) -> Any:
    """Return the data that the table would write."""
    return table._body()


def load(directory: Path, name: str) -> tuple[Any, list[str]]:
    table = type(TABLES[name](str(directory / name), 0))(str(directory / name))
    actions = table.load()
    return state(table), [str(action) for action in actions]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_was_cut_off_is_read_from_its_backup(tmp_path: Path, name: str) -> None:
    older, newer = saved(tmp_path, name, 1), saved(tmp_path, name, 2)
    (tmp_path / "older").mkdir()
    saved(tmp_path / "older", name, 1)
    before, _ = load(tmp_path / "older", name)
    for position in range(0, len(newer), STRIDE):
        (tmp_path / name).write_bytes(newer[:position])
        (tmp_path / f"{name}.bak").write_bytes(older)
        found, told = load(tmp_path, name)
        assert found == before, position
        assert len(told) == 1 and "its backup was read, the damaged file is kept" in told[0]
        assert (tmp_path / f"{name}.damaged").read_bytes() == newer[:position]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_with_a_flipped_bit_is_read_or_its_backup_is(tmp_path: Path, name: str) -> None:
    """A bit that leaves the file well-formed cannot be told from another value; it never stops a start."""
    older, newer = saved(tmp_path, name, 1), saved(tmp_path, name, 2)
    for position in range(0, len(newer), STRIDE):
        data = bytearray(newer)
        data[position] ^= 1 << random.Random(position).randrange(8)
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"{name}.bak").write_bytes(older)
        _, told = load(tmp_path, name)
        assert len(told) <= 1, position
        assert (tmp_path / name).exists() == (not told)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_a_backup_begins_empty_and_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    empty, _ = load(tmp_path / "empty", name)
    whole = saved(tmp_path, name, 1)
    for position in range(0, len(whole), STRIDE):
        (tmp_path / name).write_bytes(whole[:position])
        found, told = load(tmp_path, name)
        assert found == empty
        assert len(told) == 1 and "the table starts empty, the damaged file is kept" in told[0]

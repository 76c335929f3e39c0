"""Extension units: their bytes as Apache's, their files' ends, and queues that lead to them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.storage.conftest import START_MS, OpenFileStore, message, put, tagged
from twisted_mq.protocol.layouts.queue_entry import QUEUE_EXTENSION_UNIT, is_extension_address, unpack_entry
from twisted_mq.storage.check import check_store
from twisted_mq.storage.interfaces import GetStatus
from twisted_mq.storage.queues.queue_extension import ExtensionUnit, QueueExtension
from twisted_mq.storage.retention import DiskUsage, remove_file

FIRST = -1 << 63
EXTENDED: dict[str, Any] = {"enable_consume_queue_ext": True, "mapped_file_size_consume_queue_ext": 128}


def extension(root: Path, size: int = 128, **fields: Any) -> QueueExtension:
    return QueueExtension(str(root / "units"), size, 4096, **fields)


def test_unit_lies_at_its_address_as_the_layout_says(tmp_path: Path) -> None:
    units = extension(tmp_path)
    assert [units.append(ExtensionUnit(7, START_MS, b"\x01\x02")), units.append(ExtensionUnit(-9, START_MS + 1))] == [
        FIRST,
        FIRST + 22,
    ]
    data = (tmp_path / "units" / ("0" * 20)).read_bytes()
    values = {"tags_code": 7, "msg_store_time": START_MS, "bit_map_size": 2, "filter_bit_map": b"\x01\x02"}
    assert data[:22] == QUEUE_EXTENSION_UNIT.build(values)
    assert data[22:42] == bytes.fromhex("0014fffffffffffffff7") + (START_MS + 1).to_bytes(8, "big") + b"\0\0"
    assert units.get(FIRST) == ExtensionUnit(7, START_MS, b"\x01\x02")
    assert units.get(FIRST + 22) == ExtensionUnit(-9, START_MS + 1)


def test_addresses_are_told_from_tags_codes() -> None:
    assert [is_extension_address(code) for code in (FIRST, -0x80000001, -0x80000000, 0, START_MS)] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_nothing_is_found_where_no_unit_is(tmp_path: Path) -> None:
    units = extension(tmp_path)
    units.append(ExtensionUnit(7, START_MS, b"\xff" * 4))
    assert [units.get(address) for address in (FIRST + 24, FIRST + 1, FIRST + 128, FIRST + (1 << 40), 7)] == [None] * 5


def test_unit_that_does_not_fit_begins_the_next_file(tmp_path: Path) -> None:
    """Five units of 22 bytes fill 110 of 128; a sixth and 4 bytes more do not fit."""
    units = extension(tmp_path)
    addresses = [units.append(ExtensionUnit(code, START_MS, b"ab")) for code in range(7)]
    assert addresses == [FIRST + offset for offset in (0, 22, 44, 66, 88, 128, 150)]
    assert (tmp_path / "units" / ("0" * 20)).read_bytes()[110:] == b"\xff\xff" + bytes(16)
    found = [units.get(address) for address in addresses if address is not None]
    assert found == [ExtensionUnit(code, START_MS, b"ab") for code in range(7)]


def test_unit_that_fits_nowhere_has_no_address(tmp_path: Path) -> None:
    assert extension(tmp_path).append(ExtensionUnit(7, 0, bytes(105))) is None
    assert extension(tmp_path, 1 << 20).append(ExtensionUnit(7, 0, bytes(32748))) is None
    assert extension(tmp_path, 1 << 20).append(ExtensionUnit(7, 0, bytes(32747))) == FIRST


def test_full_disk_gives_no_address(tmp_path: Path) -> None:
    def refuse(*_: int) -> None:
        raise OSError(28, "No space left on device")

    units = extension(tmp_path, allocate=refuse)
    assert [units.append(ExtensionUnit(7, 0)), units.append(ExtensionUnit(7, 0)), units.end] == [None, None, 0]


# In a store


def raw_tags_codes(root: Path) -> list[int]:
    data = (root / "store" / "consumequeue" / "TopicA" / "0" / ("0" * 20)).read_bytes()
    return [unpack_entry(data, position)[2] for position in range(0, 200, 20) if unpack_entry(data, position)[1]]


def test_entries_lead_to_units_and_readers_see_tags_codes(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**EXTENDED)
    put(store, tagged("A", 65), tagged("B", 66), tagged("A", 65))
    assert raw_tags_codes(tmp_path) == [FIRST, FIRST + 20, FIRST + 40]
    assert [entry[2] for entry in store.queue_entries("TopicA", 0, 0, 3)] == [65, 66, 65]
    found = store.get_message("TopicA", 0, 0, 32, 1 << 20, {65})
    assert (found.status, len(found.records), found.next_begin_offset) == (GetStatus.FOUND, 2, 3)
    store.close()
    assert check_store(str(tmp_path / "store")) == []


@pytest.mark.parametrize("abort", [False, True], ids=["clean", "killed"])
def test_units_outlive_a_restart(open_store: OpenFileStore, tmp_path: Path, abort: bool) -> None:
    store = open_store(**EXTENDED)
    put(store, *[tagged("A", 65) for _ in range(25)])
    store.close()
    if abort:
        (tmp_path / "store" / "abort").write_text("1")
    again = open_store(**EXTENDED)
    assert [str(action) for action in again.recovery_report.actions] == []
    put(again, tagged("B", 66))
    assert [entry[2] for entry in again.queue_entries("TopicA", 0, 23, 9)] == [65, 65, 66]


def test_lost_units_are_written_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**EXTENDED)
    put(store, *[tagged("A", 65) for _ in range(25)])
    store.close()
    folder = tmp_path / "store" / "consumequeue_ext" / "TopicA" / "0"
    names = sorted(os.listdir(folder))
    os.unlink(folder / names[-1])
    again = open_store(**EXTENDED)
    assert len(again.recovery_report.actions) == 1
    assert [entry[2] for entry in again.queue_entries("TopicA", 0, 0, 30)] == [65] * 25
    assert sorted(os.listdir(folder)) == names


def test_units_switched_off_stay_readable(open_store: OpenFileStore) -> None:
    store = open_store(**EXTENDED)
    put(store, tagged("A", 65))
    store.close()
    again = open_store(mapped_file_size_consume_queue_ext=128)
    put(again, tagged("B", 66))
    found = again.get_message("TopicA", 0, 0, 32, 1 << 20, {65, 66})
    assert len(found.records) == 2


def test_units_go_with_their_entries_and_topics(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**EXTENDED)
    put(store, *[tagged("A", 65, body=bytes(100)) for _ in range(60)])
    os.utime(tmp_path / "store" / "commitlog" / ("0" * 20), (0, 0))
    paths = store.retention.expire_log(START_MS, 4, DiskUsage(0.1, 0.1))
    for path in paths + [path for step in store.retention.trim() for path in step]:
        remove_file(path)
    first = store.min_offset_in_queue("TopicA", 0)
    folder = tmp_path / "store" / "consumequeue_ext" / "TopicA"
    assert (first, min(map(int, os.listdir(folder / "0"))) // 128) == (20, 20 // 6)
    assert store.queue_entries("TopicA", 0, first, 1)[0][2] == 65
    store.delete_topics({"TopicA"})
    assert not folder.exists()


@attrs.define
class ByBitMap:
    """Wants everything that its bit map admits, and notes what it is asked."""

    asked: list[tuple[int, bytes]] = attrs.field(factory=list)
    looked_at: int = 0

    def __call__(self, record: memoryview | bytes) -> bool:
        self.looked_at += 1
        return True

    def may_match(self, store_timestamp: int, bit_map: bytes) -> bool:
        self.asked.append((store_timestamp, bit_map))
        return bit_map == b"\x01"


def test_bit_maps_spare_looks_at_records(open_store: OpenFileStore) -> None:
    def bit_map_of(topic: str, properties: Mapping[str, str]) -> bytes | None:
        assert topic == "TopicA"
        return {"A": b"\x01", "B": b"\x02"}.get(properties["TAGS"])

    store = open_store(keywords={"bit_map_of": bit_map_of}, **EXTENDED)
    put(store, tagged("A", 65), tagged("B", 66), tagged("C", 67))
    test = ByBitMap()
    found = store.get_message("TopicA", 0, 0, 32, 1 << 20, None, test)
    assert (len(found.records), found.next_begin_offset, test.looked_at) == (2, 3, 2)
    assert test.asked == [(START_MS, b"\x01"), (START_MS, b"\x02")]
    seen: list[bool] = []
    store.get_message("TopicA", 0, 0, 32, 1 << 20, None, lambda record: seen.append(True) or True)
    assert seen == [True] * 3


def test_queue_without_units_is_plain(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, message())
    assert not (tmp_path / "store" / "consumequeue_ext").exists()


def test_units_switched_on_again_follow_the_last_one(open_store: OpenFileStore, tmp_path: Path) -> None:
    for number, fields in enumerate((EXTENDED, {"mapped_file_size_consume_queue_ext": 128}, EXTENDED)):
        store = open_store(**fields)
        put(store, tagged("ABC"[number], 65 + number))
        store.close()
    assert raw_tags_codes(tmp_path) == [FIRST, 66, FIRST + 20]
    again = open_store(**EXTENDED)
    assert again.recovery_report.actions == []
    assert [entry[2] for entry in again.queue_entries("TopicA", 0, 0, 3)] == [65, 66, 67]


def test_units_switched_on_late_begin_with_the_next_message(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, tagged("A", 65))
    store.close()
    again = open_store(**EXTENDED)
    put(again, tagged("B", 66))
    assert raw_tags_codes(tmp_path) == [65, FIRST]

"""Walking the log: where it stops and why, and looking for intact records behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.storage.conftest import OpenFileStore, message, put, tagged
from twisted_mq.protocol.layouts.record_codec import DispatchFields, encode_record
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.log.log_scan import (
    LogScan,
    Rows,
    StopReason,
    first_store_timestamp,
    intact_behind,
    record_matches,
)

SIZE = 1000
HOST = bytes(8)


def record(offset: int, **fields: Any) -> bytes:
    values: dict[str, Any] = {
        "queue_id": 1,
        "queue_offset": 5,
        "physical_offset": offset,
        "born_timestamp": 0,
        "born_host": HOST,
        "store_timestamp": 77,
        "store_host": HOST,
    }
    return encode_record(b"TopicA", bytes(103), b"", **(values | fields))


@pytest.fixture
def files(tmp_path: Path) -> list[MappedFile]:
    """Two files: four records and a blank, two records and nothing. Records have 200 bytes."""
    made = []
    for number, count in ((0, 4), (1, 2)):
        file = MappedFile.create(str(tmp_path / str(number)), number * SIZE, SIZE)
        file.reserve(SIZE, SIZE)
        for place in range(count):
            file.view[place * 200 : place * 200 + 200] = record(number * SIZE + place * 200)
        made.append(file)
    made[0].view[800:808] = (200).to_bytes(4, "big") + (-875286124).to_bytes(4, "big", signed=True)
    return made


def walk(files: list[MappedFile], start: int = 0) -> tuple[list[int], int, StopReason, str]:
    """Return the findings of a walk, record by record, equal to a walk in parts."""
    scan, parts = LogScan(files, start), LogScan(files, start)
    offsets = [one.physical_offset for one in scan]
    assert [entry[3] for part in parts.parts() for entry in entries(part)] == offsets
    assert (parts.end_offset, parts.stop_reason, parts.problem) == (scan.end_offset, scan.stop_reason, scan.problem)
    return offsets, scan.end_offset, scan.stop_reason, scan.problem


def entries(part: Rows | DispatchFields) -> list[tuple[object, ...]]:
    """Topic, queue id, queue offset, physical offset, size and tags code of the records of a part."""
    if isinstance(part, DispatchFields):
        return [(part.topic, part.queue_id, part.queue_offset, part.physical_offset, part.size, part.tags_code)]
    return [
        (topic.decode(), queue_id, queue_offset, part.first_offset + position, size, code)
        for topic, queue_id, queue_offset, position, size, code, _, _ in part.rows
    ]


def test_walk_goes_over_blank_records_to_where_nothing_is_written(files: list[MappedFile]) -> None:
    assert walk(files) == ([0, 200, 400, 600, 1000, 1200], 1400, StopReason.NOTHING_WRITTEN, "")
    assert walk(files, 600) == ([600, 1000, 1200], 1400, StopReason.NOTHING_WRITTEN, "")


def test_walk_ends_before_the_blank_record_of_the_last_file(files: list[MappedFile]) -> None:
    assert walk(files[:1]) == ([0, 200, 400, 600], 800, StopReason.FILE_END, "")


def test_walk_ends_where_less_than_a_mark_is_left(tmp_path: Path) -> None:
    file = MappedFile.create(str(tmp_path / "short"), 0, 205)
    file.reserve(205, 205)
    file.view[:200] = record(0)
    assert walk([file]) == ([0], 200, StopReason.FILE_END, "")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"physical_offset": 201}, "the record says it is at 201"),
        ({"queue_id": -1}, "the record says it is 'TopicA', queue -1, offset 5"),
        ({"queue_offset": -1}, "the record says it is 'TopicA', queue 1, offset -1"),
    ],
    ids=["place", "queue", "offset"],
)
def test_record_that_contradicts_itself_ends_the_walk(
    files: list[MappedFile], fields: dict[str, Any], problem: str
) -> None:
    files[0].view[200:400] = record(200, **fields)
    assert walk(files) == ([0], 200, StopReason.DAMAGED, problem)


def test_damage_ends_the_walk(files: list[MappedFile]) -> None:
    files[1].view[100] ^= 1
    offsets, end, reason, problem = walk(files)
    assert (offsets, end, reason) == ([0, 200, 400, 600], 1000, StopReason.DAMAGED)
    assert problem.startswith("the body's CRC is ")


def test_intact_records_behind_a_place(files: list[MappedFile]) -> None:
    assert [intact_behind(files, offset) for offset in (0, 199, 200, 601, 1199, 1200, 2000)] == [
        200,
        200,
        400,
        1000,
        1200,
        None,
        None,
    ]


def test_bytes_that_only_look_like_a_record_are_no_intact_one(files: list[MappedFile]) -> None:
    files[1].view[1000 - 600 : 1000 - 400] = record(5)
    assert intact_behind(files, 1200) is None


def test_first_store_timestamp(files: list[MappedFile]) -> None:
    assert (first_store_timestamp(files[0].readable), first_store_timestamp(memoryview(bytes(200)))) == (77, 0)


@attrs.frozen
class Meant:
    topic: str = "TopicA"
    queue_id: int = 1
    queue_offset: int = 5
    size: int = 200


@pytest.mark.parametrize(
    ("meant", "expected"),
    [
        (Meant(), True),
        (Meant(topic="TopicB"), False),
        (Meant(queue_id=0), False),
        (Meant(queue_offset=4), False),
        (Meant(size=199), False),
    ],
)
def test_record_is_the_one_an_entry_means(meant: Meant, expected: bool) -> None:
    found = memoryview(record(0))
    assert record_matches(found, meant.topic, meant.queue_id, meant.queue_offset, meant.size) is expected
    assert not record_matches(found[:100], "TopicA", 1, 5, 200)


def test_record_that_was_cut_anywhere_is_not_intact(tmp_path: Path) -> None:
    """A slave writes what arrives; killed then, the rest of its last record is zeros. No CRC covers the properties."""
    file = MappedFile.create(str(tmp_path / "0"), 0, SIZE)
    file.reserve(SIZE, SIZE)
    fields = {"queue_id": 1, "queue_offset": 5, "born_timestamp": 0, "born_host": HOST, "store_timestamp": 77}
    properties = b"KEYS\x01a\x02TAGS\x01b\x02"
    data = encode_record(b"TopicA", b"body", properties, physical_offset=200, store_host=HOST, **fields)
    file.view[:200] = record(0)
    for written in range(1, len(data)):
        file.view[200:SIZE] = data[:written] + bytes(SIZE - 200 - written)
        offsets, end, _, _ = walk([file])
        assert (offsets, end) == ([0], 200), written
    file.view[200 : 200 + len(data)] = data
    assert walk([file]) == ([0, 200], 200 + len(data), StopReason.NOTHING_WRITTEN, "")


def test_record_without_properties_ends_in_zeros_and_is_intact(files: list[MappedFile]) -> None:
    assert bytes(files[1].view[398:408]) == bytes(10)
    assert walk(files)[1] == 1400


@pytest.mark.parametrize("check_crc", [True, False])
def test_parts_are_the_records_one_by_one(open_store: OpenFileStore, check_crc: bool) -> None:
    """Ordinary records as rows, odd ones as themselves, over file ends."""
    store = open_store()
    put(store, *(tagged("AB"[n % 2], 65 + n % 2, queue_id=n % 3, body=b"%d" % n * 20) for n in range(60)))
    put(store, message(born_host=bytes(range(20))), message(sys_flag=4), message(body=b"last"))
    scan, parts = (LogScan(store._log.files.files, 0, check_crc=check_crc) for _ in range(2))
    found = list(parts.parts())
    assert [entry for part in found for entry in entries(part)] == [entry for one in scan for entry in entries(one)]
    assert {type(part) for part in found} == {Rows, DispatchFields}
    assert (parts.end_offset, parts.stop_reason, parts.problem) == (scan.end_offset, scan.stop_reason, scan.problem)

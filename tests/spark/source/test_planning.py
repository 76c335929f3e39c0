"""Files of other times are left out, with few bytes read."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import GreaterThan

from tests.spark.read_counts import ReadCounts
from tests.spark.stores import BORN_MS, IPV4_BORN, IPV4_STORE, StoreWriter
from twisted_mq.protocol.layouts.record import encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.spark.source.options import FileTimes, read_options
from twisted_mq.spark.source.planning import files_of_time
from twisted_mq.spark.source.splits import MOST_PARTS
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import Store, list_log_files

PLAIN: dict[str, Any] = {
    "queue_id": 0, "queue_offset": 0, "born_timestamp": BORN_MS, "born_host": IPV4_BORN, "store_timestamp": BORN_MS,
    "store_host": IPV4_STORE,
}  # fmt: skip


def hours(root: Path) -> StoreWriter:
    """A hundred files, about ten of each hour."""
    writer = StoreWriter(root, file_size=4096)
    while writer.position < 100 * 4096:
        passed = writer.position * 3_600_000 // (10 * 4096)
        writer.append(body=b"x" * 300, born_timestamp=BORN_MS + passed, latency_ms=0)
    return writer


@pytest.mark.parametrize("hour", range(-1, 11))
def test_an_hour_needs_its_files_and_few_more(tmp_path: Path, read_counts: ReadCounts, hour: int) -> None:
    writer = hours(tmp_path / "store")
    begin, end = BORN_MS + hour * 3_600_000, BORN_MS + (hour + 1) * 3_600_000
    store = Store(writer.write())
    files = list_log_files(store)
    chosen = files_of_time(store, files, FileTimes(begin, end))
    assert read_counts.total <= len(files) * 88
    options = {"path": store.uri, "startTime": str(begin), "endTime": str(end)}
    reader = StoreReader(read_options(options), ["physicalOffset", "storeTimestamp"])
    splits = reader.partitions()
    read_counts.take()
    found = [row for split in splits for batch in reader.read(split) for row in batch.to_pylist()]
    times = [row["storeTimestamp"].timestamp() * 1000 for row in found]
    assert all(begin <= time < end for time in times)
    needed = {row["physicalOffset"] // 4096 for row in found}
    assert len(read_counts.files) <= len(chosen) <= len(needed) + 4
    everything = StoreReader(read_options({"path": store.uri}), ["storeTimestamp"])
    whole = [row for split in everything.partitions() for batch in everything.read(split) for row in batch.to_pylist()]
    assert len(found) == sum(begin <= row["storeTimestamp"].timestamp() * 1000 < end for row in whole)


def stepping(root: Path, steps: dict[int, int]) -> StoreWriter:
    """Forty files, a minute each; the clock is set by so many minutes when a file of that number begins."""
    writer, now = StoreWriter(root, file_size=4096), BORN_MS
    while writer.position < 40 * 4096:
        number = writer.position // 4096
        now += 60_000 // 10 + 60_000 * steps.pop(number, 0)
        writer.append(body=b"x" * 300, born_timestamp=now, latency_ms=0)
    return writer


def times_read(store: str, **options: str) -> list[float]:
    reader = StoreReader(read_options({"path": store, **options}), ["storeTimestamp"])
    rows = [row for split in reader.partitions() for batch in reader.read(split) for row in batch.to_pylist()]
    return [row["storeTimestamp"].timestamp() * 1000 for row in rows]


@pytest.mark.parametrize("steps", [{10: -8}, {5: -3, 20: -15, 30: 60}, {20: -1000}, {20: 1000, 21: -1000}], ids=str)
def test_clocks_that_are_set_back_over_many_files_hide_nothing(tmp_path: Path, steps: dict[int, int]) -> None:
    store = stepping(tmp_path / "store", dict(steps)).write()
    everything = times_read(store)
    for begin in range(int(min(everything)), int(min(everything)) + 40 * 60_000, 7 * 60_000):
        end = begin + 5 * 60_000
        expected = [time for time in everything if begin <= time < end]
        assert times_read(store, startTime=str(begin), endTime=str(end)) == expected
        assert times_read(store, startTime=str(begin)) == [time for time in everything if time >= begin]
        assert times_read(store, endTime=str(end)) == [time for time in everything if time < end]


def test_a_pushed_condition_on_time_loses_no_row_of_a_clock_that_jumped_inside_a_file(tmp_path: Path) -> None:
    """No first record of a file says anything of that jump."""
    writer = StoreWriter(tmp_path / "store", file_size=4096)
    while writer.position < 20 * 4096:
        jump = 365 * 86_400_000 if len(writer.positions) == 55 else 0
        writer.append(body=b"x" * 300, born_timestamp=BORN_MS + len(writer.positions) * 1000 + jump, latency_ms=0)
    reader = StoreReader(read_options({"path": writer.write()}), ["physicalOffset"])
    later = datetime.datetime.fromtimestamp(BORN_MS / 1000 + 86_400, datetime.UTC)
    assert list(reader.pushFilters([GreaterThan(("storeTimestamp",), later)]))
    found = [place for split in reader.partitions() for batch in reader.read(split) for place in batch[0].to_pylist()]
    assert found == [writer.positions[55]]


def test_a_first_record_that_says_no_time_hides_nothing(tmp_path: Path) -> None:
    writer = hours(tmp_path / "store")
    for number in range(0, 100, 3):
        writer.overwrite(number * 4096, b"\xee" * 100)
    store = Store(writer.write())
    files = list_log_files(store)
    begin = BORN_MS + 5 * 3_600_000
    chosen = files_of_time(store, files, FileTimes(begin, begin + 1))
    held = [file for file in files if file.first_offset <= 50 * 4096 < file.end]
    assert set(held) <= set(chosen)
    assert len(chosen) <= 5


def test_of_many_files_the_last_ones_end_alone_is_read(tmp_path: Path, read_counts: ReadCounts) -> None:
    """Sparse files of a gibibyte, 2 TB of them."""
    log = tmp_path / "commitlog"
    log.mkdir()
    record = encode_record(b"Orders", b"", b"", physical_offset=1999 << 30, **PLAIN)
    for number in range(2000):
        with open(log / f"{number << 30:020d}", "wb") as file:
            file.write(record if number == 1999 else b"")
            file.truncate(1 << 30)
    splits = StoreReader(read_options({"path": str(tmp_path)}), ["topic"]).partitions()
    assert len(splits) <= MOST_PARTS
    assert sum(split.part.size_bytes for split in splits) == (1999 << 30) + len(record)
    assert read_counts.files == {f"{1999 << 30:020d}"}
    assert read_counts.total < read_counts.end_search


def test_an_hour_of_ten_terabytes(tmp_path: Path, read_counts: ReadCounts) -> None:
    """A file holds six minutes: a record, and the blank one that fills its file."""
    log = tmp_path / "commitlog"
    log.mkdir()
    for number in range(10 << 10):
        first = number << 30
        time = BORN_MS + number * 360_000
        record = encode_record(b"Orders", b"", b"", physical_offset=first, **{**PLAIN, "store_timestamp": time})
        with open(log / f"{first:020d}", "wb") as file:
            file.write(record + encode_blank((1 << 30) - len(record)))
            file.truncate(1 << 30)
    begin = BORN_MS + 5000 * 360_000 + 1
    options = {
        "path": str(tmp_path),
        "startTime": str(begin),
        "endTime": str(begin + 3_600_000),
        "maxPartitionBytes": "1g",
    }
    reader = StoreReader(read_options(options), ["physicalOffset"])
    splits = reader.partitions()
    assert read_counts.total < read_counts.end_search + (10 << 10) * 88
    read_counts.take()
    found = [offset >> 30 for split in splits for batch in reader.read(split) for offset in batch[0].to_pylist()]
    assert found == list(range(5001, 5011))
    assert len(read_counts.files) <= len(found) + 3

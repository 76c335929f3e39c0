"""Files of other times are left out, with few bytes read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.read_counts import ReadCounts
from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.columns.selection import Selection
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.planning import files_of_time
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import Store, list_log_files


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
    chosen = files_of_time(store, files, Selection(start_time_ms=begin, end_time_ms=end))
    assert read_counts.total < 20 * 88
    options = {"path": store.uri, "startTime": str(begin), "endTime": str(end)}
    reader = StoreReader(read_options(options), ["physicalOffset", "storeTimestamp"])
    splits = reader.partitions()
    read_counts.take()
    found = [row for split in splits for batch in reader.read(split) for row in batch.to_pylist()]
    times = [row["storeTimestamp"].timestamp() * 1000 for row in found]
    assert all(begin <= time < end for time in times)
    needed = {row["physicalOffset"] // 4096 for row in found}
    assert len(read_counts.files) <= len(chosen) <= len(needed) + 3
    everything = StoreReader(read_options({"path": store.uri}), ["storeTimestamp"])
    whole = [row for split in everything.partitions() for batch in everything.read(split) for row in batch.to_pylist()]
    assert len(found) == sum(begin <= row["storeTimestamp"].timestamp() * 1000 < end for row in whole)


def test_a_first_record_that_says_no_time_hides_nothing(tmp_path: Path) -> None:
    writer = hours(tmp_path / "store")
    for number in range(0, 100, 3):
        writer.overwrite(number * 4096, b"\xee" * 100)
    store = Store(writer.write())
    files = list_log_files(store)
    begin = BORN_MS + 5 * 3_600_000
    chosen = files_of_time(store, files, Selection(start_time_ms=begin, end_time_ms=begin + 1))
    held = [file for file in files if file.first_offset <= 50 * 4096 < file.end]
    assert set(held) <= set(chosen)
    assert len(chosen) <= 5

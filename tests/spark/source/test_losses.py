"""Half a store: bytes that no file has, and begins that no log has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql.datasource import LessThan
from pyspark.sql.types import StructType

from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import DataLost, WrongOption
from twisted_mq.spark.source.data_source import RocketMQDataSource
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader

FILE_BYTES = 4096


def offsets(store: str, **options: str) -> list[int]:
    reader = StoreReader(read_options({"path": store, **options}), ["physicalOffset"])
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return [offset for batch in batches for offset in batch["physicalOffset"].to_pylist()]


@pytest.fixture
def four_files(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "store", file_size=FILE_BYTES)
    while writer.position < 3.5 * FILE_BYTES:
        writer.append(body=b"x" * 200)
    writer.write()
    return writer


def log_file(writer: StoreWriter, number: int) -> Path:
    return writer.root / "commitlog" / f"{number * FILE_BYTES:020d}"


@pytest.mark.parametrize("lost", [range(1, 2), range(1, 3)], ids=["one", "two"])
def test_files_missing_inside_are_named_or_passed_over(four_files: StoreWriter, lost: range) -> None:
    for number in lost:
        log_file(four_files, number).unlink()
    begin, end = lost.start * FILE_BYTES, lost.stop * FILE_BYTES
    expected = f"that held them is not there: physical offsets {begin} to {end} wanted, the log from {end} on found"
    with pytest.raises(DataLost, match=expected):
        offsets(str(four_files.root))
    kept = [offset for offset in four_files.positions if not begin <= offset < end]
    assert offsets(str(four_files.root), failOnDataLoss="false") == kept
    assert offsets(str(four_files.root), startOffset=str(end)) == [offset for offset in kept if offset >= end]
    assert offsets(str(four_files.root), endOffset=str(begin)) == [offset for offset in kept if offset < begin]


def test_a_file_that_is_cut_short_before_others(four_files: StoreWriter) -> None:
    os.truncate(log_file(four_files, 1), 1000)
    with pytest.raises(DataLost, match=f"physical offsets {FILE_BYTES + 1000} to {2 * FILE_BYTES} wanted"):
        offsets(str(four_files.root))
    kept = offsets(str(four_files.root), failOnDataLoss="false")
    assert kept == [offset for offset in four_files.positions if offset // FILE_BYTES != 1 or offset in kept]
    assert [offset for offset in kept if offset // FILE_BYTES == 1] == [FILE_BYTES + place for place in (0, 297, 594)]


def test_a_begin_that_the_log_has_not(four_files: StoreWriter) -> None:
    log_file(four_files, 0).unlink()
    store, end = str(four_files.root), four_files.position
    later = [offset for offset in four_files.positions if offset >= FILE_BYTES]
    assert offsets(store) == later
    with pytest.raises(
        DataLost, match=f"physical offsets 7 to {FILE_BYTES} wanted, the log from {FILE_BYTES} on found"
    ):
        offsets(store, startOffset="7")
    assert offsets(store, startOffset="7", failOnDataLoss="false") == later
    assert offsets(store, startOffset=str(end)) == []
    with pytest.raises(WrongOption, match=f"option startOffset='{end + 1}': the log of {store} ends at {end}"):
        offsets(store, startOffset=str(end + 1))
    assert offsets(store, startOffset=str(end + 1), failOnDataLoss="false") == []


def test_an_end_that_the_log_does_not_reach(four_files: StoreWriter) -> None:
    store, end = str(four_files.root), four_files.position
    assert offsets(store, endOffset=str(end)) == four_files.positions
    with pytest.raises(
        DataLost, match=rf"the log ends at {end}: physical offsets {end} to {end + 7} wanted, .*: 7 bytes are not there"
    ):
        offsets(store, endOffset=str(end + 7))
    assert offsets(store, endOffset=str(end + 7), failOnDataLoss="false") == four_files.positions
    reader = StoreReader(read_options({"path": store}), ["physicalOffset"])
    reader.pushFilters([LessThan(("physicalOffset",), end + 7)])
    assert sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split)) == len(
        four_files.positions
    )


def test_a_store_that_a_pattern_finds_later_is_not_part_of_the_read(tmp_path: Path) -> None:
    for name in "ab":
        source = RocketMQDataSource({"path": f"{tmp_path}/*/store", "columns": "physicalOffset"})
        writer = StoreWriter(tmp_path / name / "store")
        writer.append()
        if name == "a":
            writer.write()
            assert source.schema() == "`physicalOffset` bigint"
            reader = source.reader(StructType().add("physicalOffset", "long"))
    writer.write()
    assert len(reader.partitions()) == 1

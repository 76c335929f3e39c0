"""Stores as streams: offsets, limits, and that no record is read twice or never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import DataLost, WrongOption
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.stream_reader import Offset, StoreStreamReader

ALL = ReadAllAvailable()


def reader(*paths: str, **options: str) -> StoreStreamReader:
    given = {"path": paths[0]} if len(paths) == 1 else {"paths": str(list(paths)).replace("'", '"')}
    return StoreStreamReader(read_options({**given, **options}), ["physicalOffset"])


def reached(offset: Offset) -> dict[str, int]:
    """The physical offsets of an offset, by path."""
    return {store: mark["reached"] for store, mark in offset.items()}


def read(source: StoreStreamReader, start: Offset, end: Offset) -> list[int]:
    batches = [batch for split in source.partitions(start, end) for batch in source.read(split)]
    return [offset for batch in batches for offset in batch["physicalOffset"].to_pylist()]


def test_batches_follow_one_another_while_the_store_grows(writer: StoreWriter) -> None:
    store = writer.write()
    (Path(store) / "commitlog").mkdir(exist_ok=True)
    source = reader(store)
    offset, found = source.initialOffset(), []
    assert reached(offset) == {store: 0}
    for _ in range(5):
        for _ in range(30):
            writer.append(body=b"x" * 300)
        writer.write()
        following = source.latestOffset(offset, ALL)
        assert reached(following) == {store: writer.position} == source.reportLatestOffset()
        found += read(source, offset, following)
        offset = following
        assert (source.latestOffset(offset, ALL), source.partitions(offset, offset)) == (offset, [])
    assert found == writer.positions


@pytest.mark.parametrize("most", [50, 333, 4096, 100_000])
def test_limits_cut_anywhere_and_lose_nothing(writer: StoreWriter, most: int) -> None:
    for number in range(60):
        writer.append(body=b"x" * (number * 41 % 700))
    store = writer.write()
    source = reader(store, maxBytesPerTrigger=str(most))
    limit = source.getDefaultReadLimit()
    assert limit == ReadMaxBytes(most)
    offset, found = source.initialOffset(), []
    while (following := source.latestOffset(offset, limit)) != offset:
        assert following[store]["reached"] - offset[store]["reached"] <= most
        found += read(source, offset, following)
        offset = following
    assert found == writer.positions


def test_a_batch_read_again_is_the_same_although_the_store_grew(writer: StoreWriter) -> None:
    for _ in range(50):
        writer.append(body=b"x" * 200)
    source = reader(writer.write())
    end = source.latestOffset(source.initialOffset(), ALL)
    first = read(source, source.initialOffset(), end)
    for _ in range(50):
        writer.append(body=b"x" * 200)
    writer.write()
    assert read(source, source.initialOffset(), end) == first == writer.positions[:50]


def test_available_now_ends_where_the_store_ended(writer: StoreWriter) -> None:
    writer.append()
    source = reader(writer.write())
    source.prepareForTriggerAvailableNow()
    end = writer.position
    writer.append()
    writer.write()
    assert reached(source.latestOffset(source.initialOffset(), ALL)) == {str(writer.root): end}


def test_several_stores_and_one_that_comes_later(tmp_path: Path) -> None:
    writers = [StoreWriter(tmp_path / name / "store") for name in "ab"]
    for writer in writers:
        writer.append()
    writers[0].write()
    source = reader(f"{tmp_path}/*/store")
    start = source.initialOffset()
    assert reached(start) == {writers[0].write(): 0}
    writers[1].write()
    end = source.latestOffset(start, ALL)
    assert reached(end) == {str(writer.root): writer.position for writer in writers}
    assert read(source, start, end) == [0, 0]


def test_a_stream_may_begin_at_the_end_or_at_an_offset(writer: StoreWriter) -> None:
    for _ in range(5):
        writer.append()
    store = writer.write()
    assert reached(reader(store, startingOffsets="latest").initialOffset()) == {store: writer.position}
    assert reached(reader(store, startOffset=str(writer.positions[2])).initialOffset()) == {store: writer.positions[2]}
    assert reader(store, endOffset=str(writer.positions[2])).reportLatestOffset() == {store: writer.positions[2]}


def test_what_replicas_have_is_not_known_from_files(writer: StoreWriter) -> None:
    with pytest.raises(WrongOption, match="files of a store do not show what its replicas have"):
        reader(writer.write(), endOffset="confirmed")


def test_files_deleted_before_they_were_read(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=4096)
    for _ in range(100):
        writer.append()
    store = writer.write()
    source = reader(store, brokerName="a")
    start = source.initialOffset()
    Path(store, "commitlog", f"{0:020d}").unlink()
    end = source.latestOffset(start, ALL)
    with pytest.raises(
        DataLost, match=r"broker a, store .* physical offsets 0 to 4096 wanted, the log from 4096 on found"
    ):
        source.partitions(start, end)
    lenient = reader(store, failOnDataLoss="false")
    assert read(lenient, start, end) == [offset for offset in writer.positions if offset >= 4096]
    assert end[store]["lost"] == 4096
    writer.append()
    writer.write()
    Path(store, "commitlog", f"{0:020d}").unlink()
    assert lenient.latestOffset(end, ALL)[store]["lost"] == 4096


def test_a_stream_in_spark_goes_on_where_it_stopped(session: SparkSession, tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store")
    seen: list[tuple[Any, ...]] = []
    batches: list[int] = []

    def keep(frame: Any, number: int) -> None:
        rows = [tuple(row) for row in frame.collect()]
        seen.extend(rows)
        batches.append(len(rows))

    for _ in range(2):
        for _ in range(20):
            writer.append(body=b"x" * 300)
        stream = session.readStream.format("rocketmq").option("columns", "queueOffset,topic")
        stream = stream.option("maxBytesPerTrigger", "4k").load(writer.write())
        query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
    assert seen == [(number, "Orders") for number in range(40)]
    assert len(batches) >= 4

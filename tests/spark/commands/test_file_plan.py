"""A slice has few files whatever its topics are: small ones have one a day, large ones have files of about the same size."""

from __future__ import annotations

import datetime
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.commands.export import ExportSelection, export
from twisted_mq.spark.commands.file_plan import Share, planned
from twisted_mq.spark.commands.stores import FROM_THE_BEGIN, Stores
from twisted_mq.spark.source.stores import Store

DAY = datetime.date(2026, 11, 20)
GIB = 1 << 30


def shares(*sizes: int) -> list[Share]:
    return [Share(f"T{number:04}", DAY, size, size // 100, 0, size) for number, size in enumerate(sizes)]


def test_small_topics_share_a_task_and_a_large_one_has_several() -> None:
    plan = planned(shares(30, 30, 50, 260, 20, 149), 100, 1)
    assert [(task, files) for _, task, files in plan.placed] == [(0, 1), (0, 1), (1, 1), (2, 3), (5, 1), (6, 1)]
    assert plan.tasks == 7


def test_topics_are_spread_over_as_many_tasks_as_wanted() -> None:
    plan = planned(shares(*[5] * 40), 1000, 4)
    assert Counter(task for _, task, _ in plan.placed) == dict.fromkeys(range(4), 10)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=60), st.integers(1, 1000), st.integers(1, 20))
def test_no_task_has_two_large_shares_and_none_is_left_out(sizes: list[int], file_bytes: int, tasks: int) -> None:
    plan = planned(shares(*sizes), file_bytes, tasks)
    held: dict[int, list[float]] = {}
    for share, task, files in plan.placed:
        assert share.size_bytes / files <= 1.5 * file_bytes
        for number in range(files):
            held.setdefault(task + number, []).append(share.size_bytes / files)
    assert sorted(held) == list(range(plan.tasks))
    assert all(len(sizes) == 1 or sum(sizes) <= file_bytes for sizes in held.values())


def test_a_terabyte_of_a_thousand_topics_is_four_thousand_files() -> None:
    slices = [256 * GIB, 256 * GIB, 256 * GIB, 10**12 - 3 * 256 * GIB]
    plans = [planned(shares(*[size // 1000] * 1000), 256 << 20, 16) for size in slices]
    assert sum(files for plan in plans for _, _, files in plan.placed) == 4000


class SmallParts(Stores):
    """Stores that are read by many tasks."""

    def messages(
        self, columns: Iterable[str], begins: Mapping[Store, int] = FROM_THE_BEGIN, **options: object
    ) -> DataFrame:
        return super().messages(columns, begins, maxPartitionBytes="32k", **options)


def exported(
    session: SparkSession, writer: StoreWriter, out: Path, file_bytes: int, columns: tuple[str, ...] = ()
) -> dict[str, list[Path]]:
    """Export, and return the files of each topic."""
    stores = SmallParts.opened(session, [writer.write()])
    wanted = ExportSelection(slice_bytes=GIB, file_bytes=file_bytes)
    if columns:
        wanted = ExportSelection(slice_bytes=GIB, file_bytes=file_bytes, columns=columns)
    figures = {one.name: one.value for one in export(stores, 50, str(out), "parquet", wanted).figures}
    assert figures["messages"] == len(writer.positions)
    found: dict[str, list[Path]] = {}
    for path in sorted(out.rglob("*.parquet")):
        found.setdefault(path.parent.parent.name, []).append(path)
    assert figures["files"] == sum(map(len, found.values()))
    return found


def offsets(path: Path) -> list[int]:
    found: list[int] = pq.read_table(path, columns=["physicalOffset"], partitioning=None)["physicalOffset"].to_pylist()
    return found


def test_topics_of_a_files_size_have_a_file_each(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    """Spark alone splits a task of twelve such topics into twelve, with files of all of them in each."""
    chance = random.Random(1)
    for number in range(480):
        writer.append(f"T{number % 24:02}", chance.randbytes(2000))
    found = exported(session, writer, tmp_path / "out", 40_000)
    assert {topic: len(files) for topic, files in found.items()} == {f"topic=T{number:02}": 1 for number in range(24)}


def test_a_large_topic_is_cut_by_its_offsets(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    """Most of its messages are at its end: the last of four tasks has 80 of 110, in two files. Some have no day."""
    chance = random.Random(2)
    for number in range(400):
        large = number >= 300 or number % 10 == 1
        born = -1 << 60 if large and number % 5 == 0 else BORN_MS
        writer.append("Large" if large else f"T{number % 3}", chance.randbytes(1000), born_timestamp=born)
    found = exported(session, writer, tmp_path / "out", 30_000, ("body", "physicalOffset"))
    assert [len(found[f"topic=T{number}"]) for number in range(3)] == [3, 3, 3]
    days: dict[str, list[list[int]]] = {}
    for path in found["topic=Large"]:
        days.setdefault(path.parent.name, []).append(offsets(path))
    dated, undated = (days[f"day={day}"] for day in (DAY, "__HIVE_DEFAULT_PARTITION__"))
    assert sorted(map(len, dated)) == [10, 10, 10, 20, 60]
    assert sum(map(len, undated)) == 20
    ranges = sorted((one[0], one[-1]) for one in dated)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


def test_columns_without_offsets_get_none(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    for number in range(40):
        writer.append("Orders", b"%d" % number * 100)
    found = exported(session, writer, tmp_path / "out", 2000, ("body",))
    names = {name for path in found["topic=Orders"] for name in pq.read_schema(path).names}
    assert names == {"body", "storeTimestamp"}
    assert len(found["topic=Orders"]) > 3

"""Exports to a lake: how many files, how fast, and what a day's query costs there and in the store.

    python -m tests.spark_proof.lake [--megabytes 256] [--dir /dev/shm] [files first rate day ...]

`files` is 1 TB with 1,000 topics on a smaller scale: the store has `--megabytes`, and log files, slices and the table's files
are as much smaller. A slice is read by 64 tasks. `first` is the first export of 1,000 topics with the default settings, and where
its time goes. `rate` compares an export with reading the store into Spark's `noop` sink and then writing the same rows,
which Spark already holds, by Spark's own Parquet writer without folders. Each figure is the fastest of three runs.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession
from pyspark.sql import functions as F

from tests.bench.bench_spark import in_turn, into_noop
from tests.bench.written_store import write_store
from twisted_mq.spark.commands import export as export_module
from twisted_mq.spark.commands.export import COLUMNS, ExportSelection, export
from twisted_mq.spark.commands.stores import FROM_THE_BEGIN, Stores
from twisted_mq.spark.session import local_session
from twisted_mq.spark.source.stores import Store

BODY_BYTES = 128
FILE_BYTES = 16 << 20
TERABYTE, TOPICS = 10**12, 1000
LOG_BYTES, TABLE_BYTES = 1 << 30, 256 << 20
"""Sizes of the files of a log and of a table, as they are by default."""
SLICE_BYTES = 256 << 30
RECORD_BYTES = 420
"""About the size of a message in the log."""
PARTS = 64
"""Tasks that read a slice; at full scale they are 4,096."""
WORDS = {"measured": "measuring topics", "parquet": "Spark's writing", "_moved": "moving files"}
DAYS = 10
DAY_MS = 86_400_000


def data_files(out: Path) -> list[Path]:
    return list(out.rglob("topic=*/day=*/*.parquet"))


def files(session: SparkSession, folder: str, megabytes: int) -> Iterator[str]:
    """A thousand topics, exported and then merged."""
    size = megabytes << 20
    scale = TERABYTE / size
    store, out = Path(folder, "store"), Path(folder, "out")
    rows = write_store(store, size, BODY_BYTES, topics=TOPICS, file_bytes=int(LOG_BYTES / scale))
    stores = in_parts(size // 4 // PARTS).opened(session, [str(store)])
    for compact, what in ((False, "exported"), (True, "merged")):
        wanted = ExportSelection(
            slice_bytes=int(SLICE_BYTES / scale), file_bytes=int(TABLE_BYTES / scale), compact=compact
        )
        began = time.perf_counter()
        export(stores, 1, str(out), "parquet", wanted)
        seconds, count = time.perf_counter() - began, len(data_files(out))
        yield f"files: {rows} messages of {TOPICS} topics, 1 TB to {scale:.0f}, {what}: {count} files, {seconds:.1f} s"


def in_parts(part_bytes: int) -> type[Stores]:
    """Stores whose tasks read so many bytes."""

    class InParts(Stores):
        def messages(
            self, columns: Iterable[str], begins: Mapping[Store, int] = FROM_THE_BEGIN, **options: object
        ) -> DataFrame:
            return super().messages(columns, begins, maxPartitionBytes=str(part_bytes), **options)

    return InParts


def first(session: SparkSession, folder: str, megabytes: int) -> Iterator[str]:
    """A thousand topics with the default settings, in a session that has exported before."""
    for name, size in (("before", 1 << 20), ("store", megabytes << 20)):
        store, out = Path(folder, name), str(Path(folder, f"{name}-out"))
        rows = write_store(store, size, BODY_BYTES, topics=TOPICS)
        steps: Counter[str] = Counter()
        began = time.perf_counter()
        with contextlib.ExitStack() as stack:
            for owner, step in ((export_module, "measured"), (DataFrameWriter, "parquet"), (export_module, "_moved")):
                stack.enter_context(timed(owner, step, steps))
            export(Stores.opened(session, [str(store)]), 1, out, "parquet", ExportSelection(slice_bytes=SLICE_BYTES))
        seconds = time.perf_counter() - began
    parts = ", ".join(f"{WORDS[name]} {spent:.2f} s" for name, spent in steps.items())
    yield f"first: {rows} messages of {TOPICS} topics, {seconds:.2f} s: {parts}, the rest {seconds - steps.total():.2f} s"


@contextlib.contextmanager
def timed(owner: Any, name: str, steps: Counter[str]) -> Iterator[None]:
    """Meanwhile add up the seconds of a function's calls."""
    real = getattr(owner, name)

    def call(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return real(*given, **named)
        finally:
            steps[name] += time.perf_counter() - began  # type: ignore[assignment]

    setattr(owner, name, call)
    try:
        yield
    finally:
        setattr(owner, name, real)


def rate(session: SparkSession, folder: str, megabytes: int) -> Iterator[str]:
    """An export beside reading and Spark's own writer."""
    store, out = str(Path(folder, "store")), Path(folder, "out")
    rows = write_store(Path(store), megabytes << 20, BODY_BYTES, file_bytes=FILE_BYTES)
    read = session.read.format("rocketmq").option("columns", ",".join(COLUMNS)).load(store)

    def exported() -> None:
        shutil.rmtree(out, ignore_errors=True)
        export(Stores.opened(session, [store]), 1, str(out), "parquet", ExportSelection(slice_bytes=SLICE_BYTES))

    whole, reading = in_turn(rows, exported, into_noop(read), times=3)
    premade = read.persist(StorageLevel.MEMORY_AND_DISK)
    into_noop(premade)()
    (writing,) = in_turn(rows, lambda: premade.write.mode("overwrite").parquet(str(Path(folder, "premade"))), times=3)
    premade.unpersist()
    ratio = (reading.seconds + writing.seconds) / whole.seconds
    yield (
        f"rate: {rows} rows, export {rows / whole.seconds:,.0f} a second in {len(data_files(out))} files; reading "
        f"{reading.seconds:.2f} s and Spark's writer {writing.seconds:.2f} s beside {whole.seconds:.2f} s: {ratio:.2f}"
    )


def day(session: SparkSession, folder: str, megabytes: int) -> Iterator[str]:
    """A day's query of one topic of a store of ten days."""
    store, out = str(Path(folder, "store")), Path(folder, "out")
    step_ms = DAYS * DAY_MS // (megabytes << 20) * RECORD_BYTES
    rows = write_store(Path(store), megabytes << 20, BODY_BYTES, step_ms=step_ms, file_bytes=FILE_BYTES)
    export(Stores.opened(session, [store]), 1, str(out), "parquet", ExportSelection(slice_bytes=SLICE_BYTES))
    table = session.read.parquet(str(out))
    days = [str(row.day) for row in table.select("day").distinct().orderBy("day").collect()]
    wanted = days[len(days) // 2]
    begin = F.lit(f"{wanted} 00:00:00").cast("timestamp")
    found = (F.col("storeTimestamp") >= begin) & (F.col("storeTimestamp") < begin + F.expr("interval 1 day"))
    sums = (F.count("*"), F.sum(F.length("body")))
    wanted_rows = f"topic = 'Topic1' and day = '{wanted}'"
    options = {"columns": "topic,storeTimestamp,body"}
    in_store = session.read.format("rocketmq").options(**options).load(store)

    def on_store() -> list[Row]:
        return in_store.where(found & (F.col("topic") == "Topic1")).agg(*sums).collect()

    def on_table() -> list[Row]:
        """A data frame of its own each time: a second collect() of one would take what its first left of the shuffle."""
        return table.where(wanted_rows).agg(*sums).collect()

    assert on_store() == on_table()
    beside = in_turn(rows, on_store, on_table, times=3)
    of_day = [path for path in data_files(out) if path.match(f"topic=Topic1/day={wanted}/*")]
    yield (
        f"day: one of {len(days)} days of one of 3 topics of {rows} messages: in the store {beside[0].seconds:.2f} s, in the "
        f"export {beside[1].seconds:.2f} s, {len(of_day)} of {len(data_files(out))} files"
    )


WHAT = {"files": files, "first": first, "rate": rate, "day": day}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(WHAT), metavar="files first rate day")
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--dir", default=None)
    given = parser.parse_args()
    session = local_session("lake", settings={"spark.driver.memory": "2g"})
    for part in given.parts:
        with tempfile.TemporaryDirectory(prefix="spark-lake-", dir=given.dir) as folder:
            for line in WHAT[part](session, folder, given.megabytes):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

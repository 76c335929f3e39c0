"""Exports to a lake: how many files, how fast, and what a day's query costs there and in the store.

    python -m tests.spark_proof.lake [--megabytes 256] [--dir /dev/shm] [files rate day ...]

`rate` compares an export with reading the store into Spark's `noop` sink and then writing the same rows, which Spark already
holds, by Spark's own Parquet writer without folders. Each figure is the fastest of three runs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.bench_spark import in_turn, into_noop, write_log
from twisted_mq.spark.commands.export import COLUMNS, Wanted, export
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.session import local_session

BODY_BYTES = 128
FILE_BYTES = 16 << 20
SLICE_BYTES = 256 << 30
DAYS = 10
DAY_MS = 86_400_000


def write_store(folder: str, megabytes: int, *, topics: int, step_ms: int = 1) -> tuple[str, int]:
    """Write a store of log files of about 16 MiB; return its path and number of messages."""
    log, rows, offset = Path(folder, "store", "commitlog"), 0, 0
    while offset < megabytes << 20:
        path = log / f"{offset:020d}"
        size = min(FILE_BYTES, (megabytes << 20) - offset)
        rows += write_log(path, size, BODY_BYTES, topics=topics, step_ms=step_ms, first_offset=offset, first=rows)
        offset += path.stat().st_size
    return str(log.parent), rows


def data_files(out: Path) -> list[Path]:
    return list(out.rglob("topic=*/day=*/*.parquet"))


def files(session: SparkSession, folder: str, megabytes: int) -> Iterator[str]:
    """A thousand topics, exported in two runs and then merged."""
    store, rows = write_store(folder, megabytes, topics=1000)
    out, whole = Path(folder, "out"), Stores.opened(session, [store])
    half = attrs.evolve(whole, ends={one: end // 2 for one, end in whole.ends.items()})
    for stores, compact, what in ((half, False, "half"), (whole, False, "the rest"), (whole, True, "merged")):
        began = time.perf_counter()
        export(stores, 1, str(out), "parquet", Wanted(slice_bytes=SLICE_BYTES, compact=compact))
        seconds = time.perf_counter() - began
        yield f"files: {rows} messages of 1000 topics, {what}: {len(data_files(out))} files, {seconds:.1f} s"


def rate(session: SparkSession, folder: str, megabytes: int) -> Iterator[str]:
    """An export beside reading and Spark's own writer."""
    store, rows = write_store(folder, megabytes, topics=3)
    out = Path(folder, "out")
    read = session.read.format("rocketmq").option("columns", ",".join(COLUMNS)).load(store)

    def exported() -> None:
        shutil.rmtree(out, ignore_errors=True)
        export(Stores.opened(session, [store]), 1, str(out), "parquet", Wanted(slice_bytes=SLICE_BYTES))

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
    store, rows = write_store(folder, megabytes, topics=3, step_ms=DAYS * DAY_MS // (megabytes << 20) * 420)
    out = Path(folder, "out")
    export(Stores.opened(session, [store]), 1, str(out), "parquet", Wanted(slice_bytes=SLICE_BYTES))
    table = session.read.parquet(str(out))
    days = [str(row.day) for row in table.select("day").distinct().orderBy("day").collect()]
    wanted = days[len(days) // 2]
    begin = F.lit(f"{wanted} 00:00:00").cast("timestamp")
    found = (F.col("storeTimestamp") >= begin) & (F.col("storeTimestamp") < begin + F.expr("interval 1 day"))
    sums = (F.count("*"), F.sum(F.length("body")))
    options = {"columns": "topic,storeTimestamp,body"}
    in_store = session.read.format("rocketmq").options(**options).load(store)
    on_store = in_store.where(found & (F.col("topic") == "Topic1")).agg(*sums)
    on_table = table.where(f"topic = 'Topic1' and day = '{wanted}'").agg(*sums)
    assert on_store.collect() == on_table.collect()
    beside = in_turn(rows, on_store.collect, on_table.collect, times=3)
    yield (
        f"day: one of {len(days)} days of one of 3 topics of {rows} messages: in the store {beside[0].seconds:.2f} s, in the "
        f"export {beside[1].seconds:.2f} s"
    )


PARTS = {"files": files, "rate": rate, "day": day}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="files rate day")
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--dir", default=None)
    given = parser.parse_args()
    session = local_session("lake", settings={"spark.driver.memory": "2g"})
    for part in given.parts:
        with tempfile.TemporaryDirectory(prefix="spark-lake-", dir=given.dir) as folder:
            for line in PARTS[part](session, folder, given.megabytes):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures how fast Spark reads a commit log: ours beside its transport of premade batches, and beside a row a construct parse.

    python -m tests.bench.bench_spark [columns counts parses tasks] [--megabytes 256] [--bodies 128,1024] [--dir /dev/shm]

All read the same file into Spark's `noop` sink, which takes every row and keeps none; the row readers read its begin only,
because they take that long. Premade batches cost Python nothing: they are what Spark itself takes for rows of these
columns. Each figure is the fastest of five runs (of two for row readers) behind a first one, when Python's worker processes
are up; both sides take turns. Goals are those under Spark's own settings, in which Java and workers talk over TCP and lose
some 0.05 s a task. `times` compares rates; `by us` processor time a row of Java and workers, which says more where others
use the machine; `worker us` is that of workers alone. Two tasks have two cores; one task, which is compared with them, has
one, because its Java and its worker would use both.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import itertools
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import construct
import pyarrow as pa
import pyarrow.compute
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType
from rich.console import Console
from rich.table import Table

from tests.bench.written_store import write_store
from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, host_text
from twisted_mq.protocol.layouts.record import MESSAGE
from twisted_mq.protocol.layouts.record_columns import HOST_FIELDS
from twisted_mq.protocol.messages.compression import plain_body
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.spark.columns.schema import COLUMN_NAMES, DEFAULT_COLUMNS, spark_ddl
from twisted_mq.spark.session import local_session
from twisted_mq.spark.source.log_stretch import first_record
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import ReadOptions, read_options
from twisted_mq.spark.source.splits import LogSplit
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.tables import register

_MEGABYTE = 1 << 20


class ConstructRows(DataSource):
    """The same rows, one construct parse each; option `compiled` takes construct's compiled form."""

    @classmethod
    def name(cls) -> str:
        return "construct-rows"

    def schema(self) -> str:
        return spark_ddl(COLUMN_NAMES)

    def reader(self, schema: StructType) -> ConstructRowReader:
        options = dict(self.options)
        compiled = options.pop("compiled") == "true"
        return ConstructRowReader(options, compiled)


class ConstructRowReader(DataSourceReader):
    """Parses record after record of a split and yields tuples."""

    def __init__(self, options: dict[str, str], compiled: bool) -> None:
        self.options = options
        self.compiled = compiled

    def partitions(self) -> list[LogSplit]:
        return StoreReader(read_options(self.options), COLUMN_NAMES).partitions()

    def read(self, partition: LogSplit) -> Iterator[tuple[Any, ...]]:
        layout = _compiled() if self.compiled else MESSAGE
        for file, begin, end in partition.part.pieces():
            log = OpenLog(partition.part.store, file, partition.part.log_end)
            position, end = first_record(log, begin - file.first_offset), end - file.first_offset
            while position < end:
                window = log.window(position, log.record_size(position))
                yield _row(layout.parse(window.data), window.name, partition.part.store.name)
                position += window.size


class PremadeBatches(DataSource):
    """As many rows of the same columns, made once a task and handed over again and again: Spark's own transport."""

    @classmethod
    def name(cls) -> str:
        return "premade-batches"

    def schema(self) -> str:
        return spark_ddl(read_options(self.options).columns)

    def reader(self, schema: StructType) -> PremadeReader:
        return PremadeReader(read_options(self.options))


class PremadeReader(DataSourceReader):
    """Yields the first batch of a split for each that the split has bytes for."""

    def __init__(self, options: ReadOptions) -> None:
        self.columns = list(options.columns)
        self.stores = StoreReader(options, tuple(dict.fromkeys((*options.columns, "storeSize"))))

    def partitions(self) -> list[LogSplit]:
        return self.stores.partitions()

    def read(self, partition: LogSplit) -> Iterator[pa.RecordBatch]:
        batch = next(self.stores.read(partition))
        size = pa.compute.sum(batch["storeSize"]).as_py()
        batch = batch.select(self.columns)
        for _ in range(max(1, round(partition.part.size_bytes / size))):
            yield batch


def _compiled() -> construct.Struct:
    """The record compiled: construct cannot compile functions, so without those of hosts (IPv4 here) and lengths."""
    fields = []
    for field in MESSAGE.subcons:
        layout = construct.Bytes(IPV4_HOST_BYTES) if field.name in HOST_FIELDS else field.subcon
        fields.append(field.name / (layout.subcon if isinstance(layout, construct.Rebuild) else layout))
    return construct.Struct(*fields).compile()


def _row(record: Any, file: str, store: str) -> tuple[Any, ...]:
    properties = decode_property_bytes(record.properties)
    return (
        record.topic.decode(),
        record.queue_id,
        record.queue_offset,
        record.physical_offset,
        file,
        store,
        None,
        properties.get("TAGS"),
        properties.get("KEYS"),
        properties.get("UNIQ_KEY"),
        properties,
        record.flag,
        record.sys_flag,
        datetime.datetime.fromtimestamp(record.born_timestamp / 1000, datetime.UTC),
        datetime.datetime.fromtimestamp(record.store_timestamp / 1000, datetime.UTC),
        host_text(record.born_host),
        host_text(record.store_host),
        record.reconsume_times,
        record.prepared_transaction_offset,
        record.size,
        record.body_crc,
        zlib.crc32(record.body) & 0x7FFFFFFF == record.body_crc,
        plain_body(record.body, record.sys_flag),
    )


@attrs.frozen
class Run:
    """A run of a query: its time on the clock, and the processor time of Java and of Python's workers, in seconds."""

    rows: int
    seconds: float
    java: float
    workers: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def processor(self) -> float:
        """Microseconds of processors a row."""
        return (self.java + self.workers) / self.rows * 1e6


def processes() -> dict[int, tuple[str, list[int]]]:
    """This process and those below it: their names, and the fields of /proc/PID/stat behind those."""
    found: dict[int, tuple[str, list[int]]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(") ")
        except OSError:
            continue  # it ended meanwhile
        found[int(path.parent.name)] = name.partition("(")[2], list(map(int, rest.split()[1:]))
    below = {os.getpid()}
    while more := {pid for pid, (_, fields) in found.items() if fields[0] in below and pid not in below}:
        below |= more
    return {pid: found[pid] for pid in below}


def processor_seconds() -> tuple[float, float]:
    """Return the processor time that Java and Python's workers below this process have used."""
    hertz = os.sysconf("SC_CLK_TCK")
    used = [(name == "java", sum(fields[10 : 12 if name == "java" else 14])) for name, fields in processes().values()]
    java = sum(ticks for is_java, ticks in used if is_java)
    return java / hertz, (sum(ticks for _, ticks in used) - java) / hertz


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Meanwhile all threads of this process and those below it have one core together."""
    cores = os.sched_getaffinity(0)
    _pin({min(cores)})
    try:
        yield
    finally:
        _pin(cores)


def _pin(cores: set[int]) -> None:
    for pid in processes():
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def run(rows: int, query: Callable[[], object], times: int = 5) -> Run:
    """The fastest of so many behind a first one."""
    return in_turn(rows, query, times=times)[0]


def in_turn(rows: int, *queries: Callable[[], object], times: int = 5) -> list[Run]:
    """The fastest of each one's runs behind a first one. They take turns: Java is faster the longer it runs."""
    for query in queries:
        query()
    rounds = [[_run(rows, query) for query in queries] for _ in range(times)]
    return [min(runs, key=lambda one: one.seconds) for runs in zip(*rounds, strict=True)]


def _run(rows: int, query: Callable[[], object]) -> Run:
    before, began = processor_seconds(), time.perf_counter()
    query()
    seconds = time.perf_counter() - began
    java, workers = (after - one for after, one in zip(processor_seconds(), before, strict=True))
    return Run(rows, seconds, java, workers)


def into_noop(frame: DataFrame) -> Callable[[], object]:
    """All rows, none kept."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


def frame_of(
    session: SparkSession, source: str, store: str, columns: str = "", part: str = "16m", end: int = 0
) -> DataFrame:
    """Return a data frame of the store; without `columns`, with those that the source has by default."""
    options = {"maxPartitionBytes": part, **({"columns": columns} if columns else {})}
    if end:
        options["endOffset"] = str(end)
    return session.read.format(source).options(**options).load(store)


ONE = "queueOffset"
FEW = "storeSize,topic,queueId,queueOffset"
"""Four columns."""
SETS = {"all columns": "all", "default columns": ",".join(DEFAULT_COLUMNS), "four columns": FEW, "one column": ONE}
GOALS = {
    "all columns": 0.8,
    "four columns": 0.65,
    "one column": 0.7,
    "count() as one writes it": 0.6,
    "rocketmq.count of queues, Parquet's count()": 0.5,
    "rocketmq.count of the log, Parquet's count()": 0.5,
    "rows of construct": 20,
    "count(), rows of construct": 20,
    "two tasks": 1.7,
}
"""At least so many times what they are compared with."""
WHAT = ["columns", "counts", "parses", "tasks"]


Measured = Iterator[tuple[str, Sequence[Run]]]
"""Names of measurements, each with the runs that are compared."""


def columns(session: SparkSession, store: str, rows: int, part: str) -> Measured:
    """Columns, beside premade batches of the same."""
    for words, names in SETS.items():
        ours, theirs = (
            into_noop(frame_of(session, one, store, names, part)) for one in ("rocketmq", "premade-batches")
        )
        yield words, in_turn(rows, ours, theirs)


def counts(session: SparkSession, store: str, rows: int, part: str) -> Measured:
    """Counts, beside those of premade batches and of Parquet."""
    ours = session.read.format("rocketmq").option("maxPartitionBytes", part).load(store).count
    count, _ = both = in_turn(rows, ours, frame_of(session, "premade-batches", store, ONE, part).count)
    yield "count() as one writes it", both
    parquet = str(Path(store, "parquet"))
    frame_of(session, "rocketmq", store, "all", part).write.mode("overwrite").parquet(parquet)
    of_parquet = session.read.parquet(parquet).count
    for through, words in (("queues", "rocketmq.count of queues"), ("log", "rocketmq.count of the log")):
        options = {"maxPartitionBytes": part, "through": through}
        frame = session.read.format("rocketmq.count").options(**options).load(store)
        by_tasks, theirs = in_turn(rows, functools.partial(summed, frame), of_parquet)
        yield f"{words}, Parquet's count()", (by_tasks, theirs)
    yield "count(), Parquet's count()", (count, theirs)


def summed(frame: DataFrame) -> object:
    """The sum of counts, by a data frame of its own each time: a second collect() of one would take what its first left of the
    shuffle."""
    return frame.agg({"messages": "sum"}).collect()


def parses(session: SparkSession, store: str, rows: int, end: int, part: str) -> Measured:
    """All columns and a count, beside a parse by construct for each row."""
    whole = run(rows, into_noop(frame_of(session, "rocketmq", store, "all", part)))
    count = run(rows, session.read.format("rocketmq").option("maxPartitionBytes", part).load(store).count)
    for words, compiled in (("rows of construct", "false"), ("rows of construct, compiled", "true")):
        options = {"endOffset": str(end), "maxPartitionBytes": str(max(end // 4, 4096)), "compiled": compiled}
        few = session.read.format("construct-rows").options(**options).load(store)
        some = few.count()
        yield words, (whole, run(some, into_noop(few), 2))
        yield f"count(), {words}", (count, run(some, few.count, 2))


def tasks(session: SparkSession, store: str, rows: int) -> Measured:
    """Two tasks on two cores, beside one on one."""
    size = sum(file.stat().st_size for file in Path(store, "commitlog").iterdir())
    both, half = (frame_of(session, "rocketmq", store, "", str(size // 2 + 1), end) for end in (0, size // 2))
    with on_one_core():
        one_task = run(half.count(), into_noop(half))
    yield "two tasks", (run(rows, into_noop(both)), one_task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="*", choices=[*WHAT, []], metavar="WHAT", help=f"some of {', '.join(WHAT)}; all by default"
    )
    parser.add_argument("--megabytes", type=int, default=256, help="size of the file")
    parser.add_argument("--row-megabytes", type=int, default=24, help="how much of it the row readers read")
    parser.add_argument("--bodies", default="128,1024", help="body sizes in bytes, with commas between")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--part", default="16m", help="maxPartitionBytes: how much of the file a task reads")
    parser.add_argument(
        "--unix", action="store_true", help="Java and workers talk as in local_session, not as Spark has it"
    )
    parser.add_argument("--dir", help="where the file is written for the time of the run")
    arguments = parser.parse_args()
    sockets = {"spark.python.unix.domain.socket.enabled": str(arguments.unix).lower()}
    session = local_session("bench", arguments.cores, sockets)
    session.dataSource.register(ConstructRows)
    session.dataSource.register(PremadeBatches)
    register(session)
    table = Table(
        title=f"Spark, {arguments.cores} cores, {arguments.megabytes} MiB in {arguments.part}", title_justify="left"
    )
    for name in ("body", "what", "rows/s", "worker us", "us", "beside: rows/s", "us", "times", "by us", "goal"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for body_bytes in map(int, arguments.bodies.split(",")):
        folder = tempfile.mkdtemp(dir=arguments.dir)
        try:
            rows = write_store(Path(folder), arguments.megabytes * _MEGABYTE, body_bytes)
            some = arguments.row_megabytes * _MEGABYTE
            measured = {
                "columns": columns(session, folder, rows, arguments.part),
                "counts": counts(session, folder, rows, arguments.part),
                "parses": parses(session, folder, rows, some, arguments.part),
                "tasks": tasks(session, folder, rows),
            }
            for words, (ours, theirs) in itertools.chain.from_iterable(map(measured.pop, arguments.what or WHAT)):
                worker, times = ours.workers / ours.rows * 1e6, ours.rate / theirs.rate
                figures = (f"{worker:.2f}", f"{ours.processor:.2f}", f"{theirs.rate:,.0f}", f"{theirs.processor:.2f}")
                by_processor = theirs.processor / ours.processor
                goal = str(GOALS.get(words) or "")
                cells = (f"{ours.rate:,.0f}", *figures, f"{times:.2f}", f"{by_processor:.2f}", goal)
                table.add_row(str(body_bytes), words, *cells)
        finally:
            shutil.rmtree(folder)
    session.stop()
    Console(width=130).print(table)


if __name__ == "__main__":
    main()

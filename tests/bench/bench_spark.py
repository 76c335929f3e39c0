"""Rows a second that Spark gets from a commit log: ours beside a reader that yields a row from each construct parse.

    .venv/bin/python -m tests.bench.bench_spark [--megabytes 256] [--row-megabytes 24] [--bodies 128,1024] [--dir /dev/shm]

Both read the same file, cut at the same places, all columns, into Spark's `noop` sink, which takes every row and keeps
none; the row reader reads the first part only, because it takes that long. Ratios to Spark's transport of premade batches
say what is left to gain. Each figure is the second run's, when
Python's worker processes are up.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import construct
import pyarrow as pa
import pyarrow.compute
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType
from rich.console import Console
from rich.table import Table

from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, host_text, pack_host
from twisted_mq.protocol.layouts.record import MESSAGE
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.layouts.record_columns import HOST_FIELDS
from twisted_mq.protocol.messages.compression import plain_body
from twisted_mq.protocol.text.properties import decode_property_bytes, encode_properties
from twisted_mq.spark.columns.schema import COLUMN_NAMES, DEFAULT_COLUMNS, spark_ddl
from twisted_mq.spark.session import local_session
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import ReadOptions, read_options
from twisted_mq.spark.source.splits import LogSplit
from twisted_mq.spark.source.store_reader import StoreReader

GOAL = 10
"""Ours must be so many times faster."""
_MEGABYTE = 1 << 20
_BORN_MS = 1_795_216_734_968


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
            position, end = log.first_record(begin - file.first_offset), end - file.first_offset
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
        self.stores = StoreReader(options, options.columns)

    def partitions(self) -> list[LogSplit]:
        return self.stores.partitions()

    def read(self, partition: LogSplit) -> Iterator[pa.RecordBatch]:
        batch = next(self.stores.read(partition))
        size = pa.compute.sum(batch["storeSize"]).as_py()
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


def write_log(path: Path, size: int, body_bytes: int) -> None:
    """A commit log file of about that size, with the properties that Apache's client and broker set."""
    path.parent.mkdir(parents=True)
    body = os.urandom(body_bytes)
    born_host, store_host = pack_host("10.0.0.7", 49084), pack_host("10.0.0.1", 10911)
    position = number = 0
    with open(path, "wb") as file:
        while position < size:
            properties = encode_properties(
                {
                    "KEYS": f"order-{number}",
                    "UNIQ_KEY": f"C0000202201A4E0E2F2A66E0{number:08X}",
                    "CLUSTER": "DefaultCluster",
                    "MSG_REGION": "DefaultRegion",
                    "TRACE_ON": "true",
                    "WAIT": "true",
                    "TAGS": f"Tag{number % 4}",
                }
            )
            record = encode_record(
                b"Topic%d" % (number % 3),
                body,
                properties.encode(),
                queue_id=number % 4,
                queue_offset=number // 12,
                physical_offset=position,
                born_timestamp=_BORN_MS + number,
                born_host=born_host,
                store_timestamp=_BORN_MS + number + 2,
                store_host=store_host,
            )
            file.write(record)
            position += len(record)
            number += 1


def rows_a_second(frame: DataFrame) -> tuple[int, float]:
    """(rows, rows a second) of the second of two runs into the noop sink."""
    rows = frame.count()
    seconds = 0.0
    for _ in range(2):
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - began
    return rows, rows / seconds


def measure(session: SparkSession, store: str, row_bytes: int) -> list[tuple[str, int, float]]:
    """(reader, rows, rows a second) of each reader."""
    without = ",".join(name for name in COLUMN_NAMES if name not in ("crcOk", "body", "properties"))
    row_options = {"endOffset": str(row_bytes), "maxPartitionBytes": str(max(row_bytes // 4, 4096))}
    rows = session.read.format("construct-rows").options(**row_options)
    ours = session.read.format("rocketmq").option("maxPartitionBytes", "16m").option("columns", "all")
    readers = {
        "construct, a row each": rows.option("compiled", "false").load(store),
        "construct compiled, a row each": rows.option("compiled", "true").load(store),
        "rocketmq, all columns": ours.load(store),
        "rocketmq, no body, CRC, map": ours.option("columns", without).load(store),
    }
    return [(name, *rows_a_second(frame)) for name, frame in readers.items()]


FEW = "storeSize,topic,queueId,queueOffset"
"""Four columns."""


def against_transport(session: SparkSession, store: str) -> dict[str, float]:
    """Ours to Spark's transport of premade batches, rows a second: by columns."""
    ratios = {}
    for words, columns in (
        ("all columns", "all"),
        ("four columns", FEW),
        ("default columns", ",".join(DEFAULT_COLUMNS)),
    ):
        rates = []
        for source in ("rocketmq", "premade-batches"):
            options = {"columns": columns, "maxPartitionBytes": "16m"}
            rates.append(rows_a_second(session.read.format(source).options(**options).load(store))[1])
        ratios[words] = rates[0] / rates[1]
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256, help="size of the file")
    parser.add_argument("--row-megabytes", type=int, default=24, help="how much of it the row readers read")
    parser.add_argument("--bodies", default="128,1024", help="body sizes in bytes, with commas between")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--dir", help="where the file is written for the time of the run")
    arguments = parser.parse_args()
    session = local_session("bench", arguments.cores)
    session.dataSource.register(ConstructRows)
    session.dataSource.register(PremadeBatches)
    ratios: dict[str, float] = {}
    table = Table(title=f"Spark, {arguments.cores} cores, {arguments.megabytes} MiB", title_justify="left")
    for name in ("body", "reader", "rows", "rows/s", "MiB/s", "times"):
        table.add_column(name, justify="left" if name == "reader" else "right")
    slowest = float("inf")
    for body_bytes in map(int, arguments.bodies.split(",")):
        folder = tempfile.mkdtemp(dir=arguments.dir)
        try:
            log = Path(folder, "commitlog", f"{0:020d}")
            write_log(log, arguments.megabytes * _MEGABYTE, body_bytes)
            figures = measure(session, folder, arguments.row_megabytes * _MEGABYTE)
            of_body = against_transport(session, folder).items()
            ratios |= {f"{words}, {body_bytes}-byte bodies": ratio for words, ratio in of_body}
        finally:
            shutil.rmtree(folder)
        base = figures[0][2]
        slowest = min(slowest, figures[2][2] / base)
        record_mebibytes = arguments.megabytes / figures[2][1]
        for name, rows, rate in figures:
            speed = f"{rate * record_mebibytes:,.0f}"
            table.add_row(str(body_bytes), name, f"{rows:,}", f"{rate:,.0f}", speed, f"{rate / base:.1f}")
    session.stop()
    Console(width=110).print(table)
    for words, ratio in ratios.items():
        print(f"{words}: {ratio:.2f} of the transport of premade batches")
    print(f"all columns at least {slowest:.1f} times the rows of construct (goal: {GOAL})")


if __name__ == "__main__":
    main()

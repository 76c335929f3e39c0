"""The table `rocketmq.frames`: recorded remoting traffic, one row per frame.

session.read.format("rocketmq.frames").load("traffic")
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from twisted_mq.spark import option_values as values
from twisted_mq.spark.columns.schema import ARROW_TYPES
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.named_options import Parsers, named, take, text
from twisted_mq.spark.tables.frame_files import PART_BYTES, parts_of, seen_in
from twisted_mq.spark.tables.frames import COLUMNS, rows
from twisted_mq.spark.tables.given_schema import check_schema
from twisted_mq.spark.tables.task_groups import grouped

ROWS = 1024
_PARSERS: Parsers = {
    "path": ("path", text),
    "keepSecrets": ("keep_secrets", values.truth),
    "maxPartitionBytes": ("part_bytes", values.size_bytes),
}
SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in COLUMNS.items()])


class FrameReader(DataSourceReader):
    """Reader of frames: segments are read in parts, small files together."""

    def __init__(self, path: str, keep_secrets: bool = False, part_bytes: int = PART_BYTES) -> None:
        self.path = path
        self.keep_secrets = keep_secrets
        self.part_bytes = part_bytes

    def partitions(self) -> list[InputPartition]:
        parts = parts_of(self.path, self.part_bytes)
        return list(map(InputPartition, grouped(((part, part.end - part.begin) for part in parts), self.part_bytes)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in partition.value or ():
            found = rows(part.path, seen_in(part), self.keep_secrets)
            while some := list(itertools.islice(found, ROWS)):
                yield _batch(some)


def _batch(some: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*some, strict=True)
    arrays = [
        pa.array([list(one.items()) if isinstance(one, dict) else one for one in column], field.type)
        for field, column in zip(SCHEMA, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class FrameSource(DataSource):
    """Recorded remoting frames.

    | option | meaning | default |
    |---|---|---|
    | path | segment of `mq record`, packets in pcap or pcapng, frames one after the other, or a directory of such files |
    required |
    | keepSecrets | true: keep access keys, signatures, tokens and users' passwords; false: replace them with `***` | false |
    | maxPartitionBytes | approximate bytes of a segment that a task reads | 64m |
    """

    @classmethod
    def name(cls) -> str:
        return "rocketmq.frames"

    def schema(self) -> str:
        return ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())

    def reader(self, schema: StructType) -> FrameReader:
        known = named(self.options, tuple(_PARSERS))
        if "path" not in known:
            raise WrongOption("path", "", "a path is needed: load(path)")
        taken = take(known, _PARSERS)
        check_schema(COLUMNS, schema)
        return FrameReader(taken.pop("path").removeprefix("file://"), **taken)

"""Files of consecutive records of any declaration, as a format defined by the user.

register_layout(session, "readings", READING)
session.read.format("readings").load("readings.bin")  # file, position, and a column for each field of READING
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
import construct
import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from twisted_mq.protocol.columns import Entries
from twisted_mq.protocol.layouts.derive import Field, LayoutError, LengthError, Run, derive_runs
from twisted_mq.protocol.layouts.derive_values import all_fields, placed_reader
from twisted_mq.spark import option_values as values
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.file_systems import local_path, locate
from twisted_mq.spark.named_options import Parsers, named, take, text
from twisted_mq.spark.tables.given_schema import check_schema
from twisted_mq.spark.tables.layout_columns import arrow_type, spark_type
from twisted_mq.spark.tables.task_groups import BYTES_A_TASK, grouped

WINDOW_BYTES = 8 << 20
"""Number of bytes read at a time."""
LARGEST_RECORD = 64 << 20
"""Largest size of a record; a longer one is damage."""
_PARSERS: Parsers = {"path": ("path", text), "maxPartitionBytes": ("part_bytes", values.size_bytes)}
_FILE, _POSITION = "file", "position"


@attrs.frozen
class RecordPart:
    """A range of bytes of a file; `uri` is the given path or URI, which selects the file system."""

    uri: str
    path: str
    begin: int
    end: int


class LayoutReader(DataSourceReader):
    """Reader of records of `runs`. Files of records of one size are cut into parts, others are read by one task each."""

    def __init__(self, runs: tuple[Run, ...], path: str, part_bytes: int = BYTES_A_TASK) -> None:
        self.runs = runs
        self.path = local_path(path)
        self.part_bytes = part_bytes

    @property
    def _record_bytes(self) -> int | None:
        """Return the size of a record; None if records have several sizes."""
        return self.runs[0].size if len(self.runs) == 1 and not self.runs[0].follower else None

    def partitions(self) -> list[InputPartition]:
        """Plan the parts. Raises StoreReadError if the path is missing."""
        parts = (part for info in _files(self.path) for part in self._parts(info))
        return list(map(InputPartition, grouped(((part, part.end - part.begin) for part in parts), self.part_bytes)))

    def _parts(self, info: fs.FileInfo) -> Iterator[RecordPart]:
        size, record = info.size or 0, self._record_bytes
        step = size if record is None else max(1, self.part_bytes // record) * record
        for begin in range(0, size, max(1, step)):
            yield RecordPart(self.path, info.path, begin, min(begin + step, size))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a part. Raises StoreReadError at bytes that are not a record."""
        fields = all_fields(self.runs)
        schema = pa.schema(
            [(_FILE, pa.string()), (_POSITION, pa.int64()), *((one.name, arrow_type(one)) for one in fields)]
        )
        for part in partition.value or ():
            for positions, columns in self._columns(part, fields):
                file = pa.repeat(pa.scalar(part.path), len(positions))
                yield pa.RecordBatch.from_arrays([file, positions, *columns], schema=schema)

    def _columns(self, part: RecordPart, fields: Sequence[Field]) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
        with locate(part.uri)[0].open_input_file(part.path) as file:
            if self._record_bytes is not None:
                yield from _entries(file, part, self.runs[0])
            else:
                yield from _records(file, part, self.runs, fields)


def _files(path: str) -> list[fs.FileInfo]:
    """Return a file, or those of a directory in order of their names, without hidden ones."""
    system, root = locate(path)
    info: fs.FileInfo = system.get_file_info(root)
    if info.type == fs.FileType.File:
        return [info]
    if info.type != fs.FileType.Directory:
        raise StoreReadError(f"{path}: no such file or directory")
    found = system.get_file_info(fs.FileSelector(root))
    files = (one for one in found if one.type == fs.FileType.File and not one.base_name.startswith((".", "_")))
    return sorted(files, key=lambda one: str(one.path))


def _entries(file: pa.NativeFile, part: RecordPart, run: Run) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
    """Yield records of one size, many at once."""
    kind, window = run.as_dtype(), max(1, WINDOW_BYTES // run.size) * run.size
    for begin in range(part.begin, part.end, window):
        data = file.read_at(min(window, part.end - begin), begin)
        count = len(data) // run.size
        if count:
            entries = np.frombuffer(data, kind, count)
            yield (
                pa.array(begin + np.arange(count) * run.size, pa.int64()),
                [_column(entries, field) for field in run.fields],
            )
        if count * run.size < len(data):
            left = len(data) - count * run.size
            raise StoreReadError(f"{part.path}: no record at offset {begin + count * run.size}: {left} bytes are left")


def _column(entries: Entries, field: Field) -> pa.Array:
    kind, column = arrow_type(field), entries[field.name]
    if not pa.types.is_binary(kind):
        return pa.array(column.astype(kind.to_pandas_dtype()))
    packed = pa.py_buffer(np.ascontiguousarray(column).view(np.uint8))
    return pa.Array.from_buffers(pa.binary(field.size), len(column), [None, packed]).cast(kind)


def _records(
    file: pa.NativeFile, part: RecordPart, runs: Sequence[Run], fields: Sequence[Field]
) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
    """Yield records of several sizes, those of a window at once."""
    read, begin, data = placed_reader(runs), part.begin, b""
    while begin < part.end:
        data += file.read_at(min(WINDOW_BYTES, part.end - begin - len(data)), begin + len(data))
        positions, rows, position = [], [], 0
        try:
            while position < len(data):
                found, following = read(data, position)
                positions.append(begin + position)
                rows.append(found)
                position = following
        except LengthError as error:
            whole = begin + len(data) == part.end or len(data) - position > LARGEST_RECORD
            if whole or error.length < 0:
                raise StoreReadError(f"{part.path}: no record at offset {begin + position}: {error}") from error
        if rows:
            columns = zip(*rows, strict=True)
            yield (
                pa.array(positions, pa.int64()),
                [pa.array(column, arrow_type(field)) for column, field in zip(columns, fields, strict=True)],
            )
        begin, data = begin + position, data[position:]


class LayoutSource(DataSource):
    """The data source of one declaration: options path, maxPartitionBytes (64m)."""

    format: ClassVar[str]
    runs: ClassVar[tuple[Run, ...]]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> str:
        return ", ".join(f"`{name}` {kind}" for name, kind in self._columns().items())

    @classmethod
    def _columns(cls) -> dict[str, str]:
        declared = {field.name: spark_type(field) for field in all_fields(cls.runs)}
        return {_FILE: "string", _POSITION: "bigint", **declared}

    def reader(self, schema: StructType) -> DataSourceReader:
        taken = take(named(self.options, tuple(_PARSERS)), _PARSERS)
        if "path" not in taken:
            raise WrongOption("path", "", "a path is needed: load(path)")
        check_schema(self._columns(), schema)
        return LayoutReader(self.runs, **taken)


def register_layout(session: SparkSession, name: str, layout: construct.Struct) -> None:
    """Register files of `layout` with a session as format `name`: fixed fields and length-prefixed bytes, big-endian.

    Raises LayoutError for a declaration with other kinds of fields.
    """
    declared = tuple(derive_runs(layout))
    for field in all_fields(declared):
        if field.name in (_FILE, _POSITION):
            raise LayoutError(f"{field.name!r} is a column of every file; use another name for the field")
        spark_type(field)

    class Declared(LayoutSource):
        format = name
        runs = declared

    session.dataSource.register(Declared)

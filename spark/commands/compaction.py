"""Compaction of an export: small files of one topic and day become one file, with the same rows in the order of the files.

A merged file is written beside the table. It replaces its parts in one step, so a killed compaction loses and repeats nothing.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

FOLDER = "_compaction"
"""Folder for a merged file that is not yet part of the table; readers skip names that begin with `_`."""


@attrs.frozen
class Part:
    """A data file of a table: its path below the table's directory, and its size in bytes."""

    path: str
    size_bytes: int

    @property
    def folder(self) -> str:
        """Return the folder of the file's topic and day."""
        return self.path.rpartition("/")[0]


@attrs.frozen
class Compacted:
    """Number of small files that were merged, and of files they became."""

    merged: int = 0
    made: int = 0


@attrs.frozen
class Merge:
    """Files of one topic and day that become one. Its name comes from theirs, so a repeated merge writes the same file."""

    parts: tuple[Part, ...]

    @property
    def path(self) -> str:
        """Return the path of the merged file below the table's directory."""
        names = "\n".join(part.path for part in self.parts)
        return f"{self.parts[0].folder}/merged-{hashlib.sha256(names.encode()).hexdigest()[:24]}.parquet"


def merges(files: Iterable[Part], file_bytes: int) -> Iterator[Merge]:
    """Return the merges of files below half of `file_bytes`: none becomes larger than `file_bytes`, none has one part alone."""
    small: defaultdict[str, list[Part]] = defaultdict(list)
    for part in sorted(files, key=lambda one: one.path):
        if part.size_bytes < file_bytes // 2:
            small[part.folder].append(part)
    for parts in small.values():
        for together in _filled(parts, file_bytes):
            if len(together) > 1:
                yield Merge(tuple(together))


def _filled(parts: Sequence[Part], most_bytes: int) -> Iterator[list[Part]]:
    held: list[Part] = []
    size = 0
    for part in parts:
        if held and size + part.size_bytes > most_bytes:
            yield held
            held, size = [], 0
        held.append(part)
        size += part.size_bytes
    yield held


def write_merged(system: fs.FileSystem, root: str, merge: Merge) -> str:
    """Write the rows of the files to a new one in FOLDER, and return its path. A column that only some files have is null in the
    rows of the others."""
    path = f"{root}/{FOLDER}/{merge.path.rpartition('/')[2]}"
    system.create_dir(f"{root}/{FOLDER}")
    sources = [f"{root}/{part.path}" for part in merge.parts]
    schema = pa.unify_schemas([_schema(system, source) for source in sources])
    with system.open_output_stream(path) as stream, pq.ParquetWriter(stream, schema, compression="snappy") as writer:
        for source in sources:
            with system.open_input_file(source) as file:
                read = pq.ParquetFile(file)
                for group in range(read.num_row_groups):
                    writer.write_table(_with_columns(read.read_row_group(group), schema))
    return path


def _schema(system: fs.FileSystem, path: str) -> pa.Schema:
    with system.open_input_file(path) as file:
        return pq.read_schema(file).remove_metadata()


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns: Mapping[str, pa.ChunkedArray] = dict(zip(rows.column_names, rows.columns, strict=True))
    missing = rows.num_rows
    arrays = [columns[field.name] if field.name in columns else pa.nulls(missing, field.type) for field in schema]
    return pa.table(arrays, schema=schema)

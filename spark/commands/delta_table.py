"""A Delta table as the target of an export, by deltalake."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from twisted_mq.extras import require
from twisted_mq.spark.commands.compaction import Compacted
from twisted_mq.spark.commands.slices import Marks, Slice
from twisted_mq.spark.commands.targets import DAY, Added, ExportPlace, replace_file, schema_of
from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.source.marks import Mark, parse_mark

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's directory name for null."""
_BOUNDED = ("physicalOffset", "queueOffset", "queueId")
"""Columns whose least and largest value in a file is in the table, so that readers can skip files."""


class DeltaDirectory:
    """A Delta table; a transaction of an application with the name of the store has the physical offset as its version.

    `_export.json` has the marks of each store's last two slices: it is written before the commit that makes one of them true.
    """

    partitions: Mapping[str, str] = {"topic": "topic", DAY: DAY}

    def __init__(self, place: ExportPlace) -> None:
        """Raises StoreReadError for a table of an export with other options."""
        require("mq spark export --format delta", "lake")
        from deltalake import DeltaTable

        self._place = place
        self._system, self._root = locate(place.out)
        self._table: DeltaTable | None = None
        self._marks = _MarksFile(f"{place.out.rstrip('/')}/_export.json")
        if DeltaTable.is_deltatable(place.out):
            self._table = DeltaTable(place.out)
            place.check_same(self._table.metadata().description)

    def done(self, tags: Iterable[str]) -> Marks:
        if self._table is None:
            return {}
        found = {}
        for key in dict.fromkeys((*self._marks.kept, *tags)):
            reached = self._table.transaction_version(key)
            if reached:
                known = (mark for mark in self._marks.kept.get(key, ()) if mark.reached == reached)
                found[key] = next(known, Mark(reached))
        return found

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        from deltalake import CommitProperties, Transaction

        if not files:
            return
        schema = (
            schema_of(self._place.out, files[0])
            .append(pa.field("topic", pa.string()))
            .append(pa.field(DAY, pa.date32()))
        )
        table = self._table = self._opened(schema)
        self._marks.add(done)
        properties = CommitProperties(app_transactions=[Transaction(done.key, done.end)])
        table.create_write_transaction(
            list(map(self._action, files)),
            "append",
            table.schema(),
            list(self.partitions),
            commit_properties=properties,
        )
        table.update_incremental()

    def compact(self, file_bytes: int) -> Compacted:
        if self._table is None:
            return Compacted()
        figures = self._table.optimize.compact(target_size=file_bytes)
        return Compacted(figures["numFilesRemoved"], figures["numFilesAdded"])

    def _opened(self, schema: pa.Schema) -> DeltaTable:
        """Return the table with all columns of a schema: a new one, or with those that are missing added."""
        from deltalake import DeltaTable, Schema

        if self._table is None:
            names = list(self.partitions)
            said = self._place.said
            return DeltaTable.create(self._place.out, schema, partition_by=names, description=said)
        known = {field.name for field in self._table.schema().fields}
        added = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
        if added:
            self._table.alter.add_columns(added)
            self._table.alter.set_table_description(self._place.said)
        return self._table

    def _action(self, file: Added) -> AddAction:
        from deltalake.transaction import AddAction

        path = f"{self._root}/{file.path}"
        written_ms = self._system.get_file_info(path).mtime_ns // 1_000_000
        values = {name: None if text == _NO_VALUE else text for name, text in file.partition.items()}
        statistics = json.dumps({"numRecords": file.rows, **_bounds(self._system, path)})
        return AddAction(file.path, file.size_bytes, values, written_ms, True, statistics)


def _bounds(system: fs.FileSystem, path: str) -> dict[str, dict[str, int]]:
    """Return the least and the largest values of columns of a file, as Delta stores them."""
    with system.open_input_file(path) as one:
        read = pq.read_metadata(one)
    least: dict[str, int] = {}
    largest: dict[str, int] = {}
    for group in map(read.row_group, range(read.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name, known = column.path_in_schema, column.statistics
            if name in _BOUNDED and known is not None and known.has_min_max:
                least[name] = min(known.min, least.get(name, known.min))
                largest[name] = max(known.max, largest.get(name, known.max))
    return {"minValues": least, "maxValues": largest}


class _MarksFile:
    """The last two marks of each store, in a file beside a table whose commits have only the physical offset."""

    def __init__(self, uri: str) -> None:
        """Raises StoreReadError for a file of another kind."""
        self._system, self._path = locate(uri)
        self.kept: dict[str, tuple[Mark, ...]] = {}
        if self._system.get_file_info(self._path).type == fs.FileType.NotFound:
            return
        try:
            with self._system.open_input_file(self._path) as file:
                marks = json.loads(file.read())
            self.kept = {key: tuple(map(parse_mark, both)) for key, both in marks.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreReadError(f"{uri}: does not contain the progress of an export: {error}") from error

    def add(self, done: Slice) -> None:
        """Store the mark of a slice and the one before it. Raises LogFileGone."""
        self.kept[done.key] = (*self.kept.get(done.key, ())[-1:], done.mark)
        text = json.dumps({key: [mark.as_json() for mark in both] for key, both in self.kept.items()})
        replace_file(self._system, self._path, text)

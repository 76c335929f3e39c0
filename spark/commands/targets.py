"""Where an export goes: each target knows how far it came, and makes files a part of its table in one step."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from twisted_mq.extras import require
from twisted_mq.spark.commands.slices import Json, ProgressFile, Slice, tag_of
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.source.stores import locate

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import Table

DAY = "day"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Spark names a folder after for null."""


@attrs.frozen
class Added:
    """A file below the table's directory: its path there, size, rows, and the texts that its folders' names say."""

    path: str
    size_bytes: int
    rows: int
    partition: Mapping[str, str]

    @property
    def place(self) -> tuple[str, str]:
        """Topic and day."""
        topic, day = self.partition.values()
        return topic, day


class Target(Protocol):
    """A table that files are added to."""

    partitions: Mapping[str, str]
    """Names of folders, first the topic's and then the day's -> the column that says it."""

    def done(self, tag: str) -> int:
        """The physical offset up to which the table has the store of this tag; 0 for none of it."""

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        """Make the files a part of the table and say that the slice is done: both or none of it."""


class ParquetDirectory:
    """Files in topic=.../day=.../, and beside them how far the export came; names with `_` are no data for readers.

    Files are moved in one by one before the slice counts as done, so a reader may meanwhile see a part of it.
    """

    partitions: Mapping[str, str] = {"topic": "topic", DAY: DAY}

    def __init__(self, out: str, about: Json) -> None:
        self._progress = ProgressFile(f"{out.rstrip('/')}/_export.json", {"format": "parquet", **about})

    def done(self, tag: str) -> int:
        return self._progress.done(tag)

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        self._progress.reached(done)


class DeltaDirectory:
    """A Delta table; a transaction of an application named after the store has the physical offset as its version."""

    partitions: Mapping[str, str] = {"topic": "topic", DAY: DAY}

    def __init__(self, out: str, about: Json) -> None:
        """Raises StoreReadError for a table of an export with other options."""
        require("mq spark export --format delta", "lake")
        from deltalake import DeltaTable

        self._out = out
        self._about = json.dumps(about)
        self._table: DeltaTable | None = None
        if DeltaTable.is_deltatable(out):
            self._table = DeltaTable(out)
            _check_same(out, self._table.metadata().description, self._about)

    def done(self, tag: str) -> int:
        return 0 if self._table is None else self._table.transaction_version(tag) or 0

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.transaction import AddAction

        if not files:
            return
        system, root = locate(self._out)
        added: list[AddAction] = []
        for one in files:
            written_ms = system.get_file_info(f"{root}/{one.path}").mtime_ns // 1_000_000
            values = {name: None if text == _NO_VALUE else text for name, text in one.partition.items()}
            added.append(
                AddAction(one.path, one.size_bytes, values, written_ms, True, json.dumps({"numRecords": one.rows}))
            )
        schema = (
            _schema_of(self._out, files[0]).append(pa.field("topic", pa.string())).append(pa.field(DAY, pa.date32()))
        )
        names = list(self.partitions)
        if self._table is None:
            self._table = DeltaTable.create(self._out, schema, partition_by=names, description=self._about)
        version = CommitProperties(app_transactions=[Transaction(tag_of(done.store), done.end)])
        self._table.create_write_transaction(list(added), "append", schema, names, commit_properties=version)
        self._table.update_incremental()


class IcebergDirectory:
    """Table `rocketmq.messages` of a catalog in `catalog.db`; a property of the table has the offset of each store."""

    partitions: Mapping[str, str] = {"topic_": "topic", "day_": DAY}
    _NAME = ("rocketmq", "messages")
    _ABOUT, _DONE = "rocketmq.export", "rocketmq.end."

    def __init__(self, out: str, about: Json) -> None:
        """Raises WrongOption, StoreReadError for a table of an export with other options."""
        require("mq spark export --format iceberg", "lake")
        from pyiceberg.catalog.sql import SqlCatalog

        if "://" in out:
            raise WrongOption("out", out, "the catalog of an Iceberg table is a file: a local directory is needed")
        system, self._root = locate(out)
        system.create_dir(self._root)
        self._about = json.dumps(about)
        self._catalog = SqlCatalog("rocketmq", uri=f"sqlite:///{self._root}/catalog.db", warehouse=self._root)
        self._catalog.create_namespace_if_not_exists(self._NAME[0])
        self._table: Table | None = None
        if self._catalog.table_exists(self._NAME):
            self._table = self._catalog.load_table(self._NAME)
            _check_same(out, self._table.properties.get(self._ABOUT), self._about)

    def done(self, tag: str) -> int:
        return 0 if self._table is None else int(self._table.properties.get(f"{self._DONE}{tag}", 0))

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        if not files:
            return
        if self._table is None:
            self._table = self._created(_schema_of(self._root, files[0]))
        with self._table.transaction() as change:
            change.add_files([f"{self._root}/{one.path}" for one in files])
            change.set_properties({f"{self._DONE}{tag_of(done.store)}": str(done.end)})

    def _created(self, schema: pa.Schema) -> Table:
        from pyiceberg.transforms import DayTransform

        table = self._catalog.create_table(
            self._NAME, schema, location=self._root, properties={self._ABOUT: self._about}
        )
        with table.update_spec() as spec:
            spec.add_identity("topic")
            spec.add_field("storeTimestamp", DayTransform(), DAY)
        return table


def _check_same(out: str, before: str | None, about: str) -> None:
    if before != about:
        raise StoreReadError(f"{out}: was begun with {before}, it cannot go on with {about}")


def _schema_of(out: str, file: Added) -> pa.Schema:
    system, root = locate(out)
    with system.open_input_file(f"{root}/{file.path}") as one:
        return pq.read_schema(one).remove_metadata()


TARGETS: dict[str, Callable[[str, Json], Target]] = {
    "parquet": ParquetDirectory,
    "iceberg": IcebergDirectory,
    "delta": DeltaDirectory,
}

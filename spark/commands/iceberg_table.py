"""An Iceberg table as the target of an export, by pyiceberg: in a catalog of its own, or in one that options name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from twisted_mq.extras import require
from twisted_mq.spark.commands.compaction import Compacted, Merge, Part, merges, write_merged
from twisted_mq.spark.commands.slices import Marks, Slice
from twisted_mq.spark.commands.targets import DAY, Added, ExportPlace, schema_of
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.source.marks import parse_mark

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_CATALOG = "rocketmq"
"""Name of the catalog, unless the properties have one: `name`."""


class IcebergDirectory:
    """A table whose files are in the directory; a table property has the mark of each store."""

    partitions: Mapping[str, str] = {"topic_": "topic", "day_": DAY}
    _ABOUT, _DONE = "rocketmq.export", "rocketmq.end."

    def __init__(self, place: ExportPlace) -> None:
        """Raises WrongOption, StoreReadError for a table of an export with other options."""
        require("mq spark export --format iceberg", "lake")
        self._place = place
        self._catalog = _catalog(place)
        self._system, self._root = locate(place.out)
        self._uri = place.out.rstrip("/") if "://" in place.out else self._root
        self._system.create_dir(self._root)
        name = tuple(place.table.split("."))
        if len(name) < 2:
            raise WrongOption("table", place.table, "a name has a namespace: rocketmq.messages")
        self._name = name
        self._catalog.create_namespace_if_not_exists(name[:-1])
        self._table: Table | None = None
        if self._catalog.table_exists(name):
            self._table = self._catalog.load_table(name)
            place.check_same(self._table.properties.get(self._ABOUT))

    def done(self, tags: Iterable[str]) -> Marks:
        if self._table is None:
            return {}
        kept = self._table.properties
        return {
            name.removeprefix(self._DONE): parse_mark(json.loads(kept[name]))
            for name in kept
            if name.startswith(self._DONE)
        }

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        if not files:
            return
        schema = schema_of(self._place.out, files[0])
        table = self._table = self._created(schema) if self._table is None else self._table
        if not set(schema.names) <= set(table.schema().column_names):
            with table.update_schema() as update:
                update.union_by_name(schema)
        with table.transaction() as change:
            change.add_files([f"{self._uri}/{one.path}" for one in files])
            progress = {f"{self._DONE}{done.key}": json.dumps(done.mark.as_json())}
            change.set_properties({self._ABOUT: self._place.said, **progress})

    def compact(self, file_bytes: int) -> Compacted:
        if self._table is None:
            return Compacted()
        files = {self._below(task.file): task.file for task in self._table.scan().plan_files()}
        parts = [Part(path, file.file_size_in_bytes) for path, file in files.items()]
        found = list(merges(parts, file_bytes))
        for merge in found:
            self._replace(self._table, merge, [files[part.path] for part in merge.parts])
        return Compacted(sum(len(merge.parts) for merge in found), len(found))

    def _below(self, file: DataFile) -> str:
        """Return the path of a file below the table's directory."""
        return file.file_path.removeprefix(f"{self._uri}/")

    def _replace(self, table: Table, merge: Merge, files: Sequence[DataFile]) -> None:
        """Commit a merged file in place of its parts. The parts stay for readers of older snapshots."""
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        written = write_merged(self._system, self._root, merge)
        self._system.move(written, f"{self._root}/{merge.path}")
        with table.transaction() as change, change.update_snapshot().overwrite() as swap:
            for file in files:
                swap.delete_data_file(file)
            swap.append_data_file(parquet_file_to_data_file(table.io, table.metadata, f"{self._uri}/{merge.path}"))

    def _created(self, schema: pa.Schema) -> Table:
        from pyiceberg.transforms import DayTransform

        table = self._catalog.create_table(
            self._name, schema, location=self._uri, properties={self._ABOUT: self._place.said}
        )
        with table.update_spec() as spec:
            spec.add_identity("topic")
            spec.add_field("storeTimestamp", DayTransform(), DAY)
        return table


def _catalog(place: ExportPlace) -> Catalog:
    """Return the catalog. Raises WrongOption for an own one that is not in a local directory, or unknown properties."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.catalog.sql import SqlCatalog

    if place.catalog:
        try:
            return load_catalog(**{"name": _CATALOG, **place.catalog})
        except (ValueError, ImportError) as error:
            raise WrongOption("catalog", ", ".join(sorted(place.catalog)), str(error)) from error
    if "://" in place.out:
        raise WrongOption(
            "out", place.out, "the catalog of an Iceberg table is a file: use a local directory, or --catalog"
        )
    system, root = locate(place.out)
    system.create_dir(root)
    return SqlCatalog(_CATALOG, uri=f"sqlite:///{root}/catalog.db", warehouse=root)

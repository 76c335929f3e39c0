"""Messages as Parquet files by topic and day, in a plain directory, an Iceberg or a Delta table.

Each row keeps its store, log file and physical offset. Slices are written beside the table and then made part of it: in a
directory by moving their files, in a table by one commit that also stores the progress. A killed export continues there: files of
an unfinished slice are deleted and written again, so nothing is missing and nothing is repeated.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from urllib.parse import unquote

import attrs
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.commands.alone import alone
from twisted_mq.spark.commands.compaction import FOLDER, Compacted
from twisted_mq.spark.commands.file_plan import MEASURED, measured, planned, spread
from twisted_mq.spark.commands.formats import TARGETS
from twisted_mq.spark.commands.slices import Slice, gathered, lost_figures, tag_of, work
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.commands.targets import DAY, MESSAGES, Added, ExportPlace, Target
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, Table, bars
from twisted_mq.spark.jobs.topics import is_brokers

log = logging.getLogger(__name__)
COLUMNS = tuple(name for name in COLUMN_NAMES if name != "crcOk")
_STAGING = "_staging"
_KINDS: Kinds = {"topic": Kind.TEXT, "day": Kind.TEXT, "messages": Kind.COUNT, "bytes": Kind.BYTES}
_MICROSECONDS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Type of times in files; other readers have no statistics for Spark's default type."""
_FILE_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
"""Approximate size of the rows in a task, for slices without a plan; each topic's day has one file there."""
_SMALL_SLICE = 16
"""A slice needs no plan if a file is at least so many times as large."""
FILE_BYTES = 256 << 20
STORES_AT_ONCE = 4
"""Number of stores whose slices are written at once; the files of one slice are always written at once."""


@attrs.frozen
class ExportSelection:
    """Selection for an export; without topics all except system topics."""

    topics: tuple[str, ...] = ()
    columns: tuple[str, ...] = COLUMNS
    fail_on_data_loss: bool = True
    slice_bytes: int = 0
    """Bytes of log files of a store that are added in one step; 0: one log file."""
    file_bytes: int = FILE_BYTES
    """Approximate largest size of a file: of written ones before compression, of merged ones after it."""
    compact: bool = False
    """True: merge small files of a topic's day after the export."""
    catalog: Mapping[str, str] = attrs.field(factory=dict)
    """For Iceberg: properties of the catalog; empty for one in the directory."""
    table: str = MESSAGES
    """For Iceberg: name of the table in the catalog."""


def export(
    stores: Stores,
    limit: int,
    out: str,
    format: str,
    wanted: ExportSelection,
    advance: Callable[[int], None] = lambda size: None,
) -> Findings:
    """Add the messages that are missing in `out`. Calls `advance` with the number of finished bytes.

    Raises DataLost if the logs no longer have requested data, or are not the logs of the previous run, and StoreReadError if
    another export writes there.
    """
    with alone(out):
        about = {"columns": list(wanted.columns), "topics": sorted(wanted.topics)}
        target = TARGETS[format](ExportPlace(out, about, wanted.catalog, wanted.table))
        done = _Done()
        left = work(stores, target.done(map(tag_of, stores.ends)), wanted.fail_on_data_loss)
        slices = list(gathered(left.slices, wanted.slice_bytes))
        _delete_leftovers(out, slices)
        with _settings(stores.session, wanted):
            _export_stores(slices, lambda piece: _export_slice(stores, piece, out, target, wanted, done, advance))
        compacted = target.compact(wanted.file_bytes) if wanted.compact else Compacted()
    rows = tuple((*place, done.messages[place], done.bytes[place]) for place in sorted(done.messages))
    table = Table("Exported", _KINDS, rows[:limit], len(rows))
    figures = (
        Figure("messages", sum(done.messages.values())),
        Figure("files", done.files),
        Figure("bytes of files", sum(done.bytes.values()), Kind.BYTES),
        *lost_figures(left),
        *((Figure("small files merged", compacted.merged), Figure("into", compacted.made)) if wanted.compact else ()),
    )
    return Findings(
        "export", figures, (table,), (bars("Messages exported", table, "topic", "messages"),) if rows else ()
    )


@attrs.define
class _Done:
    """Messages and bytes that an export added, by topic and day. The lock lets one slice at a time become part of the table."""

    run: str = attrs.field(factory=lambda: uuid.uuid4().hex)
    """Name of this run's folder for what Spark writes: the Java of a killed run may still write to the folder of that run."""

    messages: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    bytes: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    files: int = 0
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    def count(self, files: Iterable[Added]) -> None:
        for added in files:
            self.messages[added.place] += added.rows
            self.bytes[added.place] += added.size_bytes
            self.files += 1


def _export_stores(slices: Iterable[Slice], export_slice: Callable[[Slice], None]) -> None:
    """Export the slices of each store in their order, those of several stores at once. After an error no slice is begun."""
    stores = [list(pieces) for _, pieces in itertools.groupby(slices, key=lambda piece: piece.key)]
    failed = threading.Event()

    def export_store(pieces: Sequence[Slice]) -> None:
        for piece in pieces:
            if failed.is_set():
                return
            try:
                export_slice(piece)
            except BaseException:
                failed.set()
                raise

    with ThreadPoolExecutor(STORES_AT_ONCE) as threads:
        for future in as_completed([threads.submit(export_store, pieces) for pieces in stores]):
            future.result()


@contextlib.contextmanager
def _settings(session: SparkSession, wanted: ExportSelection) -> Iterator[None]:
    """Set Spark's configuration for writing, and restore it afterwards."""
    said = dict([_MICROSECONDS, (_FILE_SIZE, str(wanted.file_bytes))])
    before = {name: session.conf.get(name, None) for name in said}
    for name, value in said.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            session.conf.unset(name) if old is None else session.conf.set(name, old)


def _export_slice(
    stores: Stores,
    piece: Slice,
    out: str,
    target: Target,
    wanted: ExportSelection,
    done: _Done,
    advance: Callable[[int], None],
) -> None:
    """Write one slice and make it a part of the table."""
    system, root = locate(out)
    staging = f"{_STAGING}/{done.run}/{piece.key}"
    rows, most_rows = _in_tasks(stores, piece, wanted)
    rows = rows.withColumns({name: F.col(of) for name, of in target.partitions.items()})
    unwanted = {DAY, "physicalOffset"} - {*target.partitions, *wanted.columns}
    order = [name for name in ("physicalOffset", "queueOffset") if name in rows.columns]
    by_folder = rows.sortWithinPartitions(*target.partitions, *order).drop(*unwanted)
    writer = by_folder.write.partitionBy(*target.partitions).option("maxRecordsPerFile", most_rows)
    writer.parquet(f"{out.rstrip('/')}/{staging}")
    added = _moved(system, root, staging, _prefix(piece.key, piece.begin))
    with done.lock:
        target.add(piece, added)
        done.count(added)
        advance(piece.end - piece.begin)
    system.delete_dir(f"{root}/{staging}")


def _in_tasks(stores: Stores, piece: Slice, wanted: ExportSelection) -> tuple[DataFrame, int]:
    """Return the rows in the tasks that write them, and the most rows of a file; 0: no limit.

    A slice that is much smaller than a file needs no plan: Spark writes a file of each topic's day.
    """
    rows = _rows(stores, piece, wanted, (*wanted.columns, "physicalOffset"))
    if (piece.end - piece.begin) * _SMALL_SLICE > wanted.file_bytes:
        tasks = int(stores.session.conf.get("spark.sql.shuffle.partitions") or 1)
        plan = planned(measured(_rows(stores, piece, wanted, MEASURED)), wanted.file_bytes, tasks)
        if plan.placed:
            return spread(rows, plan), plan.most_rows
    return rows.hint("rebalance", "topic", DAY), 0


def _rows(stores: Stores, piece: Slice, wanted: ExportSelection, columns: Iterable[str]) -> DataFrame:
    """Return these columns of the selected messages, topic, storeTimestamp and DAY."""
    of_one = attrs.evolve(stores, ends={piece.store: piece.end})
    chosen = {"topic": ",".join(wanted.topics)} if wanted.topics else {}
    names = dict.fromkeys((*columns, "topic", "storeTimestamp"))
    loss = {} if wanted.fail_on_data_loss else {"failOnDataLoss": "false"}
    messages = of_one.messages(names, {piece.store: piece.begin}, **chosen, **loss)
    if not wanted.topics:
        messages = messages.where(~is_brokers(F.col("topic")))
    return messages.withColumn(DAY, F.to_date("storeTimestamp"))


def _prefix(key: str, begin: int) -> str:
    """Return the prefix of the names of a slice's files."""
    return f"{key}-{begin:020d}-"


def _delete_leftovers(out: str, left: Sequence[Slice]) -> None:
    """Delete the files that a killed export wrote for the next slice."""
    system, root = locate(out)
    begun = {piece.store: _prefix(piece.key, piece.begin) for piece in reversed(left)}
    for info in system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True)):
        if info.type == fs.FileType.File and info.base_name.startswith(tuple(begun.values())):
            system.delete_file(info.path)
    _delete_folder(system, f"{root}/{FOLDER}")
    try:
        _delete_folder(system, f"{root}/{_STAGING}")
    except OSError as error:  # tasks of a killed export may still write there
        log.warning("files of a killed export stay for the next one to delete: %s", error)


def _delete_folder(system: fs.FileSystem, path: str) -> None:
    if system.get_file_info(path).type == fs.FileType.Directory:
        system.delete_dir(path)


def _moved(system: fs.FileSystem, root: str, folder_of_spark: str, prefix: str) -> list[Added]:
    """Move the files that Spark wrote to their place."""
    staging = f"{root}/{folder_of_spark}/"
    found = system.get_file_info(fs.FileSelector(staging, recursive=True))
    files = sorted(info.path for info in found if info.type == fs.FileType.File and info.extension == "parquet")
    added = []
    for number, path in enumerate(files):
        folder = path.rpartition("/")[0].removeprefix(staging)
        place = f"{folder}/{prefix}{number:05d}.parquet"
        with system.open_input_file(path) as file:
            rows = pq.read_metadata(file).num_rows
        system.create_dir(f"{root}/{folder}")
        system.move(path, f"{root}/{place}")
        partition = dict(part.split("=", 1) for part in folder.split("/"))
        values = {name: unquote(value) for name, value in partition.items()}
        added.append(Added(place, system.get_file_info(f"{root}/{place}").size, rows, values))
    return added

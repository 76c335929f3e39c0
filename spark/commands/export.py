"""Messages as Parquet files by topic and day, in a plain directory, an Iceberg or a Delta table.

Each row keeps its store, log file and physical offset. Slices are written beside the table and then made part of it: in a
directory by moving their files, in a table by one commit that also stores the progress. A killed export continues there: files of
an unfinished slice are deleted and written again, so nothing is missing and nothing is repeated.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

import attrs
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.commands.slices import Slice, gathered, lost_figures, tag_of, work
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.commands.targets import DAY, TARGETS, Added, Target
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, Table, bars
from twisted_mq.spark.jobs.topics import is_brokers

COLUMNS = tuple(name for name in COLUMN_NAMES if name != "crcOk")
_STAGING = "_staging"
_KINDS: Kinds = {"topic": Kind.TEXT, "day": Kind.TEXT, "messages": Kind.COUNT, "bytes": Kind.BYTES}
_MICROSECONDS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Type of times in files; other readers have no statistics for Spark's default type."""
_FILE_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
"""Approximate size of the rows of one topic and day in a task; small topics share a task, and each has one file."""


FILE_BYTES = 256 << 20


@attrs.frozen
class Wanted:
    """Selection for an export; without topics all except system topics."""

    topics: tuple[str, ...] = ()
    columns: tuple[str, ...] = COLUMNS
    fail_on_data_loss: bool = True
    slice_bytes: int = 0
    """Bytes of log files of a store that are added in one step; 0: one log file."""
    file_bytes: int = FILE_BYTES
    """Approximate largest size of a file, before compression."""


def export(
    stores: Stores,
    limit: int,
    out: str,
    format: str,
    wanted: Wanted,
    advance: Callable[[int], None] = lambda size: None,
) -> Findings:
    """Add the messages that are missing in `out`. Calls `advance` with the number of finished bytes.

    Raises DataLost if the logs no longer have requested data, or are not the logs of the previous run.
    """
    target = TARGETS[format](out, {"columns": list(wanted.columns), "topics": sorted(wanted.topics)})
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    left = work(stores, target.done(map(tag_of, stores.ends)), wanted.fail_on_data_loss)
    slices = list(gathered(left.slices, wanted.slice_bytes))
    _delete_leftovers(out, slices)
    with _settings(stores.session, wanted):
        for piece in slices:
            for added in _exported(stores, piece, out, target, wanted):
                place = added.place
                counts[place] += added.rows
                sizes[place] += added.size_bytes
            advance(piece.end - piece.begin)
    rows = tuple((*place, counts[place], sizes[place]) for place in sorted(counts))
    table = Table("Exported", _KINDS, rows[:limit], len(rows))
    figures = (
        Figure("messages", sum(counts.values())),
        Figure("bytes of files", sum(sizes.values()), Kind.BYTES),
        *lost_figures(left),
    )
    return Findings(
        "export", figures, (table,), (bars("Messages exported", table, "topic", "messages"),) if rows else ()
    )


@contextlib.contextmanager
def _settings(session: SparkSession, wanted: Wanted) -> Iterator[None]:
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


def _exported(stores: Stores, piece: Slice, out: str, target: Target, wanted: Wanted) -> Sequence[Added]:
    """Write one slice and make it a part of the table."""
    system, root = locate(out)
    prefix = _prefix(piece.key, piece.begin)
    staging = f"{out.rstrip('/')}/{_STAGING}"
    rows = _rows(stores, piece, wanted).withColumns({name: F.col(of) for name, of in target.partitions.items()})
    if DAY not in target.partitions:
        rows = rows.drop(DAY)
    folders = [F.col(name) for name in target.partitions]
    order = [name for name in ("physicalOffset", "queueOffset") if name in rows.columns]
    by_folder = rows.hint("rebalance", *folders).sortWithinPartitions(*folders, *order)
    by_folder.write.partitionBy(*target.partitions).parquet(staging)
    added = _moved(system, root, prefix)
    target.add(piece, added)
    system.delete_dir(f"{root}/{_STAGING}")
    return added


def _rows(stores: Stores, piece: Slice, wanted: Wanted) -> DataFrame:
    """Return the selected columns, and DAY."""
    of_one = attrs.evolve(stores, ends={piece.store: piece.end})
    chosen = {"topic": ",".join(wanted.topics)} if wanted.topics else {}
    names = dict.fromkeys((*wanted.columns, "topic", "storeTimestamp"))
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
    if system.get_file_info(f"{root}/{_STAGING}").type == fs.FileType.Directory:
        system.delete_dir(f"{root}/{_STAGING}")


def _moved(system: fs.FileSystem, root: str, prefix: str) -> list[Added]:
    """Move the files that Spark wrote to their place."""
    staging = f"{root}/{_STAGING}/"
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

"""The files of a store beside its log: entries of fixed size from their declarations, and the configuration's JSON."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import construct
import numpy as np
import pyarrow as pa

from twisted_mq.protocol.columns import Entries, Positions
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.layouts.derive import derive_dtype, field_table
from twisted_mq.protocol.layouts.ha import HEADER_BYTES, TRANSFER_HEADER, TransferDecoder
from twisted_mq.protocol.layouts.index import HEADER, INDEX_ENTRY
from twisted_mq.protocol.layouts.index_columns import entries_in
from twisted_mq.protocol.layouts.queue_entry import BATCH_QUEUE_ENTRY, QUEUE_ENTRY
from twisted_mq.protocol.layouts.timer import LOG_UNIT_BYTES, TIMER_LOG_UNIT
from twisted_mq.protocol.text.fastjson import dumps, loads
from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.tables.layout_columns import camel_case, entry_columns, spark_type
from twisted_mq.storage.files.files_at_rest import files_in
from twisted_mq.storage.files.paths import StorePaths, file_offset
from twisted_mq.storage.tools.index_tools import sizes_of


def _declared(layout: construct.Struct) -> dict[str, str]:
    """Return the columns of a declaration, with the names of columns of stores."""
    return {camel_case(field.name): spark_type(field) for field in field_table(layout)}


Columns = dict[str, pa.Array]

QUEUE_COLUMNS = {"topic": "string", "queueId": "int", "queueOffset": "bigint", **_declared(QUEUE_ENTRY)}
BATCH_QUEUE_COLUMNS = {"topic": "string", "queueId": "int", **_declared(BATCH_QUEUE_ENTRY)}
INDEX_COLUMNS = {"file": "string", "entry": "int", **_declared(INDEX_ENTRY), "storeTime": "bigint"}
TIMER_COLUMNS = {"file": "string", "position": "bigint", **_declared(TIMER_LOG_UNIT)}
TRANSFER_COLUMNS = {"file": "string", "position": "bigint", **_declared(TRANSFER_HEADER), "body": "binary"}
CONFIG_COLUMNS = {"file": "string", "section": "string", "key": "string", "value": "string"}


def queue_files(store: str) -> list[str]:
    """Return the files of consume queues."""
    paths = StorePaths(store)
    return [file.path for key in paths.queue_directories() for file in files_in(paths.queue(*key))]


def queue_entries(path: str) -> Iterator[Columns]:
    """Return the written entries; offsets are counted from the queue's begin."""
    entries, written, place = _queue(path, QUEUE_ENTRY)
    first = (file_offset(os.path.basename(path)) or 0) // entries.dtype.itemsize
    yield {**place, "queueOffset": pa.array(first + written), **entry_columns(entries[written])}


def batch_queue_files(store: str) -> list[str]:
    """Return the files of the queues whose entries point to batches."""
    paths = StorePaths(store)
    return [file.path for key in paths.batch_queue_directories() for file in files_in(paths.batch_queue(*key))]


def batch_queue_entries(path: str) -> Iterator[Columns]:
    """Return the written entries."""
    entries, written, place = _queue(path, BATCH_QUEUE_ENTRY)
    yield {**place, **entry_columns(entries[written])}


def _queue(path: str, layout: construct.Struct) -> tuple[Entries, Positions, Columns]:
    """Return all entries of a queue's file, the positions of written ones, and their queue as columns."""
    topic_folder, queue_id = os.path.split(os.path.dirname(path))
    entries = np.fromfile(path, derive_dtype(layout))
    written = np.flatnonzero(entries["size"] > 0)
    topics = _repeated(os.path.basename(topic_folder), len(written))
    return entries, written, {"topic": topics, "queueId": pa.array(np.full(len(written), int(queue_id), np.int32))}


def index_files(store: str) -> list[str]:
    """Return the files of the index, the oldest first."""
    return _in_folder(StorePaths(store).index)


def index_entries(path: str) -> Iterator[Columns]:
    """Return the used entries, with their store time in ms; none of a file with an unknown number of slots."""
    sizes = sizes_of(path, None)
    if sizes is None:
        return
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    begin, count = HEADER.unpack_from(data)[0], HEADER.unpack_from(data)[-1]
    entries = entries_in(data, sizes, 1, count - 1)
    yield {
        "file": _repeated(path, len(entries)),
        "entry": pa.array(np.arange(1, count, dtype=np.int32)),
        **entry_columns(entries),
        "storeTime": pa.array(begin + entries["time_diff_seconds"].astype(np.int64) * 1000),
    }


def timer_files(store: str) -> list[str]:
    """Return the files of the timer log."""
    return [file.path for file in files_in(os.path.join(store, "timerlog"))]


def timer_units(path: str) -> Iterator[Columns]:
    """Return the messages that waited, one per unit, without blanks and unwritten units."""
    data = np.fromfile(path, np.uint8)
    units = data[: len(data) - len(data) % LOG_UNIT_BYTES].view(derive_dtype(TIMER_LOG_UNIT))
    written = np.flatnonzero(units["size"] == LOG_UNIT_BYTES)
    yield {
        "file": _repeated(path, len(written)),
        "position": pa.array((file_offset(os.path.basename(path)) or 0) + written * LOG_UNIT_BYTES),
        **entry_columns(units[written]),
    }


def transfer_files(path: str) -> list[str]:
    """Return the files of recorded streams from masters to slaves."""
    return [name for name in _in_folder(path) if name.endswith(".m2s")] if os.path.isdir(path) else [path]


def transfers(path: str) -> Iterator[Columns]:
    """Return the pieces of a master's log; one without bytes is a heartbeat."""
    with open(path, "rb") as file:
        data = file.read()
    found = list(TransferDecoder().receive_data(data))
    sizes = [len(one.data) for one in found]
    begins = np.cumsum([0, *(size + HEADER_BYTES for size in sizes)])[:-1]
    yield {
        "file": _repeated(path, len(found)),
        "position": pa.array(begins, pa.int64()),
        "physicalOffset": pa.array([one.physical_offset for one in found], pa.int64()),
        "size": pa.array(sizes, pa.int32()),
        "body": pa.array([bytes(one.data) for one in found], pa.binary()),
    }


def config_files(store: str) -> list[str]:
    """Return the files of a broker's configuration."""
    return [path for path in _in_folder(StorePaths(store).config) if path.endswith(".json")]


def config_entries(path: str) -> Iterator[Columns]:
    """Return each entry of each section, with its value as JSON; a section that is not a table is one entry without a key.

    Raises StoreReadError for a file that is not JSON.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        sections = loads(data)
    except BodyError as error:
        raise StoreReadError(f"{path}: {error}") from error
    rows = [
        (path, section, key, dumps(value, True).decode())
        for section, entries in (sections.items() if isinstance(sections, dict) else ())
        for key, value in (entries.items() if isinstance(entries, dict) else ((None, entries),))
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(CONFIG_COLUMNS)
    yield {
        name: pa.array([text if text is None else str(text) for text in column], pa.string())
        for name, column in zip(CONFIG_COLUMNS, columns, strict=True)
    }


def _in_folder(folder: str) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_file()) if os.path.isdir(folder) else []


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)

"""Topics read with their consume queues: only the records of their entries are read, independent of the size of the log.

A queue has the records that its broker has dispatched. They are dispatched in the order of the log, so all records before the
last one in any queue are in the queues. The few records after it are searched in the log itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import attrs
import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import InputPartition

from twisted_mq.protocol.columns import Entries, Mask, Numbers, Positions
from twisted_mq.protocol.layouts.derive import derive_dtype
from twisted_mq.protocol.layouts.queue_entry import BATCH_QUEUE_ENTRY, FILLER_SIZE, QUEUE_ENTRY
from twisted_mq.protocol.layouts.record import SMALLEST_RECORD
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.spark.errors import LogFileGone, WrongOption
from twisted_mq.spark.file_systems import is_remote, locate
from twisted_mq.spark.source.log_stretch import WINDOW_BYTES, Damage, Missing, gone
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.ranges import READS_AT_ONCE, first_ranges, ranges, read_all
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import LogFile, Store, directories_in, files_below, files_in
from twisted_mq.storage.columns.record_columns import RecordColumns, intact_records
from twisted_mq.storage.files.mapped_log import LogBytes
from twisted_mq.storage.files.paths import StorePaths, is_topic_name, queue_id_of

SMALLEST_TAGS_CODE = -(1 << 31)
"""Least code of tags; lower ones are addresses in a queue's extension."""
_QUEUES_ASKED = 8
_MOST_ROWS = WINDOW_BYTES // SMALLEST_RECORD
_MOST_FAR_ROWS = 8192
"""Number of records that are read together if reads are requests to another machine."""
_ENTRIES_A_REQUEST = 3276
"""64 KiB: bytes that a search in a queue file reads at a time there."""
ENTRIES_A_TASK = 1 << 18


@attrs.frozen
class Layout:
    """A kind of queues: its directory in the store, and its entries."""

    directory: str
    entry: np.dtype[np.void]
    messages: str | None = None
    """Field with the number of messages in the record; None: each record is one."""


LAYOUTS = (
    Layout(StorePaths("").consume_queues, derive_dtype(QUEUE_ENTRY)),
    Layout(StorePaths("").batch_consume_queues, derive_dtype(BATCH_QUEUE_ENTRY), "batch_num"),
)


@attrs.frozen
class QueuePart:
    """Some entries of one queue file; those that point into `log` and have one of these codes are read."""

    log: StoreRange
    layout: Layout
    path: str
    begin: int
    end: int
    codes: tuple[int, ...] = ()


class QueueSplit(InputPartition):
    """Part of queues that one task reads."""

    def __init__(self, part: QueuePart) -> None:
        super().__init__(part)
        self.part = part


def plan_queues(log: StoreRange, selection: MessageConditions) -> tuple[list[QueueSplit], StoreRange]:
    """Return the splits of the selected queues, and the rest of the log that is read directly. Raises WrongOption."""
    if not selection.names_topics:
        raise WrongOption("through", "queues", "topics are needed: set topic or topicPattern")
    kinds = [layout for layout in LAYOUTS if directories_in(log.store, layout.directory)]
    if not kinds and log.size_bytes:
        raise WrongOption("through", "queues", f"{log.store.name} has no consume queues; read it through=log")
    dispatched = min(log.end, max((_last_named(log.store, layout) for layout in kinds), default=log.begin))
    codes = () if selection.wants_topic(SCHEDULE_TOPIC) else tuple(map(tags_code, selection.tags))
    led = attrs.evolve(log, end=max(log.begin, dispatched))
    splits = [
        QueueSplit(QueuePart(led, layout, file.path, begin, min(begin + ENTRIES_A_TASK, count), codes))
        for layout in kinds
        for file in _wanted_files(log.store, layout, selection)
        for count in (file.size // layout.entry.itemsize,)
        for begin in range(0, count, ENTRIES_A_TASK)
    ]
    return splits, attrs.evolve(log, begin=led.end)


def _wanted_files(store: Store, layout: Layout, selection: MessageConditions) -> Iterator[LogFile]:
    """Return the files of the queues of selected topics."""
    _, root = locate(store.uri)
    for topic in directories_in(store, layout.directory):
        if is_topic_name(topic) and selection.wants_topic(topic):
            for name in directories_in(store, layout.directory, topic):
                queue_id = queue_id_of(name)
                if queue_id is not None and (not selection.queue_ids or queue_id in selection.queue_ids):
                    yield from files_in(store, f"{root}/{layout.directory}/{topic}/{name}")


def _last_named(store: Store, layout: Layout) -> int:
    """Return the highest physical offset in the queues written last; 0 without any."""
    files = sorted(files_below(store, layout.directory), key=lambda info: info.mtime_ns or 0)
    with ThreadPoolExecutor(READS_AT_ONCE) as threads:
        return max(threads.map(lambda info: _last_entry(store, info, layout), files[-_QUEUES_ASKED:]), default=0)


def _last_entry(store: Store, info: fs.FileInfo, layout: Layout) -> int:
    """Return the physical offset of the last written entry of a queue file; 0 without one. Entries are written in order."""
    step, count = (_ENTRIES_A_REQUEST if is_remote(store.uri) else 1), info.size // layout.entry.itemsize
    low, high = 0, -(-count // step)
    last = None
    with locate(store.uri)[0].open_input_file(info.path) as file:
        while low < high:
            middle = (low + high) // 2
            written = entries_at(file, layout, middle * step, min(step, count - middle * step))
            written = written[: np.count_nonzero(written["size"])]
            last = written[-1] if len(written) else last
            low, high = (middle + 1, high) if len(written) == step else (low, high if len(written) else middle)
            if 0 < len(written) < step:
                break
    return 0 if last is None or last["size"] == FILLER_SIZE else int(last["physical_offset"])


def entries_at(file: pa.NativeFile, layout: Layout, begin: int, count: int) -> Entries:
    size = layout.entry.itemsize
    return np.frombuffer(file.read_at(count * size, begin * size), layout.entry)


def read_queue(part: QueuePart) -> Iterator[RecordColumns | Damage | Missing]:
    """Yield the records of the entries, in the queue's order."""
    try:
        with locate(part.log.store.uri)[0].open_input_file(part.path) as file:
            entries = entries_at(file, part.layout, part.begin, part.end - part.begin)
    except FileNotFoundError:
        yield gone(part.log.store, part.path, part.log.begin, part.log.end)
        return
    offsets, sizes = _followed(part, entries)
    for one, begin, end in part.log.pieces():
        inside = slice(*np.searchsorted(offsets, (begin, end)).tolist())
        if inside.start < inside.stop:
            try:
                log = OpenLog(part.log.store, one, part.log.log_end)
            except LogFileGone:
                yield gone(part.log.store, one.path, begin, end)
                continue
            yield from records_of(log, offsets[inside] - one.first_offset, sizes[inside])


def count_entries(part: QueuePart) -> int:
    """Return the number of messages of the entries that point into the log's files. The log is not read.

    Tags are not compared. Raises FileNotFoundError.
    """
    with locate(part.log.store.uri)[0].open_input_file(part.path) as file:
        entries = entries_at(file, part.layout, part.begin, part.end - part.begin)
    offsets, sizes = entries["physical_offset"].astype(np.int64), entries["size"].astype(np.int64)
    kept = _is_followed(part, offsets, sizes)
    order = np.argsort(offsets[kept], kind="stable")
    counts = entries[part.layout.messages][kept][order] if part.layout.messages else np.ones(len(order), np.int64)
    before = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    bounds = np.array([(begin, end) for _, begin, end in part.log.pieces()], np.int64).reshape(-1, 2)
    begins, ends = np.searchsorted(offsets[kept][order], bounds.T)
    return int((before[ends] - before[begins]).sum())


def _is_followed(part: QueuePart, offsets: Positions, sizes: Numbers) -> Mask:
    found: Mask = (sizes > 0) & (sizes != FILLER_SIZE) & (offsets >= part.log.begin) & (offsets < part.log.end)
    return found


def _followed(part: QueuePart, entries: Entries) -> tuple[Positions, Numbers]:
    """Return (physical offsets, sizes) of the entries to read, ascending."""
    offsets, sizes = entries["physical_offset"].astype(np.int64), entries["size"].astype(np.int64)
    kept = _is_followed(part, offsets, sizes)
    if part.codes:
        codes = entries["tags_code"].astype(np.int64)
        kept &= np.isin(codes, part.codes) | (codes < SMALLEST_TAGS_CODE)
    order = np.argsort(offsets[kept], kind="stable")
    return offsets[kept][order], sizes[kept][order]


def records_of(log: OpenLog, positions: Positions, sizes: Numbers) -> Iterator[RecordColumns | Damage]:
    """Yield the records at these positions; other bytes there are damage."""
    begin = 0
    while begin < len(positions):
        most = _MOST_ROWS if log.gathering.bytes_at_once is None else _MOST_FAR_ROWS
        room = np.searchsorted(np.cumsum(sizes[begin : begin + most]), WINDOW_BYTES)
        end = begin + max(1, int(room))
        data, starts = _gathered(log, positions[begin:end], sizes[begin:end])
        end = begin + len(starts)
        records = intact_records(data, starts, in_place=False)
        right = records.numbers("physical_offset") == log.first_offset + positions[begin : begin + len(records)]
        count = len(records) if right.all() else int(right.argmin())
        if count:
            yield records if count == len(records) else records.rows(slice(count))
        begin += count
        if begin < end:
            position, size = int(positions[begin]), int(sizes[begin])
            reason = log.window(position, size).fault_at(0)
            yield Damage(data.name, log.first_offset + position, size, f"a queue entry points here: {reason}")
            begin += 1


def _gathered(log: OpenLog, positions: Positions, sizes: Numbers) -> tuple[LogBytes, Positions]:
    """Return the bytes of the first of these records, near ones read together, and their positions in the bytes."""
    gathering = log.gathering
    chosen = first_ranges(ranges(positions, sizes, gathering), positions, sizes, gathering)
    begins = np.array([positions[one.start] for one in chosen], np.int64)
    lengths = np.array([positions[one.stop - 1] + sizes[one.stop - 1] for one in chosen], np.int64) - begins
    data = b"".join(read_all(log.read_only, list(zip(begins.tolist(), lengths.tolist(), strict=True)), gathering))
    moved = np.cumsum(lengths) - lengths - begins
    starts = positions[: chosen[-1].stop] + np.repeat(moved, [one.stop - one.start for one in chosen])
    return LogBytes(data, log.path, log.first_offset), starts

"""Live queues from the files of stores of brokers, slaves, or copies; only the rest is asked from brokers.

Messages are found with consume queues, whose entries have the positions of the queue's offsets. The bytes at an entry must be a
record with this place and this offset. If they are not, or if a file or store is deleted, the stretch is read from the next store
of the broker, and finally from the broker. Queues of batches are read from brokers too.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.columns import Entries, Mask, Numbers
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, FILLER_SIZE
from twisted_mq.protocol.layouts.record import HEAD_BYTES, SMALLEST_RECORD, read_store_timestamp
from twisted_mq.protocol.messages.subscription import split_tags
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.spark.columns.makers import Origin
from twisted_mq.spark.errors import LogFileGone, NoCommitLog
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.live.held import HeldRecords
from twisted_mq.spark.live.message_sizes import SAMPLE_MESSAGES
from twisted_mq.spark.live.pulling import PullSelection, Stretch
from twisted_mq.spark.source.log_stretch import Damage
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.queue_reads import ENTRIES_A_TASK, LAYOUTS, SMALLEST_TAGS_CODE, entries_at, records_of
from twisted_mq.spark.source.stores import LogFile, Store, files_in, list_log_files, log_directory
from twisted_mq.storage.columns.record_columns import RecordColumns

_SIMPLE = LAYOUTS[0]

Piece = RecordColumns | Stretch
IsBefore = Callable[[int], bool]
"""Function that returns True if the record at a physical offset is before the searched one."""


@attrs.frozen
class HeldQueues:
    """Stores, each with the name of its broker; several stores of one broker are searched one after the other."""

    stores: tuple[Store, ...]

    def check(self) -> None:
        """Check the stores. Raises NoCommitLog if one is missing."""
        for store in self.stores:
            log_directory(store)

    def first_offset(self, queue: MessageQueue) -> int | None:
        """Return the offset of the first message of a queue; None if no store has one."""
        return self._least(queue, lambda store, files: lambda place: place < files[0].first_offset)

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int | None:
        """Return the offset of the first message stored at that time or later; None if no store has one."""
        return self._least(queue, lambda store, files: lambda place: _stored(store, files, place) < timestamp_ms)

    def mean_size(self, queue: MessageQueue, offset: int) -> float | None:
        """Return the mean size of messages from an offset on, in bytes; None if no store has one."""
        sample = Stretch(queue, offset, offset + SAMPLE_MESSAGES)
        for _, entries in itertools.chain.from_iterable(_entries_of(store, sample) for store in self._of(queue)):
            sizes = entries["size"][_is_written(entries["size"])]
            if len(sizes):
                return float(sizes.mean())
        return None

    def pieces(self, stretch: Stretch, selection: PullSelection) -> Iterator[HeldRecords | Stretch]:
        """Yield a stretch in order: messages in stores, and the stretches between them.

        `selection` has tags, if any: SQL92 is evaluated by brokers.
        """
        codes = () if selection.selects_all else tuple(map(tags_code, split_tags(selection.expression)))
        return _pieces(self._of(stretch.queue), stretch, codes)

    def _of(self, queue: MessageQueue) -> list[Store]:
        return [store for store in self.stores if store.broker_name == queue.broker_name]

    def _least(self, queue: MessageQueue, before: Callable[[Store, Sequence[LogFile]], IsBefore]) -> int | None:
        """Return the least offset of a queue's message in any store that is not `before`."""
        found = []
        for store in self._of(queue):
            with contextlib.suppress(NoCommitLog):
                files = list_log_files(store)
                found.append(_search(store, queue, before(store, files)) if files else None)
        return min((offset for offset in found if offset is not None), default=None)


def _pieces(stores: Sequence[Store], stretch: Stretch, codes: Sequence[int]) -> Iterator[HeldRecords | Stretch]:
    if not stores:
        yield stretch
        return
    store = stores[0]
    origin = Origin(store.name, store.broker_name)
    for piece in _joined(_in_store(store, stretch, codes)):
        if isinstance(piece, Stretch):
            yield from _pieces(stores[1:], piece, codes)
        else:
            yield HeldRecords(piece, origin)


def _joined(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Join adjacent stretches."""
    held: Stretch | None = None
    for piece in pieces:
        if held is not None and isinstance(piece, Stretch) and piece.start == held.end:
            held = attrs.evolve(held, end=piece.end)
            continue
        if held is not None:
            yield held
        held = piece if isinstance(piece, Stretch) else None
        if not isinstance(piece, Stretch):
            yield piece
    if held is not None:
        yield held


def _in_store(store: Store, stretch: Stretch, codes: Sequence[int]) -> Iterator[Piece]:
    """Yield the parts of a stretch that one store has and does not have, in order."""
    try:
        files = list_log_files(store)
    except NoCommitLog:
        yield stretch
        return
    position = stretch.start
    for begin, entries in _entries_of(store, stretch):
        if position < begin:
            yield attrs.evolve(stretch, start=position, end=begin)
        yield from _followed(store, files, Stretch(stretch.queue, begin, begin + len(entries)), entries, codes)
        position = begin + len(entries)
    if position < stretch.end:
        yield attrs.evolve(stretch, start=position)


def _queue_files(store: Store, queue: MessageQueue) -> list[LogFile]:
    _, root = locate(store.uri)
    return files_in(store, f"{root}/{_SIMPLE.directory}/{queue.topic}/{queue.queue_id}")


def _entries_of(store: Store, stretch: Stretch) -> Iterator[tuple[int, Entries]]:
    """Yield (offset of the first, entries) of a stretch, in order; entries of deleted files are skipped."""
    for file in _queue_files(store, stretch.queue):
        first = file.first_offset // ENTRY_BYTES
        begin, end = max(stretch.start, first), min(stretch.end, first + file.size // ENTRY_BYTES)
        for start in range(begin, end, ENTRIES_A_TASK):
            with contextlib.suppress(FileNotFoundError), locate(store.uri)[0].open_input_file(file.path) as opened:
                yield start, entries_at(opened, _SIMPLE, start - first, min(ENTRIES_A_TASK, end - start))


def _followed(
    store: Store, files: Sequence[LogFile], stretch: Stretch, entries: Entries, codes: Sequence[int]
) -> Iterator[Piece]:
    """Yield the records of the entries of a stretch that may be selected."""
    places, sizes = entries["physical_offset"].astype(np.int64), entries["size"].astype(np.int64)
    rows = np.flatnonzero(_may_be_wanted(entries, sizes, codes))
    offsets, places, sizes = stretch.start + rows, places[rows], sizes[rows]
    numbers = _file_numbers(files, places, sizes)
    for run in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(numbers)) + 1):
        if not len(run):
            continue
        span = slice(int(run[0]), int(run[-1]) + 1)
        if numbers[span.start] < 0:
            yield Stretch(stretch.queue, int(offsets[span][0]), int(offsets[span][-1]) + 1)
        else:
            file = files[int(numbers[span.start])]
            yield from _proved(store, file, stretch.queue, offsets[span], places[span], sizes[span])


def _is_written(sizes: Numbers) -> Mask:
    found: Mask = (sizes > 0) & (sizes != FILLER_SIZE)
    return found


def _may_be_wanted(entries: Entries, sizes: Numbers, codes: Sequence[int]) -> Mask:
    """Return which entries may be selected; entries that were never written may be anything."""
    if not codes:
        return np.ones(len(entries), np.bool_)
    found = entries["tags_code"].astype(np.int64)
    wanted: Mask = np.isin(found, codes) | (found < SMALLEST_TAGS_CODE) | ~_is_written(sizes)
    return wanted


def _file_numbers(files: Sequence[LogFile], places: Numbers, sizes: Numbers) -> Numbers:
    """Return the file number of each record, -1 for none; records are consecutive."""
    firsts, ends = (np.array([getattr(file, name) for file in files], np.int64) for name in ("first_offset", "end"))
    numbers = np.searchsorted(firsts, places, "right") - 1
    ends = np.append(ends, 0)[numbers]
    inside = _is_written(sizes) & (sizes >= SMALLEST_RECORD) & (places + sizes <= ends)
    behind = np.append(0, np.maximum.accumulate(np.where(inside, places + sizes, 0)))[:-1]
    return np.where(inside & (places >= behind), numbers, -1)


def _proved(
    store: Store, file: LogFile, queue: MessageQueue, offsets: Numbers, places: Numbers, sizes: Numbers
) -> Iterator[Piece]:
    """Return the records at these places that are valid records of these offsets, and the other offsets."""
    try:
        log = OpenLog(store, file)
    except LogFileGone:
        yield Stretch(queue, int(offsets[0]), int(offsets[-1]) + 1)
        return
    row = 0
    for piece in records_of(log, places - file.first_offset, sizes):
        count = 1 if isinstance(piece, Damage) else len(piece)
        there = offsets[row : row + count]
        if isinstance(piece, Damage) or (piece.numbers("queue_offset") != there).any():
            yield Stretch(queue, int(there[0]), int(there[-1]) + 1)
        else:
            yield piece
        row += count


def _search(store: Store, queue: MessageQueue, is_before: IsBefore) -> int | None:
    """Return the offset of a queue's first entry whose record is not before the searched one."""

    def lies_before(entries: Entries) -> bool:
        place, size = int(entries["physical_offset"][0]), int(entries["size"][0])
        return size == FILLER_SIZE or (size > 0 and is_before(place))

    for file in _queue_files(store, queue):
        count = file.size // ENTRY_BYTES
        with locate(store.uri)[0].open_input_file(file.path) as opened:
            entry = functools.partial(entries_at, opened, _SIMPLE, count=1)
            number = bisect.bisect_left(range(count), True, key=lambda one: not lies_before(entry(one)))
            if number < count and entry(number)["size"][0] > 0:
                return file.first_offset // ENTRY_BYTES + number
    return None


def _stored(store: Store, files: Sequence[LogFile], place: int) -> int:
    """Return the store time of the record at a physical offset, in ms; -1 if its file is deleted."""
    file = next((file for file in files if file.first_offset <= place < file.end), None)
    if file is None:
        return -1
    return read_store_timestamp(OpenLog(store, file).read_only(place - file.first_offset, HEAD_BYTES))

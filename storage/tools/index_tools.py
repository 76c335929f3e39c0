"""Compares the key index with the log.

An index file's entries are in the log's order, so the entries that a batch of records should have are adjacent: both
are compared as sets of numbers. twisted_mq.storage.index.index_keys defines the keys of a record.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import attrs
import numpy as np

from twisted_mq.protocol.columns import Entries, Mask, Numbers
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.index import (
    DEFAULT_ENTRIES,
    DEFAULT_SLOTS,
    ENTRY_BYTES,
    HEADER_BYTES,
    SLOT_BYTES,
    IndexSizes,
    index_key,
    unpack_begin_offset,
)
from twisted_mq.protocol.layouts.index_columns import entries_in, first_offsets, positive_hashes, slots_in
from twisted_mq.protocol.text.java import from_utf8, hash_power, java_hash, utf16_length
from twisted_mq.protocol.text.java_hash_columns import hashes_of
from twisted_mq.protocol.text.properties import PROPERTY_KEYS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.storage.columns.contents import Names
from twisted_mq.storage.columns.property_shapes import Shapes, java_hashes
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.index.index_file import IndexView
from twisted_mq.storage.index.index_keys import keys_of
from twisted_mq.storage.tools.findings import INDEX, StoreFinding, runs

DEFAULT_SIZES = IndexSizes(DEFAULT_SLOTS, DEFAULT_ENTRIES)
_MOST_SLOTS = 1 << 24
_MOSTLY = 0.9
_KEY_PROPERTIES = (PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX.encode(), PROPERTY_KEYS.encode())


def sizes_of(path: str, sizes: IndexSizes | None) -> IndexSizes | None:
    """Return slots and entries of a file: as given, or Apache's default, or sizes that its header and entries agree with.

    None if no sizes fit.
    """
    length = os.path.getsize(path)
    for one in (sizes, DEFAULT_SIZES):
        if one is not None and one.file_bytes == length:
            return one
    if length <= HEADER_BYTES:
        return None
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return next(_fitting(path, data), None)


def _fitting(path: str, data: mmap.mmap) -> Iterator[IndexSizes]:
    """Yield the sizes with which first and last entry are those of the records that the header names first and last."""
    (begin,) = unpack_begin_offset(data)
    room = len(data) - HEADER_BYTES
    slots = np.arange(1, min(_MOST_SLOTS, room // SLOT_BYTES), dtype=np.int64)
    slots = slots[(room - slots * SLOT_BYTES) % ENTRY_BYTES == 0]
    slots = slots[slots * SLOT_BYTES + 2 * ENTRY_BYTES <= room]
    for count in slots[first_offsets(data, slots) == begin].tolist():
        sizes = IndexSizes(count, (room - count * SLOT_BYTES) // ENTRY_BYTES)
        if not IndexView(path, memoryview(data), sizes).fault() and _slots_fit(data, sizes):
            yield sizes


def _slots_fit(data: mmap.mmap, sizes: IndexSizes) -> bool:
    """Return whether nearly all slots lead to entries whose hashes belong there."""
    table = slots_in(data, sizes).astype(np.int64)
    used = np.flatnonzero(table)
    if not len(used) or table.min() < 0 or table.max() >= sizes.entries:
        return False
    entries = entries_in(data, sizes, 0, sizes.entries)
    return float((entries["key_hash"][table[used]] % sizes.slots == used).mean()) > _MOSTLY


def index_files(paths: StorePaths) -> list[str]:
    """Return the paths of the index files, oldest first."""
    try:
        names = sorted(name for name in os.listdir(paths.index) if name.isascii() and name.isdigit())
    except FileNotFoundError:
        return []
    return [os.path.join(paths.index, name) for name in names]


class BatchKeys:
    """Hashes the keys of records, batch by batch."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._topic_hashes: list[int] = []
        """The hashes of `topic#`, by the topic's number."""

    def of(self, batch: RecordColumns, topics: Numbers, shapes: Shapes) -> tuple[Numbers, Numbers]:
        """Return (row, hash) of every key, in order; `topics` has each row's number. Rolled back messages have none."""
        kinds = batch.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
        kept = kinds != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
        self._topic_hashes += [java_hash(index_key(name, "")) for name in self._names.texts[len(self._topic_hashes) :]]
        topic_hashes = np.array(self._topic_hashes, np.int64)[topics]
        parts = [self._odd_keys(batch, shapes.others, topic_hashes), *_alike_keys(shapes, topic_hashes)]
        rows, hashes = (np.concatenate(column) for column in zip(*parts, strict=True))
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows, hashes = rows[order], hashes[order]
        chosen = kept[rows]
        return (rows, hashes) if chosen.all() else (rows[chosen], hashes[chosen])

    @staticmethod
    def _odd_keys(batch: RecordColumns, others: Numbers, topic_hashes: Numbers) -> tuple[Numbers, Numbers]:
        """Return the keys of records that have no common shape."""
        rows: list[int] = []
        keys: list[bytes] = []
        for row, properties in zip(others.tolist(), batch.property_texts(others), strict=True):
            found = keys_of(properties)
            keys += found
            rows += [row] * len(found)
        lengths = [len(key) if key.isascii() else utf16_length(from_utf8(key)) for key in keys]
        powers = np.array([hash_power(length) for length in lengths], np.int64)
        places = np.array(rows, np.int64)
        return places, positive_hashes(topic_hashes[places] * powers + np.array(hashes_of(keys), np.int64))


def _alike_keys(shapes: Shapes, topic_hashes: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield (row, hash) of the first key of all records of a shape, of their second, and so on."""
    for shape in shapes.shapes:
        topic_parts = topic_hashes[shape.rows]
        for name in _KEY_PROPERTIES:
            for keys in shape.values(name):
                power = hash_power(keys.shape[1])
                yield shape.rows, positive_hashes(topic_parts * power + java_hashes(keys))


@attrs.define(eq=False)
class _File:
    """An index file: its entries from number 1 on, and for which of them a record was found."""

    path: str
    view: IndexView
    entries: Entries
    right: Mask

    @classmethod
    def open(cls, path: str, sizes: IndexSizes) -> _File:
        with open(path, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), sizes.file_bytes, access=mmap.ACCESS_READ))
        view = IndexView(path, data, sizes)
        count = max(0, min(view.index_count, sizes.entries) - 1)
        return cls(path, view, entries_in(data, sizes, 1, count), np.zeros(count, np.bool_))

    def between(self, begin: int, end: int) -> slice:
        """Return the entries of records in [begin, end)."""
        offsets = self.entries["physical_offset"]
        return slice(int(np.searchsorted(offsets, begin)), int(np.searchsorted(offsets, end)))

    def chain_faults(self) -> Iterator[StoreFinding]:
        """Yield entries and slots that do not lead from the newest entry of a slot to its oldest."""
        slots = self.entries["key_hash"].astype(np.int64) % self.view.sizes.slots
        order = np.argsort(slots, kind="stable")
        same = np.append(False, slots[order][1:] == slots[order][:-1])
        before = np.zeros(len(order), np.int64)
        before[order[1:]] = np.where(same[1:], order[:-1] + 1, 0)
        wrong = np.flatnonzero(before != self.entries["previous_index"])
        for first, count in runs(wrong):
            number = int(wrong[first])
            said = int(self.entries["previous_index"][number])
            problem = f"the entry says that {said} is before it in its slot, that is {before[number]}"
            yield StoreFinding(INDEX, self.path, number + 1, problem, count)
        table = slots_in(self.view.view, self.view.sizes)
        newest = order[np.append(~same[1:], True)] if len(order) else order
        lost = newest[table[slots[newest]] != newest + 1]
        for number in lost.tolist():
            problem = f"slot {slots[number]} leads to entry {table[slots[number]]} and not to this, its newest"
            yield StoreFinding(INDEX, self.path, number + 1, problem)


class IndexCheck:
    """Takes every batch of the log; then `findings` returns the result."""

    def __init__(self, paths: StorePaths, names: Names, sizes: IndexSizes | None = None) -> None:
        self._faults: list[StoreFinding] = []
        self._files: list[_File] = []
        self._keys = BatchKeys(names)
        self._missing: list[StoreFinding] = []
        for path in index_files(paths):
            self._open(path, sizes_of(path, sizes))
        self._begin = self._files[0].view.begin_physical_offset if self._files else 0
        self._end = self._files[-1].view.end_physical_offset if self._files else 0

    def _open(self, path: str, sizes: IndexSizes | None) -> None:
        if sizes is None:
            problem = f"is {os.path.getsize(path)} bytes long, which does not match its header"
            self._faults.append(StoreFinding(INDEX, path, 0, problem))
            return
        file = _File.open(path, sizes)
        fault = file.view.fault()
        if fault or not (np.diff(file.entries["physical_offset"].astype(np.int64)) >= 0).all():
            self._faults.append(StoreFinding(INDEX, path, 0, fault or "its entries are not in the log's order"))
            return
        self._files.append(file)

    @property
    def entries(self) -> int:
        """Return how many entries all files have together."""
        return sum(len(file.entries) for file in self._files)

    def add(self, batch: RecordColumns, topics: Numbers, shapes: Shapes) -> None:
        """Compare a batch; `topics` has each row's number."""
        if not self._files:
            return
        base = int(batch.physical_offsets[0])
        end = int(batch.physical_offsets[-1]) + 1
        rows, hashes = self._keys.of(batch, topics, shapes)
        places = batch.physical_offsets[rows] - base
        wanted = (places << 32) | hashes
        found = [np.zeros(0, np.int64)]
        for file in self._files:
            part = file.between(base, end)
            entries = file.entries[part]
            has = ((entries["physical_offset"] - base).astype(np.int64) << 32) | entries["key_hash"].astype(np.int64)
            if np.array_equal(has, wanted):
                file.right[part] = True
                return
            file.right[part] = np.isin(has, wanted)
            found.append(has)
        lost = ~np.isin(wanted, np.concatenate(found))
        lost &= (places + base >= self._begin) & (places + base < self._end)
        for row in np.flatnonzero(lost).tolist():
            problem = f"the record there has no entry for its key of hash {hashes[row]}"
            self._missing.append(StoreFinding(INDEX, self._files[-1].path, int(places[row]) + base, problem))

    def findings(self, min_physical_offset: int) -> Iterator[StoreFinding]:
        """Yield the defects between index and log; call it once, at the end."""
        yield from self._faults
        for file in self._files:
            odd = np.flatnonzero(~file.right & (file.entries["physical_offset"] >= min_physical_offset))
            for first, count in runs(odd):
                entry = file.entries[odd[first]]
                where = f"leads to {entry['physical_offset']}, where no record has a key of hash {entry['key_hash']}"
                yield StoreFinding(INDEX, file.path, int(odd[first]) + 1, where, count)
            yield from file.chain_faults()
        yield from self._missing

"""Compares index files with the log: every key of a record must be found, and every entry must belong to a key."""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterable, Iterator, Sequence

from twisted_mq.protocol.layouts.index import INVALID_INDEX, SLOT, IndexSizes, key_hash, slot_position
from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.storage.index.index_file import IndexView
from twisted_mq.storage.index.index_keys import record_keys
from twisted_mq.storage.interfaces import Inconsistency

Key = tuple[int, int]
"""The hash and the physical offset."""


def open_index(directory: str, sizes: IndexSizes) -> list[IndexView]:
    """Return the index files of a store without its lock, oldest first; files of other sizes are skipped."""
    try:
        names = sorted(name for name in os.listdir(directory) if name.isascii() and name.isdigit())
    except FileNotFoundError:
        return []
    views = []
    for name in names:
        path = os.path.join(directory, name)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == sizes.file_bytes:
                mapped = mmap.mmap(file.fileno(), sizes.file_bytes, access=mmap.ACCESS_READ)
                views.append(IndexView(path, memoryview(mapped), sizes))
    return views


def check_index(
    files: Sequence[IndexView], records: Iterable[DispatchFields], min_offset: int, position: int
) -> Iterator[Inconsistency]:
    """Yield the defects of an index whose builder has reached `position`; `records` are the log's.

    Records before the beginning of the first file need not be in it: an index may be enabled later than the log began.
    A duplicate entry is no defect: Apache's start after a crash makes them.
    """
    if not files:
        return
    begin = files[0].begin_physical_offset
    known = {key for record in records for key in keys_in_index(record)}
    missing = {key for key in known if begin <= key[1] < position}
    for file in files:
        fault = file.fault()
        if fault:
            yield Inconsistency(file.path, 0, fault)
            continue
        yield from _entries(file, known, min_offset)
        missing.difference_update((entry[0], entry[1]) for entry in map(file.entry, range(1, file.index_count)))
    for hash_value, offset in sorted(missing, key=lambda key: key[1]):
        yield Inconsistency(files[-1].path, offset, f"the record there has no entry for its key of hash {hash_value}")


def keys_in_index(record: DispatchFields) -> list[Key]:
    """Return the index entries that a record must have."""
    return [
        (key_hash(text), record.physical_offset)
        for text in record_keys(record.topic, record.properties, record.sys_flag)
    ]


def _entries(file: IndexView, known: Collection[Key], min_offset: int) -> Iterator[Inconsistency]:
    """Yield entries that belong to no key, and chains that leave entries out."""
    newest: dict[int, int] = {}
    for index in range(1, file.index_count):
        entry = file.entry(index)
        slot = slot_position(entry.key_hash, file.sizes.slots)
        if entry.physical_offset >= min_offset and (entry.key_hash, entry.physical_offset) not in known:
            problem = (
                f"entry {index} leads to {entry.physical_offset}, where no record has a key of hash {entry.key_hash}"
            )
            yield Inconsistency(file.path, index, problem)
        before = newest.get(slot, INVALID_INDEX)
        if entry.previous_index != before:
            problem = f"entry {index} says that {entry.previous_index} is before it, that is {before}"
            yield Inconsistency(file.path, index, problem)
        newest[slot] = index
    for slot, index in newest.items():
        (found,) = SLOT.unpack_from(file.view, slot)
        if found != index:
            yield Inconsistency(file.path, index, f"the slot at {slot} leads to entry {found}, the newest is {index}")

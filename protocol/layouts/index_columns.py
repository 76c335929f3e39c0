"""Many entries of an index file at once, as numpy columns over its bytes; `index` declares them and has the readable twins."""

from __future__ import annotations

from mmap import mmap

import numpy as np
import numpy.typing as npt

from twisted_mq.protocol.columns import Entries, Positions, window
from twisted_mq.protocol.layouts.derive import derive_dtype
from twisted_mq.protocol.layouts.index import (
    HEADER_BYTES,
    INDEX_ENTRY,
    INDEX_SLOT,
    MAX_TIME_DIFF_SECONDS,
    SLOT_BYTES,
    IndexSizes,
    entry_position,
)

KEY = np.dtype([("key_hash", np.int64), ("physical_offset", np.int64), ("store_timestamp", np.int64)])
"""A key of one record as an index is given it: hash of `topic#key` without sign, place of the record, store time in ms."""
Keys = npt.NDArray[np.void]
"""An array of KEY."""
Slots = npt.NDArray[np.int32]
"""The numbers of their newest entries, in the file's byte order."""

_ENTRY = derive_dtype(INDEX_ENTRY)
_SLOT = derive_dtype(INDEX_SLOT)["newest_index"]
_LOWEST_HASH = -(1 << 31)


def slots_in(data: memoryview | mmap, sizes: IndexSizes) -> Slots:
    """Return all slots of a file, not copied."""
    return np.frombuffer(data, _SLOT, sizes.slots, HEADER_BYTES)


def entries_in(data: memoryview | mmap, sizes: IndexSizes, first: int, count: int) -> Entries:
    """Return `count` entries of a file from number `first` on, not copied."""
    return np.frombuffer(data, _ENTRY, count, entry_position(first, sizes.slots))


def first_offsets(data: mmap, slots: Positions) -> Positions:
    """Return where the first entry leads if a file has so many slots, for each of the numbers; one entry more must fit."""
    found: Positions = window(data, _ENTRY)[entry_position(1, 0) + slots * SLOT_BYTES]["physical_offset"]
    return found


def positive_hashes(bits: npt.NDArray[np.integer]) -> Positions:
    """Return `positive_hash` of the low 32 bits of each."""
    signed = bits.astype(np.int32).astype(np.int64)
    return np.where(signed == _LOWEST_HASH, 0, np.abs(signed))


def times_diff_seconds(begin_timestamp: int, timestamps: Positions) -> Positions:
    """Return `time_diff_seconds` of each."""
    if begin_timestamp <= 0:
        return np.zeros(len(timestamps), np.int64)
    return np.clip((timestamps - begin_timestamp) // 1000, 0, MAX_TIME_DIFF_SECONDS)

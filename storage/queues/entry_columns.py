"""Chooses the entries of a read in columns: the first ones, or the first ones with wanted tags codes.

`QueueReader._fill` chooses one by one. A read looks at every entry up to the last one that it takes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

import numpy as np

from twisted_mq.protocol.layouts.queue_columns import ROWS, TAGS
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, ENTRY_FIELDS, entries_struct

MOST_CODES, LEAST_ENTRIES = 16, 24
"""More tags codes, or fewer entries, cost less one by one."""

Places: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = tuple[int, ...]


def is_columnar(entries: memoryview, wanted: Collection[int]) -> bool:
    """Return whether `first_tagged` costs less than a look at one entry after the other."""
    return len(wanted) <= MOST_CODES and len(entries) >= LEAST_ENTRIES * ENTRY_BYTES


def first_entries(entries: memoryview, most: int) -> tuple[Places, Sizes, int, int]:
    """Choose the first entries, at most `most`; there must be one.

    Returns their physical offsets and sizes, how many entries were looked at, and the last one's physical offset.
    """
    count = min(len(entries) // ENTRY_BYTES, most)
    numbers: tuple[int, ...] = entries_struct(count).unpack_from(entries)
    places, sizes = numbers[::ENTRY_FIELDS], numbers[1::ENTRY_FIELDS]
    return places, sizes, count, places[-1]


def first_tagged(entries: memoryview, most: int, wanted: Collection[int]) -> tuple[Places, Sizes, int, int, int]:
    """Do the same for entries with a wanted tags code; `wanted` are numbers of 32 bits, at most MOST_CODES.

    Returns also the largest size of the entries that were looked at; 0 if all of them are chosen.
    """
    low_words = np.frombuffer(entries, TAGS)["tags"]
    is_wanted = np.zeros(len(low_words), np.bool_)
    for code in wanted:
        is_wanted |= low_words == code
    found = is_wanted.nonzero()[0][:most]
    looked = int(found[-1]) + 1 if len(found) == most else len(low_words)
    if looked == len(found):
        chosen = first_entries(entries, looked)
        return *chosen, 0
    rows = np.frombuffer(entries, ROWS, looked)
    places, sizes = rows["physical_offset"], rows["size"]
    chosen = tuple(places[found].tolist()), tuple(sizes[found].tolist()), looked, int(places[-1])
    return *chosen, int(sizes.max())

"""Finds where the records of a log begin by their sizes alone: each size leads to the next record.

Going from record to record takes 100 ns each. So for many records the walk begins at many places at once, at records
that are found by their magic, and a step of numpy moves each walk by one record: 20 ns a record. Each walk except the last
must reach the place where the next one began; then the result is that of a single walk. If it does not reach it, the next
walk began inside a body that contains a magic: from there on the records are visited one by one.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from twisted_mq.protocol.columns import Positions, window
from twisted_mq.protocol.layouts.record import MAGIC_POSITION, SMALLEST_RECORD, unpack_size
from twisted_mq.protocol.layouts.record_columns import SIZE_DTYPE
from twisted_mq.storage.files.mapped_log import MAGIC_PREFIX, LogBytes

FIRST_STEPS = 32
"""The number of records from whose sizes the number of further records is estimated."""
MANY = 500
"""From this number of records on, parallel walks are faster."""
_STEPS_AT_ONCE = 4


def chained(log: LogBytes, position: int, end: int) -> Positions:
    """Return where records should begin in [position, end). Nothing is proved; after a wrong size the places are meaningless."""
    end = min(end, log.size - SMALLEST_RECORD + 1)
    starts, following = _one_by_one(log, position, end, FIRST_STEPS)
    count = (end - following) * len(starts) // max(1, following - position)
    if count < MANY:
        rest, _ = _one_by_one(log, following, end)
        return np.array(starts + rest, np.int64)
    begins = _places_to_begin(log, following, end, 2 * math.isqrt(count))
    many, following = _side_by_side(log, begins, end)
    rest, _ = _one_by_one(log, following, end)
    return np.concatenate((np.array(starts, np.int64), many, np.array(rest, np.int64)))


def _one_by_one(log: LogBytes, position: int, end: int, most: int = sys.maxsize) -> tuple[list[int], int]:
    """Return at most `most` places, and the one after the last."""
    starts: list[int] = []
    append, data, unpack = starts.append, log.data, unpack_size
    for _ in range(most):
        if position >= end:
            break
        (size,) = unpack(data, position)
        if size < SMALLEST_RECORD:
            break
        append(position)
        position += size
    return starts, position


def _places_to_begin(log: LogBytes, position: int, end: int, count: int) -> Positions:
    """Return `position` and about `count` marks of records after it; nothing is searched twice."""
    step = (end - position) // count
    find, shift = log.data.find, MAGIC_POSITION  # not log.marks, which copies the bytes it searches
    magics = [find(MAGIC_PREFIX, cut + shift, cut + step + shift) for cut in range(position + step, end - step, step)]
    return np.array([position, *(magic - shift for magic in magics if magic >= 0)], np.int64)


def _side_by_side(log: LogBytes, begins: Positions, end: int) -> tuple[Positions, int]:
    """Return the places of the walks that begin there, and where to continue.

    Ends with the first walk that misses the beginning of the next one.
    """
    sizes = window(log.data, SIZE_DTYPE)
    last = len(sizes) - 1
    ends = np.append(begins[1:], end)
    places, steps = begins, []
    while (places < ends).any():
        for _ in range(_STEPS_AT_ONCE):
            steps.append(places)
            found = sizes[places].astype(np.int64)
            places = np.minimum(
                np.where(found < SMALLEST_RECORD, last, places + found), last
            )  # a wrong size ends the walk
    walks = np.stack((*steps, places), axis=1)
    arrived = (walks[:-1] == ends[:-1, None]).any(axis=1)
    if not arrived.all():
        missed = int(arrived.argmin()) + 1
        walks, ends = walks[:missed], ends[:missed]
    inside = walks < ends[:, None]
    return walks[inside], int(walks[-1][~inside[-1]].min())

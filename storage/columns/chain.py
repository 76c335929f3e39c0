"""Where the records of a log begin by their sizes alone: each leads to the next.

One after the other that is 100 ns a record. So where there are many, the walk begins at many places at once, at records
that are found by their magic, and a step of numpy takes each walk one record on: 20 ns a record. Each walk but the last
must come upon the place where the next began; then it is as if one had gone the whole way. One that does not come there
shows that the next began inside a body, which held a magic: from there on the way is gone step by step.
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
"""From so many records is told how many may follow."""
MANY = 500
"""From so many on, walks side by side are faster."""
_STEPS_AT_ONCE = 4


def chained(log: LogBytes, position: int, end: int) -> Positions:
    """Where records should begin in [position, end); nothing is proved yet, and behind a wrong size no place means much."""
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
    """At most `most` places, and the one behind the last."""
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
    """`position`, and some `count` marks of records behind it; nothing is searched twice."""
    step = (end - position) // count
    find, shift = log.data.find, MAGIC_POSITION  # not log.marks, which copies what it looks through
    magics = [find(MAGIC_PREFIX, cut + shift, cut + step + shift) for cut in range(position + step, end - step, step)]
    return np.array([position, *(magic - shift for magic in magics if magic >= 0)], np.int64)


def _side_by_side(log: LogBytes, begins: Positions, end: int) -> tuple[Positions, int]:
    """The places of the walks that begin there, up to the first that misses the next one's begin; where it goes on."""
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

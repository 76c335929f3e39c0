"""Collects the keys of many records at a time, with their hashes (Apache: IndexService.buildIndex).

The log is walked from record to record, and its bytes are the only source: so records from producers, from a master and
from recovery are indexed alike. The records of a step are then read as numpy columns, which costs a tenth of reading them
one by one. Odd records (IPv6 hosts, a transaction, a long topic, a property given twice, several KEYS) are left to
`twisted_mq.storage.index.index_keys`, the readable way.
"""

from __future__ import annotations

import functools
import mmap
from array import array
from collections.abc import Iterator

import attrs
import numpy as np

from twisted_mq.protocol.columns import Bytes, Mask, Numbers, Positions, window
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag, transaction_value
from twisted_mq.protocol.layouts.index import index_key
from twisted_mq.protocol.layouts.index_columns import KEY, Keys, positive_hashes
from twisted_mq.protocol.layouts.record import (
    HEAD_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    SMALLEST_RECORD,
    read_head,
    read_spans,
    unpack_mark,
)
from twisted_mq.protocol.layouts.record_columns import heads_at, spans_at
from twisted_mq.protocol.text.java import from_utf8, hash_power, java_hash, utf16_length
from twisted_mq.protocol.text.java_hash_columns import Hashes, hashes_at, hashes_of
from twisted_mq.protocol.text.properties import PROPERTY_KEYS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.storage.columns.property_shapes import fitting_first
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.index.index_keys import keys_of
from twisted_mq.storage.log.commit_log import CommitLog

_TRANSACTION = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
"""Messages of a transaction may have no keys."""
_UNIQUE_KEY = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX.encode()
_KEYS = PROPERTY_KEYS.encode()
_BETWEEN, _END, _SPACE = b"\1\2 "
"""The bytes between a property's name and value, after the value, and between two KEYS."""
_BEFORE = len(_UNIQUE_KEY) + 1
"""Columns before the properties, so that every name has a byte before it."""
_LONGEST_TOPIC = HEAD_BYTES
_LONGEST_KEY = 64
_MOST_PROPERTIES = 512
"""A record with longer properties is odd."""
_POWERS = np.array([hash_power(length) for length in range(_LONGEST_KEY + 1)], np.uint32)
_FEW = 16
"""So many records are read one by one: columns take 100 us however few they are, and a record takes 4 us."""
_STREAK = 8
"""After this many records of one size, all records that may follow are compared at once."""
_NO_KEYS: Keys = np.zeros(0, KEY)


@attrs.define
class KeyCollector:
    """Walks a log from `position` on and collects the keys of its records."""

    log: CommitLog
    position: int = 0

    def collect(self, end: int, max_bytes: int) -> Keys:
        """Return the keys of the records from `position` to `end`, about `max_bytes` of the log at most; advance `position`."""
        steps = [_NO_KEYS]
        stop = min(end, self.position + max_bytes)
        while self.position < stop:
            before = self.position
            file = self.log.files.find(before)
            if file is not None:
                base = file.first_offset
                starts, behind = _walk(file, before - base, stop - base, end - base)
                self.position = base + behind
                steps.append(_keys(file, np.frombuffer(starts, np.int64)))
            elif before < self.log.min_offset:
                self.position = self.log.min_offset
            if self.position == before:
                break
        return steps[-1] if len(steps) <= 2 else np.concatenate(steps)


def _walk(file: MappedFile, position: int, stop: int, end: int) -> tuple[array[int], int]:
    """Return the positions of a file's records from `position` to `stop` that end before `end`, and where to continue.

    Positions count from the file's start; the position after the file leads to the next one.
    """
    data, read = file.readable.obj, unpack_mark
    assert isinstance(data, mmap.mmap)
    starts = array("q")
    stop = min(stop, file.size)
    last = min(stop, file.size - SMALLEST_RECORD + 1)
    previous = streak = 0
    while position < last:
        size, magic = read(data, position)
        if magic == MAGIC_BLANK:
            return starts, file.size
        if position + size > end or size < SMALLEST_RECORD:
            return starts, position
        streak = streak + 1 if size == previous else 0
        previous = size
        if streak < _STREAK:
            starts.append(position)
            position += size
        else:
            behind = position + size * _alike(data, position, size, min(end, last + size - 1))
            starts.frombytes(np.arange(position, behind, size).tobytes())
            position = behind
    return starts, file.size if last <= position < stop else position


def _alike(data: mmap.mmap, position: int, size: int, end: int) -> int:
    """Return how many records of `size` bytes from `position` on, ending before `end`, begin like the first one."""
    marks = np.ndarray(((end - position) // size,), np.uint64, data, position, (size,))
    others = np.flatnonzero(marks != marks[0])
    return int(others[0]) if len(others) else len(marks)


def _keys(file: MappedFile, starts: Positions) -> Keys:
    """Return the keys of a file's records, in order."""
    data = file.readable.obj
    assert isinstance(data, mmap.mmap)
    plain, odd = _plain_keys(data, starts) if len(starts) > _FEW else (_NO_KEYS, starts)
    if len(odd):
        plain = np.concatenate((plain, _odd_keys(file.readable, odd.tolist())))
        plain = plain[np.argsort(plain["physical_offset"], kind="stable")]
    plain["physical_offset"] += file.first_offset
    return plain


def _plain_keys(data: mmap.mmap, starts: Positions) -> tuple[Keys, Positions]:
    """Return the keys of ordinary records, with positions for offsets, and the positions of the odd records."""
    heads = heads_at(data, starts)
    spans, plain = spans_at(data, starts, heads)
    topic_end, begins = spans.topic_end, spans.properties
    topic_length, lengths = topic_end - spans.topic, spans.end - begins
    plain &= (heads["magic"] == MAGIC_V1) & (heads["sys_flag"] & _TRANSACTION == 0) & (topic_length <= _LONGEST_TOPIC)
    plain &= (lengths <= _MOST_PROPERTIES) & (begins + _MOST_PROPERTIES <= len(data))
    odd, timestamps = starts[:0], heads["store_timestamp"]
    if not plain.all():
        odd = starts[~plain]
        columns = (starts, timestamps, topic_end, topic_length, begins, lengths)
        starts, timestamps, topic_end, topic_length, begins, lengths = (column[plain] for column in columns)
    if not len(starts):
        return _NO_KEYS, odd
    topics, sound = hashes_at(data, topic_end, topic_length)
    rows, key_ends, key_lengths = _key_spans(data, begins, lengths, sound)
    hashes, right = hashes_at(data, key_ends, key_lengths)
    sound[rows[~right]] = False
    if not sound.all():
        kept = sound[rows]
        odd = np.concatenate((odd, starts[~sound]))
        rows, key_lengths, hashes = rows[kept], key_lengths[kept], hashes[kept]
    whole = (topics * 31 + ord("#"))[rows] * _POWERS[key_lengths] + hashes
    return _columns(whole, starts[rows], timestamps[rows]), odd


def _key_spans(
    data: mmap.mmap, begins: Positions, lengths: Positions, sound: Mask
) -> tuple[Positions, Positions, Positions]:
    """Return (row, end, length) of every key in properties that begin there, in order; odd rows are cleared in `sound`."""
    width = _BEFORE + int(lengths.max())
    texts = window(data, f"V{width}")[begins - _BEFORE].view(np.uint8)
    matrix = texts.reshape(-1, width)
    columns = _common_columns(matrix[:, _BEFORE:]) if (lengths == lengths[0]).all() else None
    if columns is not None:
        starts, stops = np.array([(one.start, one.stop) for one in columns], np.int64).reshape(-1, 2).T
        rows, ends = np.repeat(np.arange(len(begins)), len(columns)), (begins[:, None] + stops).ravel()
        return rows, ends, np.tile(stops - starts, len(begins))
    matrix[:, : _BEFORE - 1] = 0
    matrix[:, _BEFORE - 1] = _END
    signs = np.append(np.flatnonzero(texts - _BETWEEN <= _END - _BETWEEN), len(texts))
    marks = np.flatnonzero(texts[signs[:-1]] == _BETWEEN)
    values, closes = signs[marks] + 1, signs[marks + 1]
    limits = np.arange(len(begins)) * width + _BEFORE + lengths
    spans = [
        _spans(texts, values[found], closes[found], limits, len(name), sound)
        for name, found in ((name, _are(texts, values - 1, name)) for name in (_UNIQUE_KEY, _KEYS))
    ]
    rows, ends, sizes = spans[0]
    if len(spans[1][0]):
        _leave_several(texts, *spans[1], sound)
        rows, ends, sizes = (np.concatenate(column) for column in zip(*spans, strict=True))
        order = np.argsort(rows, kind="stable")
        rows, ends, sizes = rows[order], ends[order], sizes[order]
    return rows, ends - rows * width + (begins - _BEFORE)[rows], sizes


def _are(texts: Bytes, ends: Positions, name: bytes) -> Mask:
    """Return at which of the ends the name is before the end."""
    found: Mask = window(texts, f"S{len(name)}")[ends - len(name)] == name
    return found


def _common_columns(texts: Bytes) -> list[slice] | None:
    """Return the columns of the keys if all texts have one shape, as those of a batch mostly do; else None."""
    fitting = fitting_first(texts)
    if fitting is None or not fitting[1].all():
        return None
    columns = fitting[0].get(_UNIQUE_KEY, []) + fitting[0].get(_KEYS, [])
    return columns if all(one.stop - one.start <= _LONGEST_KEY for one in columns) else None


def _spans(
    texts: Bytes, begins: Positions, ends: Positions, limits: Positions, name_bytes: int, sound: Mask
) -> tuple[Positions, Positions, Positions]:
    """Return (row, end, length) of the values of a property; rows where they are not certain are cleared in `sound`.

    The rows' texts lie back to back in `texts`, those of each end before its limit. A value begins after the
    0x01 that follows its name and ends before the next 0x01 or 0x02.
    """
    rows = (begins - 1) // (len(texts) // len(limits))
    lengths = ends - begins
    plain = (texts[begins - name_bytes - 2] == _END) & (ends < limits[rows]) & (lengths > 0) & (lengths <= _LONGEST_KEY)
    plain[1:] &= rows[1:] != rows[:-1]
    plain[plain] = texts[ends[plain]] == _END
    if plain.all():
        return rows, ends, lengths
    sound[rows[~plain & (begins <= limits[rows])]] = False
    return rows[plain], ends[plain], lengths[plain]


def _leave_several(texts: Bytes, rows: Positions, ends: Positions, lengths: Positions, sound: Mask) -> None:
    """Clear in `sound` the rows whose KEYS contain a space: they are several keys."""
    spaces = np.flatnonzero(texts == _SPACE)
    several = np.searchsorted(spaces, ends) != np.searchsorted(spaces, ends - lengths)
    sound[rows[several]] = False


def _columns(hashes: Hashes, offsets: Positions, timestamps: Numbers) -> Keys:
    """Return keys with the positive form of their hashes."""
    keys = np.empty(len(hashes), KEY)
    keys["key_hash"] = positive_hashes(hashes)
    keys["physical_offset"] = offsets
    keys["store_timestamp"] = timestamps
    return keys


def _odd_keys(view: memoryview, starts: list[int]) -> Keys:
    """Return the keys of records, read one by one."""
    found = [row for start in starts for row in _keys_of_record(view, start)]
    keys = [row[1] for row in found]
    lengths = [len(key) if key.isascii() else utf16_length(from_utf8(key)) for key in keys]
    powers = np.array([hash_power(length) for length in lengths], np.uint32)
    hashes = np.array([row[0] for row in found], np.uint32) * powers + hashes_of(keys)
    return _columns(
        hashes, np.array([row[2] for row in found], np.int64), np.array([row[3] for row in found], np.int64)
    )


def _keys_of_record(view: memoryview, start: int) -> Iterator[tuple[int, bytes, int, int]]:
    """Yield (hash of `topic#`, key, physical offset, store time) for every key of the record there."""
    try:
        head = read_head(view, start)
        spans = read_spans(view, start, head)
    except RecordError:
        return
    if transaction_value(head.sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
        return
    topic = _topic_hash(bytes(view[spans.topic : spans.topic_end]))
    for key in keys_of(bytes(view[spans.properties : spans.end])):
        yield topic, key, start, head.store_timestamp


@functools.lru_cache(maxsize=4096)
def _topic_hash(topic: bytes) -> int:
    """Return the hash of `topic#` as unsigned 32 bits."""
    return java_hash(index_key(from_utf8(topic), "")) & 0xFFFFFFFF

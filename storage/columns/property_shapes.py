"""The properties of many records at once, as numpy columns.

Messages of one producer mostly have properties of one shape: the same names in the same order, and values of the same
lengths. Records of a shape are read together as a matrix of bytes with one row each, in which a value is a run of
columns. Records with a rare shape, or with bytes beyond ASCII, are left to be read one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt

from twisted_mq.protocol.columns import Bytes, Mask, Positions
from twisted_mq.protocol.text.java_hash_columns import powers
from twisted_mq.protocol.text.properties import PROPERTY_KEYS
from twisted_mq.storage.columns.record_columns import RecordColumns, bytes_at

Words = dict[bytes, list[slice]]
"""The columns of each property's value; for KEYS those of each of its words."""

_KEYS = PROPERTY_KEYS.encode()
_FEWEST = 16
"""Shapes with fewer records are read one by one."""
_MOST_SHAPES = 8
"""The most shapes tried among properties of one length."""
_LOWEST_IN_VALUE, _LOWEST_IN_KEY, _HIGHEST = 3, 33, 127


@attrs.frozen(eq=False)
class Shape:
    """Records of the same shape: `rows` of their batch, ascending, and the bytes of their properties, one row each."""

    rows: Positions
    texts: Bytes
    words: Words

    def values(self, name: bytes) -> list[Bytes]:
        """Return the columns of a property's value, for KEYS those of each key; empty if the records do not have it."""
        return [self.texts[:, columns] for columns in self.words.get(name, ())]


@attrs.frozen(eq=False)
class Shapes:
    """The shapes among a batch's properties, and the rows without a shape."""

    shapes: list[Shape]
    others: Positions

    @classmethod
    def of(cls, batch: RecordColumns) -> Shapes:
        """Group a batch's records by shape."""
        shapes: list[Shape] = []
        others = [np.zeros(0, np.int64)]
        lengths = batch.ends - batch.properties
        for rows in rows_by_length(lengths):
            texts = bytes_at(batch.log, batch.properties[rows], int(lengths[rows[0]]))
            others.append(_sort(rows, texts, shapes))
        return cls(shapes, np.sort(np.concatenate(others)))


def _sort(rows: Positions, texts: Bytes, shapes: list[Shape]) -> Positions:
    """Add the shapes among texts of one length; return the rows left over."""
    for _ in range(_MOST_SHAPES):
        found = _alike(texts) if len(rows) >= _FEWEST else None
        if found is None:
            break
        words, same = found
        if same.all():
            shapes.append(Shape(rows, texts, words))
            return rows[:0]
        shapes.append(Shape(rows[same], texts[same], words))
        rows, texts = rows[~same], texts[~same]
    return rows


def rows_by_length(lengths: Positions) -> Iterator[Positions]:
    """Yield the rows of each length, ascending."""
    if not len(lengths):
        return
    if (lengths == lengths[0]).all():
        yield np.arange(len(lengths))
        return
    order = np.argsort(lengths, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)


def _alike(texts: Bytes) -> tuple[Words, Mask] | None:
    """Return the first row's shape and the rows that have it; None if its properties are odd."""
    fitting = fitting_first(texts)
    if fitting is None:
        return None
    alike: Mask = np.logical_and.reduce(fitting[1], axis=1)
    return fitting[0], alike


def fitting_first(texts: Bytes) -> tuple[Words, Mask] | None:
    """Return the first row's shape and which bytes of all rows fit it; None if its properties are odd."""
    words = _words(texts[0].tobytes())
    if words is None:
        return None
    lowest, room = texts[0].copy(), np.zeros(texts.shape[1], np.uint8)
    for name, runs in words.items():
        for columns in runs:
            lowest[columns] = _LOWEST_IN_KEY if name == _KEYS else _LOWEST_IN_VALUE
            room[columns] = _HIGHEST - lowest[columns]
    fits: Mask = texts - lowest <= room
    return words, fits


def _words(text: bytes) -> Words | None:
    """Return where the values are in `name 0x01 value 0x02 ...`; None if the text has another form."""
    words: Words = {}
    position = 0
    for part in text.removesuffix(b"\x02").split(b"\x02") if text else ():
        name, _, value = part.partition(b"\x01")
        if not (name and value) or name in words or b"\x01" in value or not part.isascii():
            return None
        words[name] = list(_runs(position + len(name) + 1, value, name))
        position += len(part) + 1
    return words


def _runs(begin: int, value: bytes, name: bytes) -> Iterator[slice]:
    """Yield the columns of a value that begins at `begin`; for KEYS those of each word."""
    for word in value.split(b" ") if name == _KEYS else (value,):
        if word:
            yield slice(begin, begin + len(word))
        begin += len(word) + 1


def distinct(texts: Bytes) -> tuple[Positions, Positions]:
    """Return the first row of each distinct text, and for every row the index of its text."""
    if not texts.shape[1]:
        return np.zeros(1, np.int64), np.zeros(len(texts), np.int64)
    sums = texts.astype(np.uint64) @ _odd_numbers(texts.shape[1])
    _, firsts, kinds = np.unique(sums, return_index=True, return_inverse=True)
    if not (texts == texts[firsts[kinds]]).all():
        whole = np.ascontiguousarray(texts).view(f"V{texts.shape[1]}").ravel()
        _, firsts, kinds = np.unique(whole, return_index=True, return_inverse=True)
    return firsts, kinds


@functools.lru_cache(maxsize=256)
def _odd_numbers(length: int) -> npt.NDArray[np.uint64]:
    """Return factors under which different texts nearly always have different sums."""
    return np.random.default_rng(length).integers(0, 1 << 63, length, np.uint64) | np.uint64(1)


def java_hashes(words: Bytes) -> npt.NDArray[np.uint32]:
    """Return String.hashCode() of each row, for ASCII without padding, as unsigned 32 bits."""
    hashes: npt.NDArray[np.uint32] = words.astype(np.uint32) @ powers(words.shape[1])
    return hashes

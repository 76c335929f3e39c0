"""The properties of many records, from their text form to an Arrow map column, without a step for each record.

The text form is `name 0x01 value 0x02` for each property (twisted_mq.protocol.text.properties). In the texts of a whole batch
joined together numpy finds all separators; names and values are the spans between them, and Arrow copies these.

Texts that need a rule beyond that are rare: equal names, empty names or values, separators in odd places, damaged
UTF-8. Only those rows are decoded by twisted_mq.protocol.text.properties and inserted between the others, so the columns always
equal the result of the protocol's decoder.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twisted_mq.protocol.columns import Positions, window
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.spark.columns.arrow_texts import as_text, invalid_utf8_rows, replace_rows, spans, split_buffers

MAP_TYPE = pa.map_(pa.string(), pa.string())
_NAME_END = 1
_VALUE_END = 2
_TAIL = np.dtype(np.uint64)
_TAIL_BYTES = _TAIL.itemsize
_MASK_BITS = 62
"""Number of different names that fit as bits of a signed 64-bit number."""


class PropertyTexts:
    """The stored properties of a batch; single properties are found by searching for their names, without parsing others."""

    def __init__(self, texts: pa.BinaryArray) -> None:
        self.texts = texts

    @functools.cached_property
    def split(self) -> tuple[Positions, npt.NDArray[np.uint8]]:
        """Offsets of the texts in the joined bytes, and the end of the last one."""
        return split_buffers(self.texts)

    @functools.cached_property
    def name_ends(self) -> Positions:
        """Positions of the bytes 0x01."""
        return np.flatnonzero(self.split[1] == _NAME_END)

    @functools.cached_property
    def value_ends(self) -> Positions:
        """Positions of the bytes 0x02."""
        return np.flatnonzero(self.split[1] == _VALUE_END)

    def without(self, rows: list[int]) -> PropertyTexts:
        """Return the texts with those of these rows emptied."""
        emptied = replace_rows(self.texts, np.array(rows, np.int64), [b""] * len(rows))
        return PropertyTexts(emptied) if rows else self

    def value_of(self, name: str) -> pa.StringArray:
        """Return the value of one property for each row; null if the row does not have it."""
        offsets, data = self.split
        found, rows = self._named(name.encode())
        marks = self.name_ends[found]
        value_ends = np.minimum(self._ends_behind(found), offsets[rows + 1])
        filled = value_ends > marks + 1
        if not filled.all():
            marks, rows, value_ends = marks[filled], rows[filled], value_ends[filled]
        return _a_row_each(as_text(spans(data, marks + 1, value_ends, pa.binary())), rows, len(self.texts))

    def _named(self, name: bytes) -> tuple[Positions, Positions]:
        """Return which of `name_ends` end this name, and their rows. A name begins a text or follows a value."""
        offsets, data = self.split
        mask, wanted = _as_number(b"\xff" * len(name)), _as_number(name)
        found = np.flatnonzero(self._tails & mask == wanted)
        ends = self.name_ends[found]
        for back, byte in enumerate(reversed(name[:-_TAIL_BYTES]), _TAIL_BYTES + 1):
            same = (data[ends - back] == byte) & (ends >= back)
            found, ends = found[same], ends[same]
        begins, rows = ends - len(name), _rows_of(offsets, ends)
        whole = (begins == offsets[rows]) | ((data[begins - 1] == _VALUE_END) & (begins > offsets[rows]))
        return (found, rows) if whole.all() else (found[whole], rows[whole])

    @functools.cached_property
    def _tails(self) -> npt.NDArray[np.uint64]:
        """Return the last eight bytes before each name's end as a number; a shorter name includes bytes before it, with zeros
        before the first text."""
        data, ends = self.split[1], self.name_ends
        few = int(np.searchsorted(ends, _TAIL_BYTES))
        head = np.concatenate((np.zeros(_TAIL_BYTES, np.uint8), data[:_TAIL_BYTES]))
        first, rest = window(head, _TAIL)[ends[:few]], window(data, _TAIL)[ends[few:] - _TAIL_BYTES]
        return np.concatenate((first, rest))

    def _ends_behind(self, found: Positions) -> Positions:
        """Return the ends of the values of these names; usually names and values alternate."""
        if self._take_turns:
            return self.value_ends[found]
        following = np.searchsorted(self.value_ends, self.name_ends[found])
        return np.append(self.value_ends, len(self.split[1]))[following]

    @functools.cached_property
    def _take_turns(self) -> bool:
        names, values = self.name_ends, self.value_ends
        return len(names) == len(values) and bool((names < values).all() and (values[:-1] < names[1:]).all())


def _as_number(tail: bytes) -> np.uint64:
    """Return its last eight bytes, at their place in a tail."""
    number: np.uint64 = np.frombuffer(tail[-_TAIL_BYTES:].rjust(_TAIL_BYTES, b"\0"), _TAIL)[0]
    return number


class Properties:
    """The properties of a batch: names and values of all rows in one sequence; those of row i begin at offsets[i]."""

    def __init__(
        self, offsets: Positions, names: pa.StringArray, values: pa.StringArray, codes: pa.DictionaryArray
    ) -> None:
        """`codes` are the names as a dictionary. No row has a name twice."""
        self.offsets = offsets.astype(np.int32)
        self.names = names
        self.values = values
        self.codes = codes

    def as_map(self) -> pa.MapArray:
        """Return one map per row; a record without properties has an empty map."""
        return pa.MapArray.from_arrays(pa.array(self.offsets), self.names, self.values, type=MAP_TYPE)

    def value_of(self, name: str) -> pa.StringArray:
        """Return the value of one property for each row, from the parsed properties; null if the row does not have it."""
        code = self.codes.dictionary.index(pa.scalar(name, pa.string())).as_py()
        items = np.flatnonzero(np.asarray(self.codes.indices) == code)
        return _a_row_each(self.values.take(pa.array(items)), _rows_of(self.offsets, items), len(self.offsets) - 1)


def parse_properties(stored: PropertyTexts) -> Properties:
    """Parse all properties of a batch; each of `stored` is one record's properties field."""
    odd = {row: stored.texts[row].as_py() for row in invalid_utf8_rows(stored.texts).tolist()}
    rest = stored.without(list(odd))
    while not isinstance(parsed := _parse(rest), Properties):
        odd |= {row: stored.texts[row].as_py() for row in parsed.tolist()}
        rest = rest.without(parsed.tolist())
    return _with_odd_rows(parsed, {row: decode_property_bytes(odd[row]) for row in sorted(odd)}) if odd else parsed


def _with_odd_rows(parsed: Properties, odd: dict[int, dict[str, str]]) -> Properties:
    """Return the batch with the properties of these rows inserted; so far they have none. `odd` is ascending."""
    counts = np.diff(parsed.offsets).astype(np.int64)
    items = len(parsed.names)
    row_of_item = np.repeat(np.arange(len(counts)), counts)
    counts[list(odd)] = [len(properties) for properties in odd.values()]
    offsets = np.append(0, np.cumsum(counts))
    order = np.empty(int(offsets[-1]), np.int64)
    taken = np.arange(items) + (offsets[:-1] - parsed.offsets[:-1])[row_of_item]
    order[taken] = np.arange(items)
    free = np.ones(len(order), np.bool_)
    free[taken] = False
    order[free] = items + np.arange(len(order) - items)
    where = pa.array(order)
    more_names = pa.array([name for properties in odd.values() for name in properties], pa.string())
    more_values = pa.array([value for properties in odd.values() for value in properties.values()], pa.string())
    names = pa.concat_arrays([parsed.names, more_names]).take(where)
    values = pa.concat_arrays([parsed.values, more_values]).take(where)
    return Properties(offsets, names, values, names.dictionary_encode())


def _parse(texts: PropertyTexts) -> Properties | Positions:
    """Return the parsed batch, or the rows that need more rules."""
    (offsets, data), name_ends = texts.split, texts.name_ends
    begins, value_ends, lasts = _items(offsets, data, texts.value_ends)
    if len(name_ends) != len(lasts):
        return _uneven_rows(offsets, name_ends, lasts)
    misplaced = (name_ends <= begins) | (name_ends + 1 >= value_ends)
    if misplaced.any():
        odd = _uneven_rows(offsets, name_ends, lasts)
        return odd if len(odd) else np.unique(_rows_of(offsets, lasts[misplaced]))
    names = spans(data, begins, name_ends, pa.string())
    values = spans(data, name_ends + 1, value_ends, pa.string())
    codes = names.dictionary_encode()
    firsts = np.searchsorted(begins, offsets)
    odd = _rows_with_equal_names(firsts, codes)
    return odd if len(odd) else Properties(firsts, names, values, codes)


class _Items(NamedTuple):
    """Positions of properties in a batch's texts: `lasts` is the last byte of each, which is the separator if it has one."""

    begins: Positions
    value_ends: Positions
    lasts: Positions


def _items(offsets: Positions, data: npt.NDArray[np.uint8], separators: Positions) -> _Items:
    """Return the properties between the 0x02 separators. The end of a text replaces a missing last separator."""
    text_ends = offsets[1:][offsets[1:] > offsets[:-1]]
    unclosed = text_ends[data[text_ends - 1] != _VALUE_END]
    if not len(unclosed):
        return _Items(np.append(0, separators + 1)[:-1], separators, separators)
    # twice the position, odd for a separator: at equal positions the end of a text comes first
    marks = np.sort(np.concatenate((2 * separators + 1, 2 * unclosed)), kind="stable")
    value_ends, separator = marks >> 1, marks & 1
    return _Items(np.append(0, value_ends + separator)[:-1], value_ends, value_ends + separator - 1)


def _rows_of(offsets: npt.NDArray[np.integer], positions: Positions) -> Positions:
    """Return the row of each position."""
    if len(positions) == len(offsets) - 1 and (positions >= offsets[:-1]).all() and (positions < offsets[1:]).all():
        return np.arange(len(positions))
    return np.searchsorted(offsets, positions, "right") - 1


def _a_row_each(values: pa.StringArray, rows: Positions, count: int) -> pa.StringArray:
    """Return the values of these ascending rows, null in all others; the last value of a row is used."""
    if len(rows) == count and (rows[1:] > rows[:-1]).all():
        return values
    where = np.zeros(count, np.int64)
    absent = np.ones(count, np.bool_)
    where[rows] = np.arange(len(rows))
    absent[rows] = False
    return values.take(pa.array(where, mask=absent))


def _uneven_rows(offsets: Positions, name_ends: Positions, lasts: Positions) -> Positions:
    """Return rows with more or fewer 0x01 than properties."""
    names = np.diff(np.searchsorted(name_ends, offsets))
    return np.flatnonzero(names != np.diff(np.searchsorted(lasts, offsets)))


def _rows_with_equal_names(firsts: Positions, codes: pa.DictionaryArray) -> Positions:
    """Return the rows in which a name is repeated."""
    indices = np.asarray(codes.indices)
    filled = np.flatnonzero(firsts[1:] > firsts[:-1])
    if not len(filled):
        return filled
    different = len(codes.dictionary)
    if different <= _MASK_BITS:
        bits = np.left_shift(np.int64(1), indices)
        begins = firsts[filled]
        twice = np.add.reduceat(bits, begins) != np.bitwise_or.reduceat(bits, begins)
        rows: Positions = filled[twice]
        return rows
    row_of = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
    pairs = np.sort(row_of * different + indices)
    twice_rows: Positions = np.unique(pairs[1:][pairs[1:] == pairs[:-1]] // different)
    return twice_rows

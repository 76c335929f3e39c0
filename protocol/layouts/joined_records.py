"""Records that are stored together: columns go in, all records come out in one piece.

What the records share is packed once, and the rest in one operation for each head. `record_codec.encode_record` is the
readable twin; a test holds both equal.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import add, and_, itemgetter
from typing import Any, TypeAlias

import attrs

from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.derive import derive_runs
from twisted_mq.protocol.layouts.record import CRC_MASK, HEADS, MESSAGE, V6_FLAGS, magic_for, middle
from twisted_mq.protocol.layouts.record_codec import host_flags
from twisted_mq.protocol.layouts.value_order import Packer

Texts: TypeAlias = bytes | Sequence[bytes]
"""A text of each message, or one that all of them have."""
Numbers: TypeAlias = int | Sequence[int]
"""The same for numbers."""
Packers: TypeAlias = tuple[struct.Struct, Callable[[dict[str, Any]], tuple[Any, ...]], Packer, list[tuple[int, str]]]
_magic_for = functools.lru_cache(maxsize=1024)(magic_for)
_OTHER_FLAGS = ~int(V6_FLAGS)


@attrs.define(eq=False)
class Lengths:
    """The lengths of bodies and properties, and the sizes of the records."""

    bodies: Numbers
    properties: Numbers
    sizes: list[int]


def measure(
    topic: Texts,
    bodies: Sequence[bytes],
    properties: Sequence[Texts],
    born_host: bytes,
    store_host: bytes,
    *,
    alike: bool,
) -> Lengths:
    """Return the lengths of records whose properties are these texts one after the other.

    `alike` says that all bodies are known to have one length, all topics, and all texts of each row.
    """
    rest = HEADS[_host_flags(born_host, store_host)].size
    if alike:
        body_bytes, texts_bytes = len(bodies[0]), sum([len(_first(texts)) for texts in properties])
        size = rest + body_bytes + middle(len(_first(topic))).size + texts_bytes
        return Lengths(body_bytes, texts_bytes, [size] * len(bodies))
    fixed = sum(len(texts) for texts in properties if isinstance(texts, bytes))
    each: Iterable[int] = repeat(fixed, len(bodies))
    for texts in properties:
        if not isinstance(texts, bytes):
            each = map(add, each, map(len, texts))
    lengths, properties_lengths = [*map(len, bodies)], [*each]
    others: Iterable[int] = repeat(rest + middle(len(_first(topic))).size)
    if not isinstance(topic, bytes):
        others = map(add, repeat(rest + middle(0).size), map(len, topic))
    return Lengths(lengths, properties_lengths, [*map(add, map(add, lengths, properties_lengths), others)])


def encode_joined(
    topic: Texts,
    bodies: Sequence[bytes],
    properties: Sequence[Texts],
    lengths: Lengths,
    *,
    queue_ids: Numbers,
    flags: Numbers,
    queue_offsets: Iterable[int],
    physical_offsets: Iterable[int],
    born_timestamps: Numbers,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    sys_flag: int,
    reconsume_times: int,
    prepared_transaction_offsets: Numbers = 0,
) -> bytes:
    """Return as many records as there are queue offsets. `lengths` are those that `measure` returns.

    The caller has checked the lengths, as for `encode_record`. Topics that differ have at most 127 bytes each.
    """
    host_bits = _host_flags(born_host, store_host)
    sizes = lengths.sizes[0] if isinstance(lengths.bodies, int) else lengths.sizes
    fields = {
        "magic": _magic_for(len(_first(topic))),
        "sys_flag": sys_flag & _OTHER_FLAGS | host_bits,
        "born_host": born_host,
        "store_timestamp": store_timestamp,
        "store_host": store_host,
        "reconsume_times": reconsume_times,
    }
    numbers = (
        ("size", sizes),
        ("queue_id", queue_ids),
        ("flag", flags),
        ("born_timestamp", born_timestamps),
        ("body_length", lengths.bodies),
        ("prepared_transaction_offset", prepared_transaction_offsets),
    )
    columns: dict[str, Iterable[int]] = {
        "body_crc": map(and_, map(crc32, bodies), repeat(CRC_MASK)),
        "queue_offset": queue_offsets,
        "physical_offset": physical_offsets,
    }
    for name, value in numbers:
        if isinstance(value, int):
            fields[name] = value
        else:
            columns[name] = value
    return _joined(_heads(fields, columns, host_bits), [bodies, *_tails(topic, lengths.properties, properties)])


def _first(texts: Texts) -> bytes:
    return texts if isinstance(texts, bytes) else texts[0]


@functools.lru_cache(maxsize=1024)
def _host_flags(born_host: bytes, store_host: bytes) -> int:
    return int(host_flags(born_host, store_host))


def _heads(fields: dict[str, Any], columns: Mapping[str, Iterable[int]], host_bits: int) -> list[bytes]:
    """Return the heads: neighbouring fields that all records share are packed once, as one text."""
    whole, order, packed, names = _packers(host_bits, (*columns,))
    pattern = whole.pack(*order(fields | dict.fromkeys(columns, 0)))
    values: list[Iterable[Any]] = [*map(repeat, packed.unpack(pattern))]
    for place, name in names:
        values[place] = columns[name]
    return [*map(packed.pack, *values)]


@functools.lru_cache(maxsize=256)
def _packers(host_bits: int, differing: tuple[str, ...]) -> Packers:
    """Return what packs a head: all its fields, in this order; then what differs and the stretches between.

    Last come the places of what differs.
    """
    head = next(derive_runs(MESSAGE, sys_flag=host_bits))
    parts = head.parts_around(differing)
    places = [(place, name) for place, name in enumerate(parts) if name in differing]
    return head.as_struct(), itemgetter(*head.names), head.around(differing, parts), places


def _tails(topic: Texts, lengths: Numbers, properties: Sequence[Texts]) -> list[Texts]:
    """Return what follows the body: topic and properties, each behind its length."""
    if isinstance(topic, bytes) and isinstance(lengths, int):
        before, first = _between(topic, lengths), properties[0]
        return [before + first, *properties[1:]] if isinstance(first, bytes) else [before, *properties]
    topics = repeat(topic) if isinstance(topic, bytes) else topic
    columns = [*zip(topics, repeat(lengths) if isinstance(lengths, int) else lengths)]  # noqa: B905  # one may have no end
    made = {each: _between(*each) for each in {*columns}}
    return [[*map(made.__getitem__, columns)], *properties]


def _between(topic: bytes, properties_bytes: int) -> bytes:
    """Return what a record has between body and properties."""
    return middle(len(topic)).pack(len(topic), topic, properties_bytes)


def _joined(first: Sequence[bytes], others: Sequence[Texts]) -> bytes:
    """Return the rows of these columns one after the other. There are as many as the first column has texts."""
    count, width = len(first), len(others) + 1
    pieces = [b"", *[texts if isinstance(texts, bytes) else b"" for texts in others]] * count
    pieces[::width] = first
    for place, texts in enumerate(others, 1):
        if not isinstance(texts, bytes):
            pieces[place::width] = texts if len(texts) == count else texts[:count]
    return b"".join(pieces)

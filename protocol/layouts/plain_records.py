"""Plain records, many at a time: of one topic with at most 127 bytes, with IPv4 hosts, and nothing prepared.

Columns go in, all records come out in one piece. `record_codec.encode_record` is the readable twin; a test holds both equal.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from operator import and_
from typing import Any

from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.protocol.layouts.record import CRC_MASK, HEAD_NAMES, MAGIC_V1, MESSAGE, middle

_HEAD = derive_struct(MESSAGE, sys_flag=0)
PLAIN_HEAD_BYTES = _HEAD.size
"""The size of what is before the body."""


def encode_tails(topic: str, properties: Sequence[bytes]) -> list[bytes]:
    """Return what follows the body in records of a topic: topic and properties, each behind its length."""
    name = topic.encode()
    lengths = [*map(len, properties)]
    pack = middle(len(name)).pack
    if lengths.count(lengths[0]) == len(lengths):
        before = pack(len(name), name, lengths[0])
        return [before + text for text in properties]
    return [pack(len(name), name, length) + text for length, text in zip(lengths, properties, strict=True)]


def encode_plain_records(
    bodies: Sequence[bytes],
    tails: Sequence[bytes],
    sizes: Sequence[int],
    lengths: Sequence[int],
    queue_ids: Sequence[int],
    queue_offsets: Sequence[int],
    physical_offsets: Sequence[int],
    born_timestamps: Sequence[int],
    *,
    flag: int,
    sys_flag: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    reconsume_times: int,
) -> bytes:
    """Return as many records as there are queue offsets. `tails` are as `encode_tails` makes them, `sizes` those
    of the records, `lengths` those of the bodies.
    """
    columns: dict[str, Iterable[Any]] = {
        "size": sizes,
        "magic": repeat(MAGIC_V1),
        "body_crc": map(and_, map(zlib.crc32, bodies), repeat(CRC_MASK)),
        "queue_id": queue_ids,
        "flag": repeat(flag),
        "queue_offset": queue_offsets,
        "physical_offset": physical_offsets,
        "sys_flag": repeat(sys_flag),
        "born_timestamp": born_timestamps,
        "born_host": repeat(born_host),
        "store_timestamp": repeat(store_timestamp),
        "store_host": repeat(store_host),
        "reconsume_times": repeat(reconsume_times),
        "prepared_transaction_offset": repeat(0),
        "body_length": lengths,
    }
    return b"".join(
        chain.from_iterable(zip(map(_HEAD.pack, *[columns[name] for name in HEAD_NAMES]), bodies, tails, strict=False))
    )

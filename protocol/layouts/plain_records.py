"""Plain records, many at a time: of one topic with at most 127 bytes, and nothing prepared.

Columns go in, all records come out in one piece. `record_codec.encode_record` is the readable twin; a test holds both equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product, repeat
from operator import and_
from typing import Any

from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, IPV6_HOST_BYTES
from twisted_mq.protocol.layouts.record import CRC_MASK, HEAD_NAMES, MAGIC_V1, MESSAGE, V6_FLAGS, middle
from twisted_mq.protocol.layouts.record_codec import host_flags

_HEADS = {
    (born, store): (flags, derive_struct(MESSAGE, sys_flag=flags))
    for born, store in product((IPV4_HOST_BYTES, IPV6_HOST_BYTES), repeat=2)
    for flags in (host_flags(bytes(born), bytes(store)),)
}
"""By the lengths of both hosts: the IPv6 bits of the sys flag, and the head for values in the order of HEAD_NAMES."""


def plain_head_bytes(born_host: bytes, store_host: bytes) -> int:
    """Return the size of what is before the body."""
    return _HEADS[len(born_host), len(store_host)][1].size


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
    of the records, `lengths` those of the bodies. The IPv6 bits of the sys flag are those of the hosts.
    """
    host_bits, head = _HEADS[len(born_host), len(store_host)]
    columns: dict[str, Iterable[Any]] = {
        "size": sizes,
        "magic": repeat(MAGIC_V1),
        "body_crc": map(and_, map(crc32, bodies), repeat(CRC_MASK)),
        "queue_id": queue_ids,
        "flag": repeat(flag),
        "queue_offset": queue_offsets,
        "physical_offset": physical_offsets,
        "sys_flag": repeat(sys_flag & ~V6_FLAGS | host_bits),
        "born_timestamp": born_timestamps,
        "born_host": repeat(born_host),
        "store_timestamp": repeat(store_timestamp),
        "store_host": repeat(store_host),
        "reconsume_times": repeat(reconsume_times),
        "prepared_transaction_offset": repeat(0),
        "body_length": lengths,
    }
    return b"".join(
        chain.from_iterable(zip(map(head.pack, *[columns[name] for name in HEAD_NAMES]), bodies, tails, strict=False))
    )

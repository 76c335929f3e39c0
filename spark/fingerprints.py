"""Fingerprints of records: the proof in a checkpoint that what was read is still there, unchanged."""

from __future__ import annotations

import attrs

from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.layouts.record import read_head


@attrs.frozen
class Fingerprint:
    """Identifies a record: physical offset, size in bytes, CRC of the body as stored, store time in ms since 1970."""

    offset: int
    size: int
    crc: int
    stored: int


def fingerprint_of(record: Buffer) -> Fingerprint:
    """Return the fingerprint of the record that begins the bytes. Raises RecordError."""
    head = read_head(record)
    return Fingerprint(head.physical_offset, head.size, head.body_crc, head.store_timestamp)

"""Which keys records have, and their hashes, many records at a time (Apache: IndexService.buildIndex).

The log is walked from record to record, its own bytes say all: so what a producer sent, what a master sent and what a
start finds are indexed alike. `protocol.message_record` is the readable way to the same fields; this one runs once a
message and reads only what it needs.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable

import attrs

from protocol.batch_hash import hashes_of
from protocol.derive import field_offset
from protocol.errors import RecordError
from protocol.flags import MessageSysFlag, transaction_value
from protocol.index_layout import index_key, positive_hash
from protocol.java import from_utf8, java_hash, utf16_length
from protocol.message_properties import (
    KEY_SEPARATOR,
    PROPERTY_KEYS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    decode_property_bytes,
)
from protocol.record_layout import (
    HEAD_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MESSAGE,
    STORE_TIMESTAMP_POSITION,
    SYS_FLAG_POSITION,
    V6_FLAGS,
    read_head,
    read_spans,
)
from storage.commit_log import CommitLog
from storage.index_file import KeyEntry
from storage.mapped_file import MappedFile

_BODY_LENGTH_POSITION = field_offset(MESSAGE, "body_length", sys_flag=0)
_FIELDS = struct.Struct(
    f">ii{SYS_FLAG_POSITION - 8}xi{STORE_TIMESTAMP_POSITION - SYS_FLAG_POSITION - 4}xq"
    f"{_BODY_LENGTH_POSITION - STORE_TIMESTAMP_POSITION - 8}xi"
)
"""size, magic, sys_flag, store_timestamp and body_length of a record with IPv4 hosts."""
_SMALLEST_RECORD = HEAD_BYTES + 3
_UNIQUE_KEY = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX.encode() + b"\x01"
_KEYS = PROPERTY_KEYS.encode() + b"\x01"
_END = 2
"""What ends a property."""
_UNIQUE_KEY_BYTES = len(_UNIQUE_KEY)
_HEAD_AND_LENGTH = HEAD_BYTES + 1
_UNUSUAL_FLAGS = V6_FLAGS | MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
"""IPv6 hosts move the fields; a transaction's messages may have no keys."""
_MOST_TOPIC_PARTS = 4096
_MASK = 0xFFFFFFFF
_HIGHEST_HASH = 0x7FFFFFFF


def keys_of(properties: bytes) -> list[bytes]:
    """What a record is found by: its unique key, then each of its KEYS; of a property given twice the last counts."""
    unique, keys = _last_value(properties, _UNIQUE_KEY), _last_value(properties, _KEYS)
    if unique is None or keys is None:
        return _keys_of_map(decode_property_bytes(properties))
    found = [unique] if unique else []
    return found + [key for key in keys.split(b" ") if key] if keys else found


def _last_value(properties: bytes, mark: bytes) -> bytes | None:
    """The last value of a property; empty where it is missing, None where that is not plain to see."""
    start = properties.rfind(mark)
    if start < 0:
        return b""
    if start and properties[start - 1] != _END:
        return None
    first = start + len(mark)
    end = properties.find(b"\x02", first)
    value = properties[first:end] if end >= 0 else properties[first:]
    return value or None


def _keys_of_map(properties: dict[str, str]) -> list[bytes]:
    unique = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    keys = properties.get(PROPERTY_KEYS, "").split(KEY_SEPARATOR)
    return [key.encode("utf-8", "surrogatepass") for key in (unique, *keys) if key]


def record_keys(topic: str, properties: dict[str, str], sys_flag: int) -> list[str]:
    """The texts that a record is indexed by: the readable twin of all above. Rolled back messages have none."""
    if transaction_value(sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
        return []
    return [index_key(topic, key.decode()) for key in _keys_of_map(properties)]


_Row = tuple[bytes, int, int, int]
"""A key, what its topic adds to the hash, physical offset, store time."""


@attrs.define
class KeyCollector:
    """Walks one log from `position` and collects the keys of what it passes."""

    log: CommitLog
    position: int = 0
    _topic_parts: dict[tuple[bytes, int], int] = attrs.field(init=False, factory=dict)
    """By topic and length of a key."""

    def collect(self, end: int, max_bytes: int) -> list[KeyEntry]:
        """The keys of the records from `position` to `end`, at most about `max_bytes` of the log; moves `position`."""
        rows: list[_Row] = []
        stop = min(end, self.position + max_bytes)
        while self.position < stop:
            before = self.position
            file = self.log.files.find(before)
            if file is not None:
                self.position = file.first_offset + self._walk(
                    file, end - file.first_offset, stop - file.first_offset, rows
                )
            elif before < self.log.min_offset:
                self.position = self.log.min_offset
            if self.position == before:
                break
        return _hashed(rows)

    def _walk(self, file: MappedFile, end: int, stop: int, rows: list[_Row]) -> int:
        """Add the keys of a file's records that begin before `stop` and end before `end`; where to go on.

        Positions count from the file's start; the one behind the file leads to the next.
        """
        mapping, base, read = file.readable.obj, file.first_offset, _FIELDS.unpack_from
        assert isinstance(mapping, mmap.mmap)
        stop, last_topic, last_length, topic_part = min(stop, file.size), b"", -1, 0
        position, last = self.position - base, min(stop, file.size - _SMALLEST_RECORD + 1)
        while position < last:
            size, magic, sys_flag, timestamp, body_length = read(mapping, position)
            behind = position + size
            if magic == MAGIC_BLANK:
                return file.size
            if behind > end or size < _SMALLEST_RECORD:
                return position
            if magic != MAGIC_V1 or sys_flag & _UNUSUAL_FLAGS:
                self._unusual(file, position, rows)
                position = behind
                continue
            topic_start = position + _HEAD_AND_LENGTH + body_length
            topic_end = topic_start + mapping[topic_start - 1]
            topic, properties = mapping[topic_start:topic_end], mapping[topic_end + 2 : behind]
            start = properties.rfind(_UNIQUE_KEY)
            first = start + _UNIQUE_KEY_BYTES
            close = properties.find(b"\x02", first)
            if start < 0 or close <= first or (start and properties[start - 1] != _END) or _KEYS in properties:
                self._add(topic, keys_of(properties), base + position, timestamp, rows)
            else:
                key = properties[first:close]
                if topic != last_topic or close - first != last_length or not key.isascii():
                    last_topic, last_length = topic, close - first
                    topic_part = self._topic_part(topic, key)
                    if not key.isascii():
                        last_length = -1
                rows.append((key, topic_part, base + position, timestamp))
            position = behind
        return file.size if last <= position < stop else position

    def _unusual(self, file: MappedFile, position: int, rows: list[_Row]) -> None:
        """A record with a long topic, IPv6 hosts or of a transaction; what is none has no keys."""
        view = file.readable
        try:
            head = read_head(view, position)
            spans = read_spans(view, position, head)
        except RecordError:
            return
        if transaction_value(head.sys_flag) != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
            topic, properties = view[spans.topic : spans.topic_end], view[spans.properties : spans.end]
            self._add(
                bytes(topic), keys_of(bytes(properties)), file.first_offset + position, head.store_timestamp, rows
            )

    def _add(self, topic: bytes, keys: Iterable[bytes], offset: int, timestamp: int, rows: list[_Row]) -> None:
        rows += [(key, self._topic_part(topic, key), offset, timestamp) for key in keys]

    def _topic_part(self, topic: bytes, key: bytes) -> int:
        """What `topic#` adds to the hash of `topic#key`."""
        length = len(key) if key.isascii() else utf16_length(from_utf8(key))
        part = self._topic_parts.get((topic, length))
        if part is None:
            if len(self._topic_parts) >= _MOST_TOPIC_PARTS:
                self._topic_parts.clear()
            part = java_hash(index_key(from_utf8(topic), "")) * pow(31, length, 1 << 32) & _MASK
            self._topic_parts[topic, length] = part
        return part


def _hashed(rows: list[_Row]) -> list[KeyEntry]:
    hashes = hashes_of([row[0] for row in rows])
    return [
        (
            whole if (whole := (topic_part + part) & _MASK) <= _HIGHEST_HASH else positive_hash(whole),
            offset,
            timestamp,
        )
        for (_, topic_part, offset, timestamp), part in zip(rows, hashes, strict=True)
    ]

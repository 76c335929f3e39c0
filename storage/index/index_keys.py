"""Extracts the keys of a record (Apache: IndexService.buildIndex). `key_collector` finds them in many records at once."""

from __future__ import annotations

from twisted_mq.protocol.flags import MessageSysFlag, transaction_value
from twisted_mq.protocol.layouts.index import index_key
from twisted_mq.protocol.text.properties import (
    KEY_SEPARATOR,
    PROPERTY_KEYS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    decode_property_bytes,
)

_UNIQUE_KEY = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX.encode() + b"\x01"
_KEYS = PROPERTY_KEYS.encode() + b"\x01"
_END = 2
"""The byte that ends a property."""


def keys_of(properties: bytes) -> list[bytes]:
    """Return a record's keys: its unique key, then each of its KEYS. If a property occurs twice, the last one counts."""
    unique, keys = _last_value(properties, _UNIQUE_KEY), _last_value(properties, _KEYS)
    if unique is None or keys is None:
        return _keys_of_map(decode_property_bytes(properties))
    found = [unique] if unique else []
    return found + [key for key in keys.split(b" ") if key] if keys else found


def _last_value(properties: bytes, mark: bytes) -> bytes | None:
    """Return the last value of a property; empty if it is missing, None if that is not certain."""
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
    """Return the texts that a record is indexed by: a readable version of the above. Rolled back messages have none."""
    if transaction_value(sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
        return []
    return [index_key(topic, key.decode()) for key in _keys_of_map(properties)]

"""The two ids of a message: where it is stored (offset id), and the key its producer gave it (unique key).

Offset message id (Apache: MessageDecoder.createMessageId), 16 or 28 bytes in upper hexadecimal:

    offset size name
    0      8|20 store_host             address and port
    ..     8    physical_offset

    Example: 7F000002000051AF00000000000000F0 is offset 240 at 127.0.0.2:20911.

Unique key (Apache: MessageClientIDSetter), 16 or 28 bytes in upper hexadecimal:

    0      4|16 address
    ..     2    pid
    ..     4    salt                   Java: the class loader's hash
    ..     4    elapsed_ms             since the month began
    ..     2    counter
"""

from __future__ import annotations

import datetime
import functools
import struct
from collections.abc import Callable, Sequence

import attrs
import construct

from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.layouts.derive import derive_field, derive_fields, derive_struct, repeated
from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, IPV6_HOST_BYTES, unpack_host, unpack_ip


def _offset_message_id(host_bytes: int) -> construct.Struct:
    return construct.Struct("store_host" / construct.Bytes(host_bytes), "physical_offset" / construct.Int64sb)


def _unique_key(address_bytes: int) -> construct.Struct:
    return construct.Struct(
        "address" / construct.Bytes(address_bytes),
        "pid" / construct.Int16ub,
        "salt" / construct.Int32ub,
        "elapsed_ms" / construct.Int32ub,
        "counter" / construct.Int16ub,
    )


OFFSET_MESSAGE_ID_V4 = _offset_message_id(IPV4_HOST_BYTES)
OFFSET_MESSAGE_ID_V6 = _offset_message_id(IPV6_HOST_BYTES)
UNIQUE_KEY_V4 = _unique_key(4)
UNIQUE_KEY_V6 = _unique_key(16)

_OFFSET_IDS = {
    one.sizeof(): derive_struct(one, "store_host", "physical_offset")
    for one in (OFFSET_MESSAGE_ID_V4, OFFSET_MESSAGE_ID_V6)
}
_UNIQUE_KEYS = {
    one.sizeof(): derive_struct(one, "address", "pid", "salt", "elapsed_ms", "counter")
    for one in (UNIQUE_KEY_V4, UNIQUE_KEY_V6)
}
"""By their sizes in bytes, which are the same for both kinds of ids."""
_PREFIXES = {size: derive_fields(_unique_key(size), "address", "pid", "salt") for size in (4, 16)}
_OFFSET = derive_field(OFFSET_MESSAGE_ID_V4, "physical_offset")
_LENGTHS = tuple(2 * size for size in _OFFSET_IDS)
_CLOCK_SET_BACK_MS = 1_000_000


class MessageIdError(ProtocolError):
    """Text that is no message id or unique key."""


def _unhex(kind: str, text: str) -> bytes:
    """Return the bytes of an id; hexadecimal digits only, no spaces, in one of the two lengths."""
    if len(text) not in _LENGTHS or not text.isalnum():
        raise MessageIdError(f"{kind} of {len(text)} characters, 32 or 56 hexadecimal digits are needed: {text[:60]!r}")
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise MessageIdError(f"{kind} {text!r}: {error}") from error


def offset_message_id(store_host: bytes | memoryview, physical_offset: int) -> str:
    """Return the offset id from the record's 8 or 20 bytes of the store host."""
    return f"{store_host.hex().upper()}{physical_offset & 0xFFFFFFFFFFFFFFFF:016X}"


def offset_message_id_pattern(store_host: bytes) -> str:
    """Return a format for the offset ids of one store host's messages: `%` inserts a physical offset of 0 or more."""
    return f"{store_host.hex().upper()}%016X"


def offset_message_ids(store_host: bytes, physical_offsets: Sequence[int]) -> str:
    """Return the offset ids of a batch's messages, with commas between them."""
    prefix = store_host.hex().upper()
    numbers = _offsets(len(physical_offsets)).pack(*physical_offsets).hex(",", _OFFSET.size).upper()
    return prefix + numbers.replace(",", f",{prefix}")


@functools.lru_cache(maxsize=256)
def _offsets(count: int) -> struct.Struct:
    return repeated(_OFFSET, count)


def decode_offset_message_id(message_id: str) -> tuple[str, int, int]:
    """Return (broker address, port, physical offset). Raises MessageIdError."""
    data = _unhex("message id", message_id)
    store_host, physical_offset = _OFFSET_IDS[len(data)].unpack(data)
    return *unpack_host(store_host), physical_offset


def _month_start(now_ms: int, zone: datetime.tzinfo) -> datetime.datetime:
    moment = datetime.datetime.fromtimestamp(now_ms / 1000, zone)
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _next_month(start: datetime.datetime) -> datetime.datetime:
    return (start + datetime.timedelta(days=32)).replace(day=1)


def _milliseconds(moment: datetime.datetime) -> int:
    return round(moment.timestamp() * 1000)


class UniqueKeyMaker:
    """Makes unique keys for one process: 65536 different ones in the same millisecond."""

    def __init__(
        self,
        ip: bytes,
        pid: int,
        now_ms: Callable[[], int],
        salt: int = 0,
        zone: datetime.tzinfo = datetime.UTC,
    ) -> None:
        """Create a maker. `ip` has 4 or 16 bytes; `salt` distinguishes makers of one process id, e.g. in containers; 32 bits."""
        if len(ip) not in _PREFIXES:
            raise MessageIdError(f"an address of {len(ip)} bytes, 4 or 16 are needed")
        self._prefix = _PREFIXES[len(ip)].pack(ip, pid & 0xFFFF, salt & 0xFFFFFFFF).hex().upper()
        self._now_ms = now_ms
        self._zone = zone
        self._counter = 0
        self._start_ms = 0
        self._next_start_ms = 0

    def make(self) -> str:
        """Return the next key. If the clock is set back by less than 1000 s over the month's begin, it counts as that begin."""
        return self.make_some(1)[0]

    def make_some(self, count: int) -> list[str]:
        """Return the next keys, all of this moment; see `make`."""
        now_ms = self._now_ms()
        if now_ms >= self._next_start_ms:
            start = _month_start(now_ms, self._zone)
            self._start_ms, self._next_start_ms = _milliseconds(start), _milliseconds(_next_month(start))
        elapsed = now_ms - self._start_ms
        if -_CLOCK_SET_BACK_MS < elapsed < 0:
            elapsed = 0
        before = f"{self._prefix}{elapsed & 0xFFFFFFFF:08X}"
        counter = self._counter
        self._counter = (counter + count) & 0xFFFF
        return [f"{before}{number & 0xFFFF:04X}" for number in range(counter, counter + count)]


@attrs.frozen
class UniqueKey:
    """The parts of a unique key; `born_ms` is the likely time of its making."""

    ip: str
    pid: int
    salt: int
    born_ms: int
    counter: int


def decode_unique_key(key: str, now_ms: int, zone: datetime.tzinfo = datetime.UTC) -> UniqueKey:
    """Return the parts of a key made within the last month before `now_ms`. Raises MessageIdError."""
    data = _unhex("unique key", key)
    ip, pid, salt, elapsed, counter = _UNIQUE_KEYS[len(data)].unpack(data)
    start = _month_start(now_ms, zone)
    if _milliseconds(start) + elapsed >= now_ms:
        start = (start - datetime.timedelta(days=1)).replace(day=1)
    return UniqueKey(
        ip=unpack_ip(ip),
        pid=pid,
        salt=salt,
        born_ms=_milliseconds(start) + elapsed,
        counter=counter,
    )

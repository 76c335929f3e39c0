"""MurmurHash3, as Guava computes it for Apache's filters. It reads its input as numbers of 8 bytes, lowest first."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_FIRST, _SECOND = 0x87C37B91114253D5, 0x4CF5AD432745937F


def murmur3_64(data: bytes) -> int:
    """Return the first 64 bits of MurmurHash3 x64 128, seed 0 (Guava: murmur3_128().hashBytes().asLong()), unsigned.

    It is written out here because only few and short texts are hashed, and the libraries for it are C extensions.
    """
    first = second = 0
    whole = len(data) & ~15
    for start in range(0, whole, 16):
        first ^= _mix_first(int.from_bytes(data[start : start + 8], "little"))
        first = (_rotated(first, 27) + second) * 5 + 0x52DCE729 & _MASK
        second ^= _mix_second(int.from_bytes(data[start + 8 : start + 16], "little"))
        second = (_rotated(second, 31) + first) * 5 + 0x38495AB5 & _MASK
    first ^= _mix_first(int.from_bytes(data[whole : whole + 8], "little")) ^ len(data)
    second ^= _mix_second(int.from_bytes(data[whole + 8 :], "little")) ^ len(data)
    first = first + second & _MASK
    second = second + first & _MASK
    return _finished(first) + _finished(second) & _MASK


def _rotated(value: int, count: int) -> int:
    return (value << count | value >> 64 - count) & _MASK


def _mix_first(word: int) -> int:
    return _rotated(word * _FIRST & _MASK, 31) * _SECOND & _MASK


def _mix_second(word: int) -> int:
    return _rotated(word * _SECOND & _MASK, 33) * _FIRST & _MASK


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33

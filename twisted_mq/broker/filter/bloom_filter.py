"""Which expressions a stored message matched, as bits (Apache: BloomFilter, BitsArray, BloomFilterData).

A consumer group of a topic owns a few positions among the filter's bits, found by hashing `group#topic`; a message that
matches the group's expression has all of them set. Bit n is bit n % 8 of byte n / 8, lowest first. With Apache's
defaults, an error rate of 20 % and 32 groups, there are 3 positions among 112 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

_MASK = (1 << 64) - 1
_FIRST, _SECOND = 0x87C37B91114253D5, 0x4CF5AD432745937F


@attrs.frozen
class BloomFilterData:
    """A group's positions, and the number of bits that they were found for."""

    bit_pos: tuple[int, ...] = ()
    bit_num: int = 0


class BloomFilter:
    """The sizes and positions for an error rate in percent and a number of consumer groups (Apache: createByFn)."""

    def __init__(self, error_rate: int, consumers: int) -> None:
        """Raises ValueError for an error rate outside of 1 to 99 and fewer than one group."""
        if not 1 <= error_rate < 100 or consumers < 1:
            raise ValueError(f"a bloom filter with an error rate of {error_rate} % for {consumers} groups")
        rate = error_rate / 100.0
        self.hash_count = math.ceil(math.log(rate) / math.log(0.5))
        bits = math.ceil(consumers * (math.log(1 / rate) / math.log(2)) * (math.log(math.e) / math.log(2)))
        self.bit_count = 8 * math.ceil(bits / 8)

    def positions(self, text: str) -> tuple[int, ...]:
        """The bits of a text: the two halves of its hash, combined (Apache: calcBitPositions)."""
        hashed = murmur3_64(text.encode())
        low, high = hashed & 0xFFFFFFFF, hashed >> 32
        return tuple(self._position(low + count * high) for count in range(1, self.hash_count + 1))

    def _position(self, combined: int) -> int:
        combined &= 0xFFFFFFFF
        return (combined ^ 0xFFFFFFFF if combined >> 31 else combined) % self.bit_count

    def generate(self, text: str) -> BloomFilterData:
        """The positions as they are stored with a consumer's filter."""
        return BloomFilterData(self.positions(text), self.bit_count)

    def is_valid(self, data: BloomFilterData | None) -> bool:
        """Whether positions were made for a filter of this size."""
        return data is not None and data.bit_num == self.bit_count and len(data.bit_pos) == self.hash_count

    def new_bits(self) -> bytearray:
        """All bits of the filter, none of them set."""
        return bytearray(self.bit_count // 8)

    def set_bits(self, bits: bytearray, positions: Iterable[int]) -> None:
        """Set all positions (Apache: hashTo)."""
        for position in positions:
            bits[position >> 3] |= 1 << (position & 7)

    def is_hit(self, bits: bytes, positions: Iterable[int]) -> bool:
        """Whether all positions are set."""
        return all(bits[position >> 3] >> (position & 7) & 1 for position in positions)


def murmur3_64(data: bytes) -> int:
    """The first 64 bits of MurmurHash3 x64 128, seed 0 (Guava: murmur3_128().hashBytes().asLong()), unsigned.

    Written out here, since it hashes a name when a group registers and the libraries for it are C extensions.
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

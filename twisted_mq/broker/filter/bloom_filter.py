"""Records as bits which expressions a stored message matched (Apache: BloomFilter, BitsArray, BloomFilterData).

A consumer group of a topic owns a few positions among the filter's bits, found by hashing `group#topic`; a message that
matches the group's expression has all of them set. Bit n is bit n % 8 of byte n / 8, lowest first. With Apache's
defaults, an error rate of 20 % and 32 groups, there are 3 positions among 112 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from twisted_mq.protocol.text.murmur3 import murmur3_64


@attrs.frozen
class BloomFilterData:
    """A group's positions, and the number of bits for which they were computed."""

    bit_pos: tuple[int, ...] = ()
    bit_num: int = 0


class BloomFilter:
    """The sizes and positions for an error rate in percent and a number of consumer groups (Apache: createByFn)."""

    def __init__(self, error_rate: int, consumers: int) -> None:
        """Create a filter. Raises ValueError for an error rate outside of 1 to 99 or fewer than one group."""
        if not 1 <= error_rate < 100 or consumers < 1:
            raise ValueError(f"a bloom filter with an error rate of {error_rate} % for {consumers} groups")
        rate = error_rate / 100.0
        self.hash_count = math.ceil(math.log(rate) / math.log(0.5))
        bits = math.ceil(consumers * (math.log(1 / rate) / math.log(2)) * (math.log(math.e) / math.log(2)))
        self.bit_count = 8 * math.ceil(bits / 8)

    def positions(self, text: str) -> tuple[int, ...]:
        """Return the bits of a text: the two halves of its hash, combined (Apache: calcBitPositions)."""
        hashed = murmur3_64(text.encode())
        low, high = hashed & 0xFFFFFFFF, hashed >> 32
        return tuple(self._position(low + count * high) for count in range(1, self.hash_count + 1))

    def _position(self, combined: int) -> int:
        combined &= 0xFFFFFFFF
        return (combined ^ 0xFFFFFFFF if combined >> 31 else combined) % self.bit_count

    def generate(self, text: str) -> BloomFilterData:
        """Return the positions as they are stored with a consumer's filter."""
        return BloomFilterData(self.positions(text), self.bit_count)

    def is_valid(self, data: BloomFilterData | None) -> bool:
        """Return True if the positions were computed for a filter of this size."""
        return data is not None and data.bit_num == self.bit_count and len(data.bit_pos) == self.hash_count

    def new_bits(self) -> bytearray:
        """Return all bits of the filter, none of them set."""
        return bytearray(self.bit_count // 8)

    def set_bits(self, bits: bytearray, positions: Iterable[int]) -> None:
        """Set all positions (Apache: hashTo)."""
        for position in positions:
            bits[position >> 3] |= 1 << (position & 7)

    def is_hit(self, bits: bytes, positions: Iterable[int]) -> bool:
        """Return True if all positions are set."""
        return all(bits[position >> 3] >> (position & 7) & 1 for position in positions)

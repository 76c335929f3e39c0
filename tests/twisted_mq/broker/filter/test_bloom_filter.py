"""Sizes, positions and bits; the values are those of Apache's BloomFilter (compared in interop/test_sql_filter.py)."""

from __future__ import annotations

import pytest

from twisted_mq.broker.filter.bloom_filter import BloomFilter, BloomFilterData


@pytest.mark.parametrize(
    "error_rate, consumers, hashes, bits", [(20, 32, 3, 112), (20, 64, 3, 216), (10, 128, 4, 616), (1, 1, 7, 16)]
)
def test_sizes_follow_from_error_rate_and_number_of_groups(error_rate, consumers, hashes, bits):
    bloom = BloomFilter(error_rate, consumers)
    assert (bloom.hash_count, bloom.bit_count) == (hashes, bits)


@pytest.mark.parametrize("error_rate, consumers", [(0, 1), (100, 1), (20, 0)])
def test_impossible_sizes_are_refused(error_rate, consumers):
    with pytest.raises(ValueError):
        BloomFilter(error_rate, consumers)


def test_a_group_hits_what_was_set_for_it():
    bloom = BloomFilter(20, 32)
    mine, other = bloom.generate("GroupA#TopicA"), bloom.generate("GroupB#TopicA")
    bits = bloom.new_bits()
    assert not bloom.is_hit(bits, mine.bit_pos)
    bloom.set_bits(bits, mine.bit_pos)
    assert bloom.is_hit(bits, mine.bit_pos)
    assert not bloom.is_hit(bits, other.bit_pos)
    assert sum(byte.bit_count() for byte in bits) == len(set(mine.bit_pos))


def test_bits_are_counted_from_the_lowest_of_the_first_byte():
    bloom = BloomFilter(1, 1)
    bits = bloom.new_bits()
    bloom.set_bits(bits, [0, 9, 15])
    assert bytes(bits) == b"\x01\x82"


def test_positions_of_another_size_are_not_valid():
    bloom = BloomFilter(20, 32)
    made = bloom.generate("g#t")
    assert bloom.is_valid(made)
    assert not any(
        map(bloom.is_valid, [None, BloomFilterData(made.bit_pos, 216), BloomFilterData(made.bit_pos[:2], 112)])
    )

"""The hash that places filters' bits; longer texts are compared with Guava in interop/test_sql_filter.py."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.text.murmur3 import murmur3_64


@pytest.mark.parametrize(
    "data, hashed",
    [(b"", 0), (b"hello", 0xCBD8A7B341BD9B02), (b"hello, world", 0x342FAC623A5EBC8E)],
)
def test_hash_has_the_published_values(data: bytes, hashed: int) -> None:
    assert murmur3_64(data) == hashed

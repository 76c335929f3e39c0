"""Fields of encoded messages are counted as protobuf's own parser sees them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.protobuf import filled
from twisted_mq.protocol.wire.protobuf_fields import has_more_fields
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc.field_counts import nested_fields

KINDS = sorted({name for request, answer, _, _ in v2.METHODS.values() for name in (request, answer)})


def parsed(message: Any) -> int:
    """Return how many fields a message has on the wire: of strings and numbers one for each, of messages those inside too."""
    count = 0
    for field, value in message.ListFields():
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            count += 3 * len(value)  # the entry, its key and its value
            continue
        values = value if field.is_repeated else [value]
        if field.is_repeated and entry is None and field.cpp_type != field.CPPTYPE_STRING:
            values = values[:1]  # packed
        count += sum(1 + (parsed(one) if entry is not None else 0) for one in values)
    return count


@pytest.mark.parametrize("name", KINDS)
def test_fields_are_those_that_protobuf_parses(name: str) -> None:
    kind = v2.message_class(name)
    for seed in range(20):
        message = filled(kind, Random(seed))
        data, count = message.SerializeToString(), parsed(message)
        nested = nested_fields(kind.DESCRIPTOR)
        assert not has_more_fields(data, nested, count)
        assert count == 0 or has_more_fields(data, nested, count - 1)


def test_numbers_of_fixed_length_are_passed_over() -> None:
    """RocketMQ's messages have none; a stranger's may. Their bytes look like fields here."""
    data = b"\x0d\x08\x01\x08\x01" + b"\x11" + b"\x08\x01" * 4 + b"\x08\x01"
    assert [has_more_fields(data, {}, most) for most in (2, 3)] == [True, False]


def test_a_field_of_an_unknown_kind_is_the_last_one() -> None:
    """The tag is the largest that takes one byte."""
    assert [has_more_fields(b"\x08\x01\x7f", {}, most) for most in (1, 2)] == [True, False]


def test_length_of_three_bytes_says_where_the_next_field_begins() -> None:
    data = b"\x0a\x81\x80\x01" + bytes((1 << 14) + 1) + b"\x08\x01"
    assert [has_more_fields(data, {}, most) for most in (1, 2)] == [True, False]


@pytest.mark.parametrize("field", [b"\x0d" + b"\x0c" * 4, b"\x09" + b"\x0c" * 8], ids=["four bytes", "eight bytes"])
def test_number_of_fixed_length_ends_where_the_next_field_begins(field: bytes) -> None:
    """Each byte of these numbers looks like a field that has no value."""
    data = field * 3
    assert [has_more_fields(data, {}, most) for most in (2, 3)] == [True, False]


@given(st.binary(max_size=200), st.integers(0, 20))
def test_any_bytes_are_counted(data: bytes, most: int) -> None:
    nested = nested_fields(v2.SendMessageRequest.DESCRIPTOR)
    for start in (b"", b"\x0a\x05", b"\x0b", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"):
        assert has_more_fields(start + data, nested, most) in (True, False)


def test_count_ends_where_it_is_decided() -> None:
    class Watched(bytes):
        looked = 0

        def __getitem__(self, at: Any) -> Any:
            Watched.looked += 1
            return super().__getitem__(at)

    assert has_more_fields(Watched(b"\x0a\x00" * 100_000), nested_fields(v2.SendMessageRequest.DESCRIPTOR), 10)
    assert Watched.looked == 22

"""extFields as they are read and written equal the declared layout."""

from __future__ import annotations

import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import CommandError
from twisted_mq.protocol.wire.extfields import (
    EXT_FIELD,
    SHORT_LENGTH,
    binary_name,
    decode_binary_fields,
    encode_binary_fields,
    spans_of,
    value_length,
)

TEXTS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=300)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=6)
EXT_FIELDS = construct.GreedyRange(EXT_FIELD)


def declared(pairs: list[tuple[str, str]]) -> bytes:
    return EXT_FIELDS.build([{"name": name.encode(), "value": value.encode()} for name, value in pairs])


@given(PAIRS)
def test_fields_are_written_as_declared(pairs: list[tuple[str, str]]) -> None:
    fields = dict(pairs)
    assert encode_binary_fields(fields) == declared(list(fields.items()))


@given(PAIRS)
def test_fields_are_read_as_declared(pairs: list[tuple[str, str]]) -> None:
    raw = declared(pairs)
    read = [(field.name, field.value) for field in EXT_FIELDS.parse(raw)]
    assert decode_binary_fields(raw) == {name.decode(): value.decode() for name, value in read}
    spans = spans_of(raw)
    if len(dict(pairs)) < len(pairs):
        assert spans is None
    else:
        assert spans is not None
        assert [(name, raw[span]) for name, span in spans.items()] == read


@given(TEXTS, st.binary(max_size=255))
def test_parts_of_a_field_are_as_declared(name: str, value: bytes) -> None:
    whole = EXT_FIELD.build({"name": name.encode(), "value": value})
    assert binary_name(name) + value_length(len(value)) + value == whole
    assert binary_name(name) + SHORT_LENGTH % len(value) + value == whole


@pytest.mark.parametrize("size", [1, 1 << 8, 1 << 16, 1 << 24])
def test_a_value_that_leads_past_the_end_is_refused_with_its_size(size: int) -> None:
    with pytest.raises(CommandError, match=f"a value of {size} bytes"):
        decode_binary_fields(binary_name("a") + value_length(size))

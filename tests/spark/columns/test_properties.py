"""The properties of a batch equal what the protocol's decoder says of each text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.spark.columns.properties import MAP_TYPE, PropertyTexts, parse_properties

PIECES = st.sampled_from(
    [b"\x01", b"\x02", b"a", b"b", b"TAGS", b"KEYS", "é".encode(), b"\xff", b"UNIQ_KEY", b" ", b"long name"]
)
TEXTS = st.lists(st.lists(PIECES, max_size=9).map(b"".join), max_size=8)


def maps(texts: list[bytes]) -> list[dict[str, str]]:
    array = parse_properties(PropertyTexts(pa.array(texts, pa.binary()))).as_map()
    array.validate(full=True)
    assert array.type == MAP_TYPE
    return [dict(row) for row in array.to_pylist()]


@given(TEXTS)
def test_maps_equal_the_protocols_decoder(texts: list[bytes]) -> None:
    assert maps(texts) == [decode_property_bytes(text) for text in texts]


@given(TEXTS, st.sampled_from(["TAGS", "a", "é", "UNIQ_KEY", "long name", "a long name", "absent"]))
def test_one_property_of_each_row(texts: list[bytes], name: str) -> None:
    stored = PropertyTexts(pa.array(texts, pa.binary()))
    values = [decode_property_bytes(text).get(name) for text in texts]
    assert stored.value_of(name).to_pylist() == values
    assert parse_properties(stored).value_of(name).to_pylist() == values


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"TAGS\x01a\x02",
        b"TAGS\x01a",
        b"TAGS\x01a\x02KEYS\x01k",
        b"TAGS\x01a\x02TAGS\x01b\x02",
        b"TAGS\x01\x02KEYS\x01k\x02",
        b"\x01a\x02KEYS\x01k\x02",
        b"\x02\x02KEYS\x01k\x02",
        b"no separator",
        b"name\x01value\x01more\x02",
        b"TAGS\x01\xff\x02",
    ],
    ids=lambda text: repr(text),
)
def test_odd_texts_between_plain_ones(text: bytes) -> None:
    plain = b"KEYS\x01k1\x02WAIT\x01true\x02"
    for texts in ([text], [plain, text], [text, plain], [plain, text, text, plain], [plain[:-1], text, plain[:-1]]):
        assert maps(texts) == [decode_property_bytes(row) for row in texts]


def test_more_names_than_bits() -> None:
    texts = [b"".join(b"n%d\x01v\x02" % number for number in range(start, start + 40)) for start in (0, 40)]
    texts.append(b"n1\x01first\x02n2\x01x\x02n1\x01last\x02")
    assert maps(texts) == [decode_property_bytes(text) for text in texts]

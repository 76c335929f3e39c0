"""ExtFields that recur are read in one go, with the same result as field by field, and take a bounded amount of memory."""

from __future__ import annotations

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import CommandError, HeaderError
from twisted_mq.protocol.headers import GetRouteInfoRequestHeader, SendMessageRequestHeaderV2
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.extfields import decode_binary_fields, encode_binary_fields, spans_of
from twisted_mq.protocol.wire.field_templates import (
    LEARN_EVERY,
    MAX_TEMPLATE_BYTES,
    MAX_TEMPLATES,
    FieldTemplates,
    Template,
)
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.protocol.wire.header_fields import read_fields


class Pair(msgspec.Struct):
    """Result of reading the tests' fields `ab`, a number, and `c`, a text."""

    number: int
    text: str


FIELDS = {"ab": "100", "c": "xyz", "unknown": "1"}
RAW = encode_binary_fields(FIELDS)


def templates(digits: int = 9) -> FieldTemplates:
    return FieldTemplates(Pair, {b"ab": "number", b"c": "text"}, {b"ab": digits, b"c": 0})


def learn(known: FieldTemplates, **changes: str) -> bytes:
    fields = FIELDS | changes
    raw = encode_binary_fields(fields)
    known.learn(raw, Pair(int(fields["ab"]), fields["c"]))
    return raw


def fits(template: Template, raw: bytes) -> bool:
    return int.from_bytes(raw, "big") & template.mask == template.fixed


def found(known: FieldTemplates, raw: bytes) -> Template:
    template = known.by_length[len(raw)]
    assert template is not None
    return template


def test_spans_say_where_values_lie() -> None:
    assert RAW == b"\0\2ab\0\0\0\x03100\0\1c\0\0\0\3xyz\0\7unknown\0\0\0\x011"
    assert spans_of(RAW) == {b"ab": slice(8, 11), b"c": slice(18, 21), b"unknown": slice(34, 35)}


def test_a_name_that_comes_twice_has_no_spans() -> None:
    assert spans_of(RAW + encode_binary_fields({"c": ""})) is None


def test_first_template_takes_the_same_bytes_only() -> None:
    known = templates()
    template = found(known, learn(known))
    assert fits(template, RAW)
    assert template.read(RAW) == Pair(100, "xyz")
    assert not fits(template, encode_binary_fields(FIELDS | {"ab": "200"}))


def test_values_that_were_seen_to_vary_are_read() -> None:
    known = templates()
    learn(known)
    template = found(known, learn(known, ab="200"))
    assert template.varying == {b"ab"}
    raw = encode_binary_fields(FIELDS | {"ab": "345"})
    assert fits(template, raw)
    assert template.read(raw) == Pair(345, "xyz")
    template = found(known, learn(known, c="\u00e9z", unknown="2"))
    assert template.varying == {b"ab", b"c", b"unknown"}
    raw = encode_binary_fields(FIELDS | {"ab": "345", "c": "z\u00e9", "unknown": "5"})
    assert fits(template, raw)
    assert template.read(raw) == Pair(345, "z\u00e9")


@pytest.mark.parametrize("changes", [{"ab": "-20"}, {"ab": "1_0"}, {"ab": " 10"}, {"ab": "+10"}, {"ab": "\u06610"}])
def test_numbers_that_are_not_digits_alone_are_left(changes: dict[str, str]) -> None:
    known = templates()
    learn(known)
    template = found(known, learn(known, ab="200"))
    raw = encode_binary_fields(FIELDS | changes)
    assert fits(template, raw)
    with pytest.raises(ValueError, match="not digits alone"):
        template.read(raw)


def test_text_that_is_not_utf8_is_left() -> None:
    known = templates()
    learn(known)
    raw = learn(known, c="123").replace(b"123", b"\xff23")
    template = found(known, raw)
    assert fits(template, raw)
    with pytest.raises(UnicodeDecodeError):
        template.read(raw)


@pytest.mark.parametrize("fields", [{"ab": "12", "c": "xyz3"}, {"ax": "100", "c": "xyz"}])
def test_other_names_and_lengths_do_not_fit(fields: dict[str, str]) -> None:
    known = templates()
    for number in ("200", "300"):
        template = found(known, learn(known, ab=number, c=number, unknown=number[0]))
    raw = encode_binary_fields(fields | {"unknown": "1"})
    assert len(raw) == len(RAW)
    assert not fits(template, raw)


@pytest.mark.parametrize("digits", [1, 9])
def test_number_that_may_not_fit_makes_no_template_where_it_varies(digits: int) -> None:
    known, longer = templates(digits), "0" * digits
    learn(known, ab="1" + longer)
    raw = learn(known, ab="2" + longer)
    assert known.by_length == {len(raw): None}
    for _ in range(LEARN_EVERY):
        learn(known, ab="1" + longer)
    assert known.by_length[len(raw)] is not None


def test_number_and_size_of_templates_are_bounded() -> None:
    known = templates()
    for size in range(2 * MAX_TEMPLATE_BYTES):
        learn(known, c="x" * size)
    assert len(known.by_length) == MAX_TEMPLATES
    assert max(known.by_length) <= MAX_TEMPLATE_BYTES


def test_a_length_gets_the_fields_that_come_more_often() -> None:
    known = templates()
    learn(known)
    other = encode_binary_fields({"xy": "100", "c": "xyz", "unknown": "1"})
    for _ in range(LEARN_EVERY):
        known.learn(other, Pair(0, "xyz"))
    assert fits(found(known, other), other)


SEND_FIELDS = {
    "a": "PG",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "1",
    "f": "0",
    "g": "1795217217214",
    "h": "0",
    "m": "true",
}


def read_by_field(raw: bytes) -> dict[str, object] | str:
    try:
        header = SendMessageRequestHeaderV2(**read_fields(SendMessageRequestHeaderV2, decode_binary_fields(raw)))
    except (HeaderError, CommandError) as error:
        return str(error)
    return attrs.asdict(header)


def read_fast(raw: bytes) -> dict[str, object] | str:
    command = RemotingCommand(310, serialize_type=SerializeType.ROCKETMQ, raw_ext_fields=raw)
    try:
        return attrs.asdict(decode_header(SendMessageRequestHeaderV2, command))
    except (HeaderError, CommandError) as error:
        return str(error)


@given(
    st.lists(st.sampled_from(sorted(SEND_FIELDS)), unique=True),
    st.dictionaries(
        st.sampled_from([*SEND_FIELDS, "j", "Signature"]),
        st.sampled_from(["0", "7", "1", "true", "null", "-", "\u00e9"]),
    ),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=2),
)
def test_whatever_recurs_reads_as_field_by_field(
    order: list[str], changes: dict[str, str], damage: list[tuple[int, int]]
) -> None:
    fields = {name: SEND_FIELDS[name] for name in order} | SEND_FIELDS | changes
    intact = encode_binary_fields(fields)
    changed = bytearray(intact)
    for position, byte in damage:
        changed[position % len(changed)] = byte
    other = encode_binary_fields({name: value[::-1] if name in "beg" else value for name, value in fields.items()})
    for raw in (intact, intact, other, bytes(changed), other, bytes(changed), intact):
        assert read_fast(raw) == read_by_field(raw)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_name_twice_counts_by_its_last_value(repeats: int) -> None:
    raw = encode_binary_fields({"topic": "A"}) + encode_binary_fields({"topic": "B"})
    command = RemotingCommand(105, serialize_type=SerializeType.ROCKETMQ, raw_ext_fields=raw)
    for _ in range(repeats):
        assert decode_header(GetRouteInfoRequestHeader, command) == GetRouteInfoRequestHeader(topic="B")

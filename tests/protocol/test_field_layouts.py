"""Layouts that recur are read in one go, with the same result as field by field, and take a bounded amount of memory."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.command import CommandError, RemotingCommand, SerializeType, decode_binary_fields, encode_binary_fields
from protocol.errors import HeaderError
from protocol.field_layouts import MAX_LAYOUT_BYTES, MAX_LAYOUTS, FieldLayouts, KnownLayout, Layout, cutter, layout_of
from protocol.header_codec import decode_header, read_fields
from protocol.headers import GetRouteInfoRequestHeader, SendMessageRequestHeaderV2

RAW = encode_binary_fields({"ab": "xyz", "c": ""})


def use(layout: Layout) -> KnownLayout:
    return KnownLayout(layout.mask, layout.fixed, cutter(list(layout.slices)), list)


def test_layout_says_where_values_lie_and_which_bytes_are_fixed() -> None:
    assert RAW == b"\0\2ab\0\0\0\3xyz\0\1c\0\0\0\0"
    layout = layout_of(RAW)
    assert layout == Layout(
        names=("ab", "c"),
        slices=(slice(8, 11), slice(18, 18)),
        mask=int.from_bytes(b"\xff" * 8 + b"\x80" * 3 + b"\xff" * 7, "big"),
        fixed=int.from_bytes(b"\0\2ab\0\0\0\3\0\0\0\0\1c\0\0\0\0", "big"),
    )


def test_values_beyond_ascii_have_no_layout() -> None:
    assert layout_of(encode_binary_fields({"a": "\u00e9"})) is None


def test_known_layout_fits_equal_lengths_and_names_only() -> None:
    layouts = FieldLayouts(use)
    layouts.learn(RAW)
    mask, fixed, cut, convert = layouts.by_length[len(RAW)]
    fitting = encode_binary_fields({"ab": "123", "c": ""})
    assert int.from_bytes(fitting, "big") & mask == fixed
    assert convert(cut(fitting.decode("latin-1"))) == ["123", ""]
    for other in ({"ab": "12", "c": "3"}, {"ax": "123", "c": ""}, {"ab": "1\u00e9", "c": ""}):
        raw = encode_binary_fields(other)
        assert len(raw) == len(RAW)
        assert int.from_bytes(raw, "big") & mask != fixed


def test_one_field_is_cut_too() -> None:
    assert cutter([slice(1, 3)])("abcd") == ("bc",)
    assert cutter([])("abcd") == ()


def test_number_and_size_of_layouts_are_bounded() -> None:
    layouts = FieldLayouts(use)
    for size in range(2 * MAX_LAYOUT_BYTES):
        layouts.learn(encode_binary_fields({"a": "x" * size}))
    assert len(layouts.by_length) == MAX_LAYOUTS
    assert max(layouts.by_length) <= MAX_LAYOUT_BYTES


def test_a_length_gets_the_layout_that_comes_more_often() -> None:
    layouts = FieldLayouts(use)
    layouts.learn(RAW)
    other = encode_binary_fields({"xy": "xyz", "c": ""})
    for _ in range(8):
        layouts.learn(other)
    expected = layout_of(other)
    assert expected is not None
    assert layouts.by_length[len(RAW)].fixed == expected.fixed


def test_layouts_of_no_use_are_not_kept() -> None:
    layouts = FieldLayouts(lambda layout: None)
    layouts.learn(RAW)
    assert layouts.by_length == {}


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
    for raw in (intact, intact, bytes(changed), bytes(changed), intact):
        assert read_fast(raw) == read_by_field(raw)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_name_twice_counts_by_its_last_value(repeats: int) -> None:
    raw = encode_binary_fields({"topic": "A"}) + encode_binary_fields({"topic": "B"})
    command = RemotingCommand(105, serialize_type=SerializeType.ROCKETMQ, raw_ext_fields=raw)
    for _ in range(repeats):
        assert decode_header(GetRouteInfoRequestHeader, command) == GetRouteInfoRequestHeader(topic="B")

"""Every derived form equals its construct declaration byte for byte."""

from __future__ import annotations

import io
from typing import Any

import construct
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts import batch_entry as message_batch
from twisted_mq.protocol.layouts import checkpoint, ha, index, queue_entry, timer
from twisted_mq.protocol.layouts import record as record_layout
from twisted_mq.protocol.layouts.derive import (
    Field,
    LayoutError,
    LengthError,
    derive_dtype,
    derive_fields,
    derive_head,
    derive_runs,
    derive_spans,
    derive_struct,
    field_offset,
    field_table,
    least_bytes,
    require_variable,
)

NOT_PLAIN = {"QUEUE_EXTENSION_UNIT", "QUEUE_EXTENSION_END", "TIMER_LOG_BLANK"}
"""Layouts without a fixed size, or with constants: their own tests compare them."""

FIXED = {
    f"{module.__name__.rpartition('.')[2]}.{name}": layout
    for module in (queue_entry, index, checkpoint, ha, timer)
    for name, layout in vars(module).items()
    if isinstance(layout, construct.Struct) and name not in NOT_PLAIN
}
SIZES = {
    "queue_entry.QUEUE_ENTRY": 20,
    "queue_entry.BATCH_QUEUE_ENTRY": 46,
    "index.INDEX_HEADER": 40,
    "index.INDEX_SLOT": 4,
    "index.INDEX_ENTRY": 20,
    "checkpoint.CHECKPOINT": 40,
    "checkpoint.TIMER_CHECKPOINT": 56,
    "ha.SLAVE_REPORT": 8,
    "ha.TRANSFER_HEADER": 12,
    "ha.SWITCH_SLAVE_HANDSHAKE": 16,
    "ha.SWITCH_SLAVE_REPORT": 12,
    "ha.SWITCH_MASTER_HANDSHAKE": 20,
    "ha.EPOCH_ENTRY": 12,
    "ha.SWITCH_TRANSFER_HEADER": 36,
    "timer.TIMER_LOG_UNIT": 52,
    "timer.TIMER_WHEEL_SLOT": 32,
}
"""As Apache's classes declare them."""

HEAD_FLAGS = (0, 0x10, 0x20, 0x30)


def test_every_fixed_layout_has_apache_s_size() -> None:
    assert {name: layout.sizeof() for name, layout in FIXED.items()} == SIZES
    assert {name: derive_struct(layout).size for name, layout in FIXED.items()} == SIZES
    assert {name: derive_dtype(layout).itemsize for name, layout in FIXED.items()} == SIZES


@given(st.sampled_from(sorted(FIXED)), st.data())
def test_any_bytes_of_a_fixed_layout_read_alike_in_all_forms(name: str, data: st.DataObject) -> None:
    layout = FIXED[name]
    raw = data.draw(st.binary(min_size=layout.sizeof(), max_size=layout.sizeof()))
    parsed = layout.parse(raw)
    values = [parsed[field.name] for field in field_table(layout)]
    assert list(derive_struct(layout).unpack(raw)) == values
    assert derive_struct(layout).pack(*values) == raw == layout.build(parsed)
    record = numpy.frombuffer(raw, derive_dtype(layout))
    assert list(record[0].item()) == values
    assert record.tobytes() == raw


def head_values(raw: bytes) -> tuple[dict[str, Any], int]:
    """The leading fields as construct reads them one by one, and where it stopped."""
    stream = io.BytesIO(raw)
    context = construct.Container(_parsing=True, _building=False, _sizing=False, _params=construct.Container())
    for subcon in record_layout.MESSAGE.subcons:
        if subcon.name == "body":
            break
        context[subcon.name] = subcon._parsereport(stream, context, "")
    names = [name for name in context if not name.startswith("_")]
    return {name: context[name] for name in names}, stream.tell()


@given(st.sampled_from(HEAD_FLAGS), st.binary(min_size=112, max_size=112))
def test_any_record_head_reads_alike_in_all_forms(flags: int, raw: bytes) -> None:
    raw = raw[:36] + flags.to_bytes(4, "big") + raw[40:]
    values, size = head_values(raw)
    head = derive_struct(record_layout.MESSAGE, sys_flag=flags)
    assert [field.name for field in field_table(record_layout.MESSAGE, sys_flag=flags)] == list(values)
    assert head.size == size
    assert list(head.unpack_from(raw)) == list(values.values())
    assert head.pack(*values.values()) == raw[:size]
    record = numpy.frombuffer(raw, derive_dtype(record_layout.MESSAGE, sys_flag=flags), count=1)
    assert record.tobytes() == raw[:size]
    for name, value in values.items():
        column = record[name][0]
        assert (column.tobytes() if isinstance(value, bytes) else column.item()) == value


@given(
    st.lists(st.sampled_from(record_layout.HEAD_NAMES), min_size=1, unique=True),
    st.binary(min_size=88, max_size=88),
)
def test_chosen_fields_are_read_in_the_order_in_which_they_are_named(names: list[str], raw: bytes) -> None:
    head = derive_struct(record_layout.MESSAGE, sys_flag=0).unpack(raw)
    values = dict(zip(record_layout.HEAD_NAMES, head, strict=True))
    chosen = derive_fields(record_layout.MESSAGE, *names, sys_flag=0)
    part = raw[: chosen.size]
    assert chosen.unpack(part) == chosen.unpack_from(b"-" + raw, 1) == tuple(values[name] for name in names)
    assert [*chosen.iter_unpack(part * 2)] == [chosen.unpack(part)] * 2


@given(st.permutations(record_layout.HEAD_NAMES), st.binary(min_size=88, max_size=88))
def test_a_head_is_packed_from_values_in_any_order(names: list[str], raw: bytes) -> None:
    head = derive_head(record_layout.MESSAGE, *names, sys_flag=0)
    assert head.pack(*head.unpack(raw)) == raw


@pytest.mark.parametrize("names", [record_layout.HEAD_NAMES[1:], (*record_layout.HEAD_NAMES, "size"), ()])
def test_a_head_without_all_its_names_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(LayoutError, match="the declaration"):
        derive_head(record_layout.MESSAGE, *names, sys_flag=0)


def test_a_field_that_is_not_declared_is_refused() -> None:
    with pytest.raises(LayoutError, match="the code has colour, size, the declaration size"):
        derive_fields(record_layout.MESSAGE, "size", "colour", sys_flag=0)


def test_no_fields_are_read_from_no_bytes() -> None:
    assert derive_fields(record_layout.MESSAGE, sys_flag=0).unpack(b"") == ()


def test_code_that_has_an_order_of_its_own_refuses_another() -> None:
    require_variable(message_batch.BATCH_MESSAGE, "body", "properties")
    with pytest.raises(LayoutError, match="the code has properties, body, the declaration body, properties"):
        require_variable(message_batch.BATCH_MESSAGE, "properties", "body")


@given(st.binary(min_size=20, max_size=20))
def test_batch_and_extension_heads_read_alike(raw: bytes) -> None:
    for layout, names in (
        (message_batch.BATCH_MESSAGE, ["size", "magic", "body_crc", "flag", "body_length"]),
        (queue_entry.QUEUE_EXTENSION_UNIT, ["size", "tags_code", "msg_store_time", "bit_map_size"]),
    ):
        head = construct.Struct(*[subcon for subcon in layout.subcons if subcon.name in names])
        parsed = head.parse(raw)
        assert [field.name for field in field_table(layout)] == names
        assert list(derive_struct(layout).unpack_from(raw)) == [parsed[name] for name in names]


KNOWN = [
    *[
        (record_layout.MESSAGE, {"magic": magic, "sys_flag": flags})
        for magic in (record_layout.MAGIC_V1, record_layout.MAGIC_V2)
        for flags in HEAD_FLAGS
    ],
    (message_batch.BATCH_MESSAGE, {}),
    (queue_entry.QUEUE_EXTENSION_UNIT, {}),
]
"""Layouts with fields of unknown size, and what has to be known to read them."""


@st.composite
def wholes(draw: st.DrawFn) -> tuple[construct.Struct, dict[str, int], bytes]:
    """A layout, what is known of it, and any bytes that construct builds."""
    layout, known = draw(st.sampled_from(KNOWN))
    runs = list(derive_runs(layout, **known))
    followers = {run.follower for run in runs} - {""}
    values: dict[str, Any] = {name: draw(st.binary(max_size=100)) for name in followers}
    for field in (field for run in runs for field in run.fields):
        kind = st.binary(min_size=field.size, max_size=field.size)
        values[field.name] = draw(
            kind
            if field.format.endswith("s")
            else st.integers(-(2 ** (8 * field.size - 1)), 2 ** (8 * field.size - 1) - 1)
        )
    return layout, known, layout.build({**values, **known})


def first_span(layout: construct.Struct, raw: bytes, **known: int) -> tuple[int, int]:
    """Return the begin of the first field of unknown size, and its length."""
    head = derive_struct(layout, **known)
    return head.size, head.unpack_from(raw)[-1]


@given(wholes())
def test_spans_are_where_construct_finds_the_fields(whole: tuple[construct.Struct, dict[str, int], bytes]) -> None:
    layout, known, raw = whole
    begin, length = first_span(layout, raw, **known)
    spans = derive_spans(layout, **known)(b"--" + raw, 2 + begin, length, 2 + len(raw))
    parsed = layout.parse(raw)
    found = [raw[begin - 2 : end - 2] for begin, end in zip(spans[::2], spans[1::2], strict=True)]
    assert found == [parsed[run.follower] for run in derive_runs(layout, **known) if run.follower]
    assert least_bytes(layout, **known) + sum(map(len, found)) == len(raw)


@given(wholes())
def test_with_all_lengths_known_the_whole_reads_alike_in_all_forms(
    whole: tuple[construct.Struct, dict[str, int], bytes],
) -> None:
    layout, known, raw = whole
    parsed = layout.parse(raw)
    lengths = {run.fields[-1].name: len(parsed[run.follower]) for run in derive_runs(layout, **known) if run.follower}
    (run,) = derive_runs(layout, **known, **lengths)
    values = [parsed[field.name] for field in run.fields]
    assert [field.name for field in run.fields] == [subcon.name for subcon in layout.subcons]
    assert list(run.as_struct().unpack(raw)) == values
    assert run.as_struct().pack(*values) == raw
    record = numpy.frombuffer(raw, derive_dtype(layout, **known, **lengths))
    assert record.tobytes() == raw
    assert [column.tobytes() if column.ndim else column.item() for column in record[0]] == values


@given(wholes(), st.data())
def test_lengths_are_refused_where_construct_does_not_end_with_them(
    whole: tuple[construct.Struct, dict[str, int], bytes], data: st.DataObject
) -> None:
    layout, known, raw = whole
    damaged, begin = bytearray(raw), derive_struct(layout, **known).size
    damaged[data.draw(st.integers(begin, len(raw)), label="place") - 1] = data.draw(st.integers(0, 255), label="byte")
    first, length = first_span(layout, bytes(damaged), **known)
    try:
        read = construct.Struct("whole" / layout, "end" / construct.Tell).parse(bytes(damaged)).end == len(raw)
    except construct.ConstructError:
        read = False
    try:
        derive_spans(layout, **known)(bytes(damaged), first, length, len(raw))
    except LengthError:
        assert not read
    else:
        assert read


def test_a_run_that_does_not_end_with_a_length_is_refused() -> None:
    layout = construct.Struct(
        "size" / construct.Int8sb, "kind" / construct.Int8sb, "text" / construct.Bytes(construct.this.size)
    )
    with pytest.raises(LayoutError, match="'kind' is not the length of 'text'"):
        list(derive_runs(layout))


def test_the_record_head_sizes_are_apache_s() -> None:
    assert [derive_struct(record_layout.MESSAGE, sys_flag=flags).size for flags in HEAD_FLAGS] == [88, 100, 100, 112]


def test_the_field_table_names_offset_size_and_format() -> None:
    assert field_table(queue_entry.QUEUE_ENTRY) == [
        Field(0, 8, "physical_offset", "q"),
        Field(8, 4, "size", "l"),
        Field(12, 8, "tags_code", "q"),
    ]


def test_an_offset_is_looked_up_by_name() -> None:
    assert field_offset(record_layout.MESSAGE, "store_host", sys_flag=0x10) == 76
    with pytest.raises(LayoutError, match="'body'"):
        field_offset(record_layout.MESSAGE, "body", sys_flag=0)


def test_without_the_flag_the_head_ends_before_the_hosts() -> None:
    assert field_table(record_layout.MESSAGE)[-1] == Field(40, 8, "born_timestamp", "q")


@pytest.mark.parametrize(
    "layout",
    [
        construct.Struct("a" / construct.Int32sl),
        construct.Struct("a" / construct.Int24ub),
        construct.Struct("a" / construct.PascalString(construct.Int8ub, "utf8")),
    ],
    ids=["little-endian", "three bytes", "no fixed field"],
)
def test_a_layout_without_a_fast_form_is_refused(layout: construct.Struct) -> None:
    with pytest.raises(LayoutError):
        derive_struct(layout)

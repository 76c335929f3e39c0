"""Heads and spans of many records, against those of each by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record import (
    MAGIC_V1,
    MAGIC_V2,
    MESSAGE,
    SMALLEST_RECORD,
    RecordHead,
    RecordSpans,
    read_head,
    read_spans,
)
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.layouts.record_columns import HOST_FIELDS, NUMBER_FIELDS, heads_at, hosts_at, spans_at

HOSTS = st.sampled_from([b"\x7f\0\0\1\0\0\x2a\x9f", bytes(19) + b"\1"])
RECORDS = st.lists(
    st.builds(
        encode_record,
        st.sampled_from([b"", b"T", b"t" * 127, b"t" * 128, b"t" * 300]),
        st.binary(max_size=60),
        st.binary(max_size=60),
        queue_id=st.integers(-(2**31), 2**31 - 1),
        queue_offset=st.integers(-(2**63), 2**63 - 1),
        physical_offset=st.integers(0, 2**63 - 1),
        born_timestamp=st.integers(0, 2**63 - 1),
        born_host=HOSTS,
        store_timestamp=st.integers(0, 2**63 - 1),
        store_host=HOSTS,
    ),
    max_size=6,
)


def starts_of(records: list[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.cumsum([0, *map(len, records)])[:-1].astype(np.int64)


@given(RECORDS)
def test_intact_records_read_as_each_by_itself(records: list[bytes]) -> None:
    data, starts = b"".join(records), starts_of(records)
    heads = heads_at(data, starts)
    spans, sound = spans_at(data, starts, heads)
    assert sound.all()
    alone = [read_head(data, start) for start in starts.tolist()]
    for name in NUMBER_FIELDS:
        assert heads[name].tolist() == [getattr(head, name) for head in alone]
    for name in HOST_FIELDS:
        found = {
            row: packed.tobytes()
            for rows, column in hosts_at(data, starts, heads, name)
            for row, packed in zip(rows.tolist(), column, strict=True)
        }
        assert found == {row: getattr(head, name) for row, head in enumerate(alone)}
    assert spans_of(spans) == [read_spans(data, *pair) for pair in zip(starts.tolist(), alone, strict=True)]


def spans_of(spans: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]) -> list[RecordSpans]:
    return [RecordSpans._make(row) for row in zip(*(column.tolist() for column in spans), strict=True)]


def by_itself(data: bytes, start: int) -> tuple[RecordHead, RecordSpans] | None:
    try:
        head = read_head(data, start)
        return head, read_spans(data, start, head)
    except RecordError:
        return None


@given(RECORDS.filter(bool), st.data())
def test_damaged_records_are_refused_where_each_by_itself_is(records: list[bytes], data: st.DataObject) -> None:
    raw = bytearray(b"".join(records))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 0x10, 0x30, 0x7F, 0x80, 0xFF])
        )
    del raw[data.draw(st.integers(SMALLEST_RECORD, len(raw))) :]
    damaged, starts = bytes(raw), starts_of(records)
    starts = starts[starts <= len(damaged) - SMALLEST_RECORD]
    heads = heads_at(damaged, starts)
    spans, sound = spans_at(damaged, starts, heads)
    sound &= np.isin(heads["magic"], (MAGIC_V1, MAGIC_V2))
    expected = [by_itself(damaged, start) for start in starts.tolist()]
    assert sound.tolist() == [found is not None for found in expected]
    for head, found, places in zip(heads, expected, spans_of(spans), strict=True):
        if found is not None:
            assert {name: head[name].item() for name in NUMBER_FIELDS} == {
                n: getattr(found[0], n) for n in NUMBER_FIELDS
            }
            assert places == found[1]


def test_the_columns_names_are_the_layout_s() -> None:
    leading = [subcon.name for subcon in MESSAGE.subcons][: len(NUMBER_FIELDS) + len(HOST_FIELDS)]
    assert [name for name in leading if name not in HOST_FIELDS] == list(NUMBER_FIELDS)

"""Arrow arrays of bytes and text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.text.java import from_utf8
from twisted_mq.spark.columns.arrow_texts import as_text, invalid_utf8_rows, replace_rows, spans, split_buffers


def test_buffers_of_a_slice_begin_at_zero() -> None:
    offsets, data = split_buffers(pa.array([b"left out", b"ab", b"", b"cde"], pa.binary())[1:])
    assert (offsets.tolist(), data.tobytes()) == ([0, 2, 2, 5], b"abcde")
    offsets, data = split_buffers(pa.array([], pa.binary()))
    assert (offsets.tolist(), data.tobytes()) == ([0], b"")


def test_spans_are_cut_out() -> None:
    data = np.frombuffer(b"name=value;", np.uint8)
    cut = spans(data, np.array([0, 5]), np.array([4, 10]), pa.string())
    assert cut.to_pylist() == ["name", "value"]
    assert spans(data, np.array([], np.int64), np.array([], np.int64), pa.string()).to_pylist() == []


def test_rows_are_replaced_and_others_stay() -> None:
    array = pa.array([b"a", b"b", b"c"])
    assert replace_rows(array, np.array([2, 0]), [b"last", None]).to_pylist() == [None, b"b", b"last"]
    assert replace_rows(array, np.array([], np.int64), []) is array


@given(st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=4).map(str.encode)), max_size=12))
def test_text_equals_java_decoding(rows: list[bytes]) -> None:
    text = as_text(pa.array(rows, pa.binary()))
    text.validate(full=True)
    assert text.to_pylist() == [from_utf8(row) for row in rows]


def test_only_damaged_rows_are_named() -> None:
    assert invalid_utf8_rows(pa.array(["é".encode(), b"\xff", b"ok", b"\xc3"])).tolist() == [1, 3]

"""Walks side by side find what one walk finds, whatever bodies hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.record import MAGIC_V1, MAGIC_V2, MAGICS
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.storage.columns import chain
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.columns.record_columns import intact_records
from twisted_mq.storage.files.mapped_log import LogBytes

HOST = b"\x7f\0\0\1\0\0\x2a\x9f"


def log_of(bodies: list[bytes], topic: bytes = b"T") -> tuple[LogBytes, list[int]]:
    """The records of these bodies, and where each begins."""
    starts, data = [], b""
    for number, body in enumerate(bodies):
        starts.append(len(data))
        data += encode_record(
            topic,
            body,
            b"",
            queue_id=0,
            queue_offset=number,
            physical_offset=len(data),
            born_timestamp=1,
            born_host=HOST,
            store_timestamp=2,
            store_host=HOST,
        )
    return LogBytes(data, "log", 0), starts


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of places of each run of parallel walks."""
    seen: list[int] = []
    walk = chain._side_by_side

    def noted(*of: object) -> object:
        found = walk(*of)  # type: ignore[arg-type]
        seen.append(len(found[0]))
        return found

    monkeypatch.setattr(chain, "_side_by_side", noted)
    return seen


@pytest.mark.parametrize("topic", [b"T", b"long" * 40])
def test_many_records_are_found_side_by_side(steps: list[int], topic: bytes) -> None:
    log, starts = log_of([bytes([number % 251]) * (number * 37 % 400) for number in range(3000)], topic)
    assert chained(log, 0, log.size).tolist() == starts
    assert steps == [3000 - chain.FIRST_STEPS]
    assert len(intact_records(log, chained(log, 0, log.size))) == 3000


def test_only_those_before_the_end_are_given() -> None:
    log, starts = log_of([b"x" * 100] * 2000)
    for end in (0, 1, starts[700], starts[700] + 1, starts[1999], log.size + 5):
        assert chained(log, 0, end).tolist() == [start for start in starts if start < end]
    assert chained(log, starts[5], log.size).tolist() == starts[5:]


def test_a_magic_inside_bodies_leads_nowhere(steps: list[int]) -> None:
    log, starts = log_of([MAGICS[MAGIC_V1] * 25] * 2000)
    assert chained(log, 0, log.size).tolist() == starts
    assert steps[0] < 100


def test_a_whole_record_inside_a_body_leads_nowhere() -> None:
    inner, _ = log_of([b"inner"])
    bodies = [inner.data[:] * 3 if number % 300 == 299 else b"x" * 90 for number in range(3000)]
    log, starts = log_of([bytes(body) for body in bodies])
    assert chained(log, 0, log.size).tolist() == starts


@pytest.mark.parametrize("size", [-1, 0, 90, 95, 2**31 - 1])
def test_places_are_right_up_to_a_wrong_size(size: int) -> None:
    log, starts = log_of([b"x" * 100] * 3000)
    broken = bytearray(log.data)
    broken[starts[1500] : starts[1500] + 4] = (size & 0xFFFFFFFF).to_bytes(4, "big")
    log = LogBytes(bytes(broken), "log", 0)
    found = chained(log, 0, log.size)
    assert found[:1500].tolist() == starts[:1500]
    assert len(intact_records(log, found)) == 1500
    assert (np.diff(found) > 0).all()


def test_a_tail_that_is_cut_off_or_empty_is_no_trouble() -> None:
    log, starts = log_of([b"x" * 100] * 2000)
    for tail in (b"\0" * 70_000, log.data[:150], b"\xff" * 300):
        longer = LogBytes(log.data + tail, "log", 0)
        assert chained(longer, 0, longer.size)[:2000].tolist() == starts
        assert len(intact_records(longer, chained(longer, 0, longer.size))) == 2000
    assert chained(LogBytes(b"", "log", 0), 0, 0).tolist() == []
    assert chained(LogBytes(bytes(1 << 20), "log", 0), 0, 1 << 20).tolist() == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.integers(0, 3000).map(bytes),
            st.sampled_from([MAGICS[MAGIC_V1], MAGICS[MAGIC_V2] * 9, b"\0\0\0\x64" + MAGICS[MAGIC_V1] + bytes(100)]),
        ),
        min_size=30,
        max_size=60,
    ),
    st.integers(1, 30),
    st.data(),
)
def test_one_walk_and_many_find_the_same(bodies: list[bytes], repeated: int, data: st.DataObject) -> None:
    log, starts = log_of(bodies * repeated)
    position = data.draw(st.sampled_from(starts[:50]))
    end = data.draw(st.integers(position, log.size))
    assert chained(log, position, end).tolist() == [start for start in starts if position <= start < end]


def test_zeros_behind_the_records_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is made at full size; the walk into its empty rest took a step for each 91 bytes."""
    log, starts = log_of([b"x" * 100] * 2000)
    sparse = LogBytes(log.data + bytes(4 << 20), "log", 0)
    taken = []
    minimum = np.minimum
    monkeypatch.setattr(chain.np, "minimum", lambda *of: taken.append(1) or minimum(*of))
    assert chained(sparse, 0, sparse.size)[:2000].tolist() == starts
    assert len(taken) < 300

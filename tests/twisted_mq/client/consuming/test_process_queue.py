"""Messages of one queue in flight, and the offset that may be committed."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.client.consuming.process_queue import NOTHING_CONSUMED, FlowLimits, ProcessQueue


@attrs.frozen
class One:
    queue_offset: int
    body: bytes = b"0123456789"


def queue(*offsets: int) -> ProcessQueue:
    held = ProcessQueue()
    held.put([One(offset) for offset in offsets])
    return held


def test_counts_sizes_and_bounds() -> None:
    held = queue(5, 6, 9)
    assert (held.count, held.size_bytes, held.min_offset, held.max_offset, held.span) == (3, 30, 5, 9, 4)
    assert held.holds(One(6)) and not held.holds(One(7))


def test_empty_queue_has_no_offset_to_commit() -> None:
    held = ProcessQueue()
    assert (held.min_offset, held.max_offset, held.span, held.remove([One(1)])) == (-1, -1, 0, NOTHING_CONSUMED)


def test_commit_stops_at_the_first_message_that_is_not_consumed() -> None:
    held = queue(1, 2, 3)
    assert held.remove([One(3)]) == 1
    assert held.remove([One(1)]) == 2
    assert held.remove([One(2)]) == 4


def test_message_put_twice_counts_once() -> None:
    held = queue(1, 1)
    assert (held.count, held.size_bytes) == (1, 10)


def test_clear_lets_all_go() -> None:
    held = queue(1, 2)
    held.clear()
    assert (held.count, held.size_bytes, held.min_offset, held.max_offset) == (0, 0, -1, 2)


def test_pull_expires_after_two_minutes() -> None:
    held = ProcessQueue(last_pull_seconds=100)
    assert (held.pull_expired(220), held.pull_expired(220.1)) == (False, True)


def test_flow_limits_name_what_is_exceeded() -> None:
    limits = FlowLimits(max_count=2, max_size_bytes=25, max_span=10)
    assert limits.exceeded(queue(1, 2)) is None
    assert limits.exceeded(queue(1, 2, 3)) == "3 messages held, the limit is 2"
    assert FlowLimits(max_size_bytes=25).exceeded(queue(1, 2, 3)) == "30 bytes held, the limit is 25"
    assert limits.exceeded(queue(1, 20)) == "offsets held span 19, the limit is 10"


@given(st.permutations(range(12)), st.integers(1, 4))
def test_committed_offset_is_always_the_first_unconsumed_one(order: list[int], step: int) -> None:
    held = queue(*range(12))
    consumed: set[int] = set()
    for start in range(0, 12, step):
        batch = order[start : start + step]
        consumed.update(batch)
        expected = next((offset for offset in range(12) if offset not in consumed), 12)
        assert held.remove([One(offset) for offset in batch]) == expected
    assert (held.count, held.size_bytes) == (0, 0)

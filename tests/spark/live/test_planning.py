"""Stretches, cuts and limits: pure rules."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.planning import limited, split, stretches
from twisted_mq.spark.live.pulling import Stretch

A, B, C = (MessageQueue("T", "broker-a", number) for number in range(3))


def test_stretches_lie_between_what_both_know() -> None:
    assert stretches({B: 5, A: 1, C: 2}, {A: 4, B: 5, MessageQueue("New", "broker-a", 0): 9}) == [Stretch(A, 1, 4)]


def test_larger_stretches_are_cut_into_more_parts() -> None:
    assert split([Stretch(A, 0, 10), Stretch(B, 100, 130)], 4) == [
        Stretch(A, 0, 10),
        Stretch(B, 100, 110),
        Stretch(B, 110, 120),
        Stretch(B, 120, 130),
    ]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(1, 50))
def test_cuts_leave_nothing_out(sizes: list[int], least: int) -> None:
    whole = [Stretch(MessageQueue("T", "b", number), 7, 7 + size) for number, size in enumerate(sizes)]
    parts = split(whole, least)
    assert all(part.start < part.end for part in parts)
    for one in whole:
        of_one = [part for part in parts if part.queue == one.queue]
        assert of_one[0].start == one.start and of_one[-1].end == one.end
        assert all(first.end == second.start for first, second in itertools.pairwise(of_one))


def test_a_limit_is_shared_by_what_queues_are_behind() -> None:
    start, end = {A: 0, B: 0, C: 5}, {A: 100, B: 300, C: 5}
    assert limited(start, end, 40) == {A: 10, B: 30, C: 5}
    assert limited(start, end, 400) == end


def test_a_limit_below_one_message_lets_one_pass() -> None:
    assert limited({A: 0, B: 0}, {A: 5, B: 50}, 0.5) == {A: 0, B: 1}


def test_bytes_are_shared_by_the_size_of_messages() -> None:
    assert limited({A: 0, B: 0}, {A: 100, B: 100}, 5500, {A: 10.0, B: 100.0}) == {A: 50, B: 50}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 200)), min_size=1, max_size=6), st.integers(1, 300))
def test_a_limit_is_kept_and_the_query_goes_on(queues: list[tuple[int, int]], most: int) -> None:
    start = {MessageQueue("T", "b", number): begin for number, (begin, _) in enumerate(queues)}
    end = {queue: start[queue] + size for queue, (_, size) in zip(start, queues, strict=True)}
    found = limited(start, end, most)
    taken = sum(found[queue] - start[queue] for queue in start)
    assert all(start[queue] <= found[queue] <= end[queue] for queue in start)
    assert taken <= most
    assert taken > 0 or start == end

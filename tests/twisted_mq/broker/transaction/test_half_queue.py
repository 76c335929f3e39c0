"""Ended half messages, and operations that must be read again after a restart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.broker.transaction.half_queue import HalfQueue


def come_to(queue: HalfQueue, half_offset: int) -> None:
    """The check's walk ends there."""
    queue.half_offset = half_offset
    queue.forget_passed()


def test_a_decision_counts_before_and_after_it_is_written_and_once():
    queue = HalfQueue(0, half_offset=5, op_offset=2)
    assert (queue.end(6), queue.is_over(6), queue.is_over(5)) == (6, True, False)
    queue.read_operation(2, [6], half_end=9)
    assert (queue.op_offset, queue.done_op_offset) == (3, 2)
    assert (queue.pass_over(5), queue.pass_over(6), queue.pass_over(6)) == (False, True, False)
    assert (queue.done_op_offset, queue.is_over(6)) == (3, False)


def test_an_operation_is_done_when_all_its_messages_were_passed():
    queue = HalfQueue(0, 0, 0)
    queue.read_operation(0, [0, 2], 4)
    queue.read_operation(1, [1], 4)
    done = [(queue.pass_over(half), queue.done_op_offset) for half in (1, 0, 2)]
    assert done == [(True, 0), (True, 0), (True, 2)]


def test_an_empty_operation_is_done_at_once():
    queue = HalfQueue(0, 0, 7)
    queue.read_operation(7, [], 0)
    assert (queue.op_offset, queue.done_op_offset) == (8, 8)


def test_a_decision_about_an_earlier_message_is_about_the_one_that_stands_for_it():
    queue = HalfQueue(0, 0, 0)
    queue.renew(0, 10)
    queue.renew(10, 20)
    assert [queue.newest(half) for half in (0, 10, 20, 1)] == [20, 20, 20, 1]
    assert (queue.end(0), queue.is_over(10), queue.is_over(20)) == (20, True, True)
    assert queue.pass_over(20)
    assert [queue.newest(half) for half in (0, 10)] == [0, 10]


def test_what_was_given_up_stands_for_nothing():
    queue = HalfQueue(0, 0, 0)
    queue.renew(0, 10)
    queue.resolve(10)
    assert queue.newest(0) == 0


def test_a_decision_about_a_message_renewed_before_a_restart_waits_for_the_renewed_one():
    """The broker restarted: 3 lies before the walk, its renewed message 8 behind; the end was 9 when the decision was read."""
    queue = HalfQueue(0, half_offset=5, op_offset=0)
    queue.read_operation(0, [3], half_end=9)
    come_to(queue, 8)
    assert queue.done_op_offset == 0
    assert queue.pass_over(8, first=3)
    assert queue.done_op_offset == 1


def test_a_decision_that_no_message_can_be_left_for_is_forgotten():
    queue = HalfQueue(0, half_offset=5, op_offset=0)
    queue.read_operation(0, [3], half_end=9)
    come_to(queue, 9)
    assert (queue.done_op_offset, queue.pass_over(3)) == (1, False)


def test_a_decision_that_is_not_written_yet_is_kept_and_read_later():
    queue = HalfQueue(0, 0, 0)
    queue.end(1)
    come_to(queue, 4)
    assert queue.is_over(1)
    queue.read_operation(0, [1], half_end=4)
    come_to(queue, 5)
    assert (queue.is_over(1), queue.done_op_offset) == (False, 1)


@given(st.lists(st.lists(st.integers(0, 20), max_size=5), max_size=6), st.permutations(range(21)))
def test_all_operations_are_done_once_every_message_was_passed(operations: list[list[int]], order: list[int]) -> None:
    queue = HalfQueue(0, 0, 0)
    for op_offset, halves in enumerate(operations):
        queue.read_operation(op_offset, halves, 21)
    listed = {half for halves in operations for half in halves}
    assert {half for half in order if queue.pass_over(half)} == listed
    assert queue.done_op_offset == len(operations)

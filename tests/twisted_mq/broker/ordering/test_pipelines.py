"""The next message of a producer's pipeline, and repeats."""

from __future__ import annotations

import pytest

from twisted_mq.broker.ordering.pipelines import MOST_STRETCHES, NotNext, Pipelines
from twisted_mq.protocol.messages.order_mark import OrderMark


def mark(sequence: int, base: int = 1, queue: int = 0) -> OrderMark:
    return OrderMark(7, queue, 3, base, sequence)


def stored(pipelines: Pipelines, *sequences: int, first_offset: int = 100) -> None:
    for number, sequence in enumerate(sequences):
        assert pipelines.place(mark(sequence)) is None
        pipelines.appended(mark(sequence), first_offset + number)


def expected(pipelines: Pipelines, order: OrderMark) -> int:
    with pytest.raises(NotNext) as caught:
        pipelines.place(order)
    return caught.value.expected


def test_messages_are_taken_one_after_the_other_and_repeats_found():
    pipelines = Pipelines(3)
    stored(pipelines, 1, 2, 3)
    assert [pipelines.place(mark(sequence)) for sequence in (1, 2, 3, 4)] == [100, 101, 102, None]
    assert expected(pipelines, mark(5)) == 4


def test_pipeline_begins_with_its_base():
    pipelines = Pipelines(3)
    assert expected(pipelines, mark(6, base=5)) == 5
    assert pipelines.place(mark(5, base=5)) is None
    pipelines.appended(mark(5, base=5), 40)
    assert pipelines.place(mark(5, base=5)) == 40
    assert expected(pipelines, mark(4)) == 6, "it is not known where that was stored, or whether"


def test_queues_of_a_topic_that_moves_as_one_count_for_themselves():
    pipelines = Pipelines(3)
    stored(pipelines, 1, 2)
    assert pipelines.place(mark(1, queue=1)) is None
    assert pipelines.place(mark(2)) == 101


def test_messages_of_plain_producers_in_between():
    pipelines = Pipelines(3)
    stored(pipelines, 1, 2)
    assert pipelines.place(mark(3)) is None
    pipelines.appended(mark(3), 105)
    assert [pipelines.place(mark(sequence)) for sequence in (1, 2, 3)] == [100, 101, 105]


def test_message_that_was_given_up_before_it_was_stored_is_no_repeat():
    pipelines = Pipelines(3)
    stored(pipelines, 1, 2)
    assert pipelines.place(mark(4, base=4)) is None
    pipelines.appended(mark(4, base=4), 102)
    assert expected(pipelines, mark(3)) == 5
    assert [pipelines.place(mark(sequence)) for sequence in (1, 2, 4)] == [100, 101, 102]


def test_newer_leader_begins_anew():
    pipelines = Pipelines(3)
    stored(pipelines, 1, 2)
    pipelines.led_by(4)
    assert pipelines.leader == 4
    assert pipelines.place(mark(1)) is None


def test_what_is_kept_is_bounded():
    pipelines = Pipelines(3)
    for sequence in range(1, MOST_STRETCHES + 3):
        pipelines.appended(mark(sequence), 2 * sequence)
    assert pipelines.place(mark(3)) == 6
    assert expected(pipelines, mark(2)) == MOST_STRETCHES + 3

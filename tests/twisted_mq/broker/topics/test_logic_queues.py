"""Offsets of logical queues and the pieces that hold them; and which mappings a broker takes over."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from twisted_mq.broker.topics.logic_queues import (
    bounded_offset,
    check_kept,
    check_pieces,
    logical_offset,
    physical_offset,
    piece_after,
    piece_at,
)
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.protocol.bodies import (
    DataVersion,
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)

A = LogicQueueMappingItem(gen=0, queue_id=0, bname="a", logic_offset=0)
B = LogicQueueMappingItem(gen=1, queue_id=3, bname="b", logic_offset=10_000)
OPEN = LogicQueueMappingItem(gen=2, queue_id=1, bname="a", logic_offset=-1)
PIECES = (A, B, OPEN)


@pytest.mark.parametrize(
    ("offset", "piece"), [(-1, A), (0, A), (9_999, A), (10_000, B), (2**62, B)], ids=lambda one: str(one)[:8]
)
def test_an_offset_belongs_to_the_last_piece_that_begins_before_it(offset: int, piece: LogicQueueMappingItem):
    assert piece_at(PIECES, offset) is piece


def test_a_piece_that_begins_nowhere_yet_holds_nothing():
    assert (piece_at((OPEN,), 0), piece_after(PIECES, A), piece_after(PIECES, B)) == (None, B, None)
    assert bounded_offset(OPEN, 5) == -1


def test_offsets_of_a_piece_are_counted_from_where_it_begins():
    assert (logical_offset(B, 7), physical_offset(B, 10_007), bounded_offset(B, 7)) == (10_007, 7, 10_007)
    closed = attrs.evolve(B, start_offset=2, end_offset=5)
    assert [bounded_offset(closed, physical) for physical in (0, 2, 4, 9)] == [10_000, 10_000, 10_002, 10_003]


@pytest.mark.parametrize(
    "pieces",
    [
        (attrs.evolve(A, gen=-1),),
        (attrs.evolve(A, bname=None),),
        (attrs.evolve(A, start_offset=5, end_offset=4),),
        (B, A),
        (OPEN, attrs.evolve(B, gen=3)),
        (attrs.evolve(A, end_offset=10_000), B),
    ],
    ids=["negative", "nobody's", "ends before it begins", "backwards", "open in the middle", "overlapping"],
)
def test_pieces_that_do_not_follow_each_other_are_refused(pieces: Any):
    with pytest.raises(ValueError, match=r"illegal|endOffset|gen|offset"):
        check_pieces(pieces)


def test_what_was_said_of_a_piece_stays():
    check_kept((A, B), (B, OPEN), same_epoch=False)
    check_kept((OPEN,), (attrs.evolve(OPEN, logic_offset=20_000),), same_epoch=True)
    for new in ((), (attrs.evolve(A, queue_id=9), B), (attrs.evolve(A, logic_offset=5), B)):
        with pytest.raises(ValueError, match=r"empty|changed"):
            check_kept((A, B), new, same_epoch=False)
    with pytest.raises(ValueError, match="leader is different"):
        check_kept((A,), (A, B), same_epoch=True)


def mapping(epoch: int = 1, **queues: Any) -> TopicQueueMappingDetail:
    hosted = {int(name[1:]): list(pieces) for name, pieces in queues.items()}
    return TopicQueueMappingDetail(topic="T", total_queues=2, bname="a", epoch=epoch, hosted_queues=hosted)


def test_a_broker_leads_the_queues_whose_last_piece_is_its_own():
    told: list[str] = []
    static = StaticTopics("a", lambda: 5, on_change=[lambda: told.append("changed")])
    static.update(mapping(q0=(A,), q1=(A, B)))
    assert (static.led("T", 0), static.led("T", 1), static.led("T", 2), static.led("U", 0)) == ([A], None, None, None)
    info = TopicQueueMappingInfo(topic="T", total_queues=2, bname="a", epoch=1, curr_id_map={0: 0})
    assert (static.shown(), static.shown(["U"]), told) == ({"T": info}, {}, ["changed"])
    assert static.data_version == DataVersion().next_version(5, 0)
    static.delete("T")
    assert (static.get("T"), static.topics, len(told)) == (None, {}, 2)


def test_a_newer_mapping_keeps_the_queues_that_it_does_not_name():
    static = StaticTopics("a", lambda: 5)
    static.update(mapping(q0=(A,)))
    static.update(mapping(epoch=2, q1=(attrs.evolve(A, queue_id=1),)))
    known = static.get("T")
    assert known is not None
    assert (sorted(known.hosted_queues), known.epoch) == ([0, 1], 2)


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (mapping(epoch=0, q0=(A,)), "small epoch"),
        (attrs.evolve(mapping(epoch=2, q0=(A,)), scope="other"), "unmatched scope"),
        (mapping(epoch=1), "equal epoch"),
        (attrs.evolve(mapping(epoch=2), bname="b"), "broker name"),
    ],
    ids=["older", "of another scope", "lacks a queue", "of another broker"],
)
def test_a_mapping_that_contradicts_what_is_known_is_refused(later: TopicQueueMappingDetail, why: str):
    static = StaticTopics("a", lambda: 5)
    static.update(mapping(q0=(A,)))
    with pytest.raises(ValueError, match=why):
        static.update(later)
    assert static.get("T") == mapping(q0=(A,))


def test_force_takes_an_older_mapping_too():
    static = StaticTopics("a", lambda: 5)
    static.update(mapping(epoch=7, q0=(A,)))
    static.update(mapping(epoch=1, q1=(attrs.evolve(A, queue_id=1),)), force=True)
    known = static.get("T")
    assert known is not None
    assert (sorted(known.hosted_queues), known.epoch) == ([0, 1], 1)

"""Answers to pulls of logical queues, from what a piece of the queue answered."""

from __future__ import annotations

import pytest

from twisted_mq.broker.processors.mapped_pulls import Pulled, from_pieces, shown
from twisted_mq.protocol.bodies import LogicQueueMappingItem
from twisted_mq.protocol.codes import ResponseCode

FOUND, MOVED = ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED
NOT_FOUND, AGAIN = ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY
OLD = LogicQueueMappingItem(gen=0, queue_id=0, bname="a", logic_offset=0, start_offset=0, end_offset=8)
NEW = LogicQueueMappingItem(gen=1, queue_id=2, bname="b", logic_offset=100, start_offset=5)
UNPLACED = LogicQueueMappingItem(gen=1, queue_id=2, bname="b", logic_offset=-1)
ALONE = LogicQueueMappingItem(gen=0, queue_id=0, bname="a", logic_offset=0)


@pytest.mark.parametrize(
    ("pieces", "piece", "asked", "answer", "expected", "following"),
    [
        pytest.param((OLD, NEW), NEW, 6, Pulled(FOUND, 7, 5, 9), Pulled(FOUND, 7, 5, 9), NEW, id="found"),
        pytest.param((OLD, NEW), OLD, 1, Pulled(NOT_FOUND, 3, 3, 8), Pulled(MOVED, 3, 3, 8), OLD, id="deleted"),
        pytest.param((OLD, NEW), NEW, 5, Pulled(MOVED, 7, 6, 9), Pulled(AGAIN, 6, 6, 9), NEW, id="deleted, not the first"),
        pytest.param((OLD, NEW), NEW, 12, Pulled(MOVED, 7, 5, 9), Pulled(MOVED, 9, 5, 9), NEW, id="past the end"),
        pytest.param((OLD, NEW), NEW, 12, Pulled(NOT_FOUND, 7, 5, 9), Pulled(NOT_FOUND, 7, 5, 9), NEW, id="waits"),
        pytest.param((OLD, NEW), OLD, 8, Pulled(NOT_FOUND, 8, 0, 8), Pulled(AGAIN, 5, 5, 5), NEW, id="next piece"),
        pytest.param((OLD, UNPLACED), OLD, 8, Pulled(MOVED, 8, 0, 8), Pulled(NOT_FOUND, 8, 0, 8), OLD, id="not placed"),
        pytest.param((ALONE,), ALONE, 9, Pulled(MOVED, 3, 0, 8), Pulled(NOT_FOUND, 8, 0, 8), ALONE, id="past the only piece"),
    ],
)  # fmt: skip
def test_reader_goes_on_where_the_pieces_say(
    pieces: tuple[LogicQueueMappingItem, ...],
    piece: LogicQueueMappingItem,
    asked: int,
    answer: Pulled,
    expected: Pulled,
    following: LogicQueueMappingItem,
) -> None:
    assert from_pieces(answer, asked, pieces, piece) == (expected, following)


@pytest.mark.parametrize(
    ("piece", "answer", "expected"),
    [
        pytest.param(NEW, Pulled(FOUND, 7, 5, 9), {"nextBeginOffset": "102", "minOffset": "100", "maxOffset": "104",
                                                   "offsetDelta": "95"}, id="the last piece"),
        pytest.param(OLD, Pulled(FOUND, 10, 2, 12), {"nextBeginOffset": "8", "minOffset": "2", "maxOffset": "100",
                                                     "offsetDelta": "0"}, id="a piece that has ended"),
    ],
)  # fmt: skip
def test_answer_names_offsets_of_the_logical_queue(
    piece: LogicQueueMappingItem, answer: Pulled, expected: dict[str, str]
) -> None:
    assert shown(answer, (OLD, NEW), piece) == expected

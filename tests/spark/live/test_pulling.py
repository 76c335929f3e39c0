"""Pulls of a stretch: order, what comes short, what is gone."""

from __future__ import annotations

import random

import pytest

from tests.spark.live.scripted import ScriptedConnection, ScriptedQueue
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.errors import Behind, OffsetsLost, PeerSilent
from twisted_mq.spark.live.pulling import PullLimits, PullSelection, Stretch, StretchPull

EVERYTHING = PullSelection()
QUEUE = MessageQueue("Orders", "broker-a", 2)


def pull(
    start: int, end: int, *, fail: bool = True, selection: PullSelection = EVERYTHING, in_flight: int = 4
) -> StretchPull:
    limits = PullLimits(messages=10, in_flight=in_flight)
    return StretchPull(Stretch(QUEUE, start, end), "G", selection, limits, fail_on_data_loss=fail)


def offsets(bodies: list[bytes]) -> list[int]:
    return [int(offset) for offset in b"".join(bodies).decode().split(",") if offset]


def everything(one: StretchPull, connection: ScriptedConnection) -> list[int]:
    return offsets(list(one.bodies(connection)))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(5))
def test_answers_in_any_order_become_the_queues_order(seed: int) -> None:
    connection = ScriptedConnection(ScriptedQueue(0, 1000), random.Random(seed))
    assert everything(pull(95, 333), connection) == list(range(95, 333))
    assert connection.most_waiting == 4


@pytest.mark.parametrize("most", [1, 3, 7])
def test_a_pull_that_brings_less_is_followed_by_another(most: int) -> None:
    connection = ScriptedConnection(ScriptedQueue(0, 1000, most=most))
    assert everything(pull(0, 100), connection) == list(range(100))
    assert len(connection.asked) == 10 * -(-10 // most)


def test_no_pull_asks_for_more_than_is_wanted() -> None:
    connection = ScriptedConnection(ScriptedQueue(0, 1000))
    everything(pull(0, 25), connection)
    assert connection.asked == [(0, 10), (10, 10), (20, 5)]


def test_what_is_not_selected_is_passed_over() -> None:
    queue = ScriptedQueue(0, 5000, wanted=lambda offset: offset % 50 == 0)
    found = everything(pull(0, 3000, selection=PullSelection("new")), ScriptedConnection(queue))
    assert sorted({offset for offset in found if offset < 3000}) == list(range(0, 3000, 50))


def test_a_connection_that_ends_is_followed_by_another() -> None:
    one, queue = pull(0, 200), ScriptedQueue(0, 1000)
    found: list[bytes] = []
    with pytest.raises(PeerSilent):
        for body in one.bodies(ScriptedConnection(queue, lasts=9)):  # type: ignore[arg-type]
            found.append(body)
    assert 0 < one.position < 200
    assert offsets(found) == list(range(one.position))
    found += one.bodies(ScriptedConnection(queue))  # type: ignore[arg-type]
    assert offsets(found) == list(range(200))


def test_deleted_messages_fail_the_pull() -> None:
    connection = ScriptedConnection(ScriptedQueue(40, 100))
    with pytest.raises(OffsetsLost, match=r"queue 2 of Orders at broker-a: offset 0 was requested, .* 40: deleted"):
        everything(pull(0, 100, in_flight=1), connection)


def test_deleted_messages_are_passed_over_where_that_is_allowed() -> None:
    one = pull(0, 100, fail=False, in_flight=1)
    assert everything(one, ScriptedConnection(ScriptedQueue(40, 100))) == list(range(40, 100))
    assert [str(loss).partition(":")[0] for loss in one.lost] == ["queue 2 of Orders at broker-a"] * 4


def test_a_replica_that_lags_is_behind() -> None:
    connection = ScriptedConnection(ScriptedQueue(0, 60))
    found = []
    with pytest.raises(Behind, match=r"10\.0\.0\.1:10911: has queue 2 of Orders at broker-a up to offset 60") as caught:
        for body in pull(0, 100, in_flight=1).bodies(connection):  # type: ignore[arg-type]
            found.append(body)
    assert caught.value.end == 60
    assert offsets(found) == list(range(60))


def test_answers_that_nobody_waits_for_any_more_close_the_connection() -> None:
    connection = ScriptedConnection(ScriptedQueue(0, 1000))
    bodies = pull(0, 1000).bodies(connection)  # type: ignore[arg-type]
    next(bodies)
    bodies.close()
    assert connection.closed

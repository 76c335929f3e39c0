"""Requests about a logical queue that was moved, at the broker that leads it."""

from __future__ import annotations

import pytest

from tests.twisted_mq.broker.test_static_topics import ON_A, Pair
from twisted_mq.protocol.codes import RequestCode


@pytest.fixture
def pair() -> Pair:
    """Queue 0 begins on broker a with two messages, and goes on at b with one from 10,000 on."""
    pair = Pair()
    assert [pair.tell("a", 1, ON_A).code, pair.tell("b", 1).code] == [0, 0]
    for broker in pair.brokers.values():
        broker.controller.groups.find("G")
    for body in (b"one", b"two"):
        pair.send("a", body)
    pair.brokers["a"].clock.advance(10)
    pair.move()
    pair.send("b", b"three")
    return pair


def test_commit_of_a_piece_elsewhere_is_handed_on_and_its_answer_handed_back(pair: Pair) -> None:
    update = RequestCode.UPDATE_CONSUMER_OFFSET
    assert pair.ask("b", update, commitOffset="2") == (0, {})
    committed = [pair.brokers[name].controller.offsets.query("G", "T", queue) for name, queue in (("a", 0), ("b", 2))]
    assert (committed, pair.asked) == ([2, None], [("a", update)])


@pytest.mark.parametrize(("before_ms", "offset"), [(1, "2"), (0, "2"), (-1, "10001")])
def test_piece_is_searched_whose_first_message_is_older_than_the_time(pair: Pair, before_ms: int, offset: str) -> None:
    """Offset 2 is where the first piece ends: its reader goes on with the next piece."""
    time = pair.brokers["b"].now_ms() - before_ms
    found = pair.ask("b", RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=str(time))
    assert found == (0, {"offset": offset})


@pytest.mark.parametrize(("boundary", "offset"), [("LOWER", "0"), ("UPPER", "1")])
def test_boundary_tells_which_message_of_a_time_is_found(pair: Pair, boundary: str, offset: str) -> None:
    time = str(pair.brokers["a"].store.earliest_message_time("T", 0))
    found = pair.ask("b", RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=time, boundaryType=boundary)
    assert found == (0, {"offset": offset})

"""Memory that the peers of a server may take."""

from __future__ import annotations

from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.remoting.budget import HELD_OVERHEAD, Budget


def test_answers_are_counted_by_peer_and_in_total_until_they_are_taken() -> None:
    budget: Budget[str] = Budget()
    assert [budget.not_taken("a", 100), budget.not_taken("a", 50), budget.not_taken("b", 1)] == [None, None, None]
    assert budget.unsent_bytes == 151
    budget.taken("a")
    budget.taken("a")
    assert budget.unsent_bytes == 1


def test_a_peer_past_its_own_limit_is_named() -> None:
    budget: Budget[str] = Budget(ConnectionOptions(max_unsent_bytes_by_channel=100))
    assert [budget.not_taken("a", 100), budget.not_taken("b", 101), budget.not_taken("a", 1)] == [None, "b", "a"]


def test_past_the_total_the_peer_that_holds_most_is_named() -> None:
    budget: Budget[str] = Budget(ConnectionOptions(max_unsent_bytes=200))
    budget.not_taken("a", 120)
    assert budget.not_taken("b", 81) == "a"
    budget.forget("a")
    assert budget.not_taken("b", 100) is None


def test_frames_in_parts_are_counted_as_they_grow_and_end() -> None:
    budget: Budget[str] = Budget()
    assert [budget.came("a", 10), budget.came("b", 5), budget.came("a", 30), budget.came("a", 0)] == [None] * 4
    assert budget.incomplete_bytes == 5
    budget.forget("b")
    assert budget.incomplete_bytes == 0


def test_past_the_limit_the_peer_whose_frame_began_first_is_named() -> None:
    budget: Budget[str] = Budget(ConnectionOptions(max_incomplete_bytes=100))
    budget.came("a", 40)
    budget.came("b", 40)
    budget.came("a", 10)  # its first frame has ended, this is the next one
    assert budget.came("c", 51) == "b"


def test_requests_that_wait_are_counted_until_they_are_let_go() -> None:
    limits = ConnectionOptions(
        max_held_bytes_by_channel=2 * HELD_OVERHEAD + 100, max_held_bytes=3 * HELD_OVERHEAD + 100
    )
    budget: Budget[str] = Budget(limits)
    assert [budget.hold("a", 50), budget.hold("a", 51), budget.hold("a", 50)] == [True, False, True]
    assert [budget.hold("b", 1), budget.hold("b", 0), budget.held_bytes] == [False, True, 3 * HELD_OVERHEAD + 100]
    budget.forget("a")  # what waits is still there
    assert budget.hold("b", 0) is False
    budget.let_go("a", 50)
    budget.let_go("a", 50)
    assert [budget.hold("b", 1), budget.held_bytes] == [True, 2 * HELD_OVERHEAD + 1]

"""Memory that the peers of a server may take."""

from __future__ import annotations

import attrs
import pytest

from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.remoting.budget import HELD_OVERHEAD, Budget


@attrs.frozen
class Peer:
    name: str
    share_address: str = ""


A, B = (Peer(name, f"10.0.0.{number}") for number, name in enumerate("ab"))


def test_answers_are_counted_by_peer_and_in_total_until_they_are_taken() -> None:
    budget: Budget[Peer] = Budget()
    assert [budget.not_taken(A, 100), budget.not_taken(A, 50), budget.not_taken(B, 1)] == [None, None, None]
    assert budget.unsent_bytes == 151
    budget.taken(A)
    budget.taken(A)
    assert budget.unsent_bytes == 1


def test_a_peer_past_its_own_limit_is_named() -> None:
    budget: Budget[Peer] = Budget(ConnectionOptions(max_unsent_bytes_by_channel=100))
    assert [budget.not_taken(A, 100), budget.not_taken(B, 101), budget.not_taken(A, 1)] == [None, B, A]


def test_past_the_total_the_peer_that_holds_most_is_named() -> None:
    budget: Budget[Peer] = Budget(ConnectionOptions(max_unsent_bytes=200))
    budget.not_taken(A, 120)
    assert budget.not_taken(B, 81) == A
    budget.forget(A)
    assert budget.not_taken(B, 100) is None


def test_frames_in_parts_are_counted_as_they_grow_and_end() -> None:
    budget: Budget[Peer] = Budget()
    assert [budget.came(A, 10), budget.came(B, 5), budget.came(A, 30), budget.came(A, 0)] == [None] * 4
    assert budget.incomplete_bytes == 5
    budget.forget(B)
    assert budget.incomplete_bytes == 0


def test_past_the_limit_the_peer_whose_frame_began_first_is_named() -> None:
    budget: Budget[Peer] = Budget(ConnectionOptions(max_incomplete_bytes=100))
    one, other, third = (Peer(name) for name in "xyz")
    budget.came(one, 40)
    budget.came(other, 40)
    budget.came(one, 10)  # its first frame has ended, this is the next one
    assert budget.came(third, 51) == other


def test_past_the_total_the_address_that_holds_most_is_cut_first() -> None:
    """Many connections with little each are one peer with much."""
    budget: Budget[Peer] = Budget(ConnectionOptions(max_unsent_bytes=200, max_incomplete_bytes=200))
    many = [Peer(f"{number}", "10.0.0.9") for number in range(5)]
    assert [budget.not_taken(one, 30) for one in many] == [None] * 5
    assert budget.not_taken(A, 51) == many[0]
    assert [budget.came(A, 50), *(budget.came(one, 30) for one in many)] == [None] * 6
    assert budget.came(B, 1) == many[0]


def test_requests_that_wait_are_counted_until_they_are_let_go() -> None:
    limits = ConnectionOptions(max_held_bytes_by_channel=2 * HELD_OVERHEAD + 100)
    budget: Budget[Peer] = Budget(limits)
    assert [budget.hold(A, 50), budget.hold(A, 51), budget.hold(A, 50)] == [True, False, True]
    assert [budget.hold(B, 0), budget.held_bytes] == [True, 3 * HELD_OVERHEAD + 100]
    budget.forget(A)  # what waits is still there
    assert budget.hold(A, 0) is False
    budget.let_go(A, 50)
    budget.let_go(A, 50)
    assert [budget.hold(A, 1), budget.held_bytes] == [True, 2 * HELD_OVERHEAD + 1]


@pytest.mark.parametrize(
    "limits", [ConnectionOptions(max_held_requests=100), ConnectionOptions(max_held_bytes=100 * HELD_OVERHEAD)]
)
def test_an_address_holds_at_most_half_of_what_others_leave(limits: ConnectionOptions) -> None:
    budget: Budget[Peer] = Budget(limits)
    strangers = [Peer(f"{number}", "10.0.0.9") for number in range(10)]
    held = sum(budget.hold(stranger, 0) for stranger in strangers * 10)
    assert held == 50
    assert sum(budget.hold(A, 0) for _ in range(100)) == 25
    for _ in range(held // 10):
        for stranger in strangers:
            budget.let_go(stranger, 0)
    assert sum(budget.hold(B, 0) for _ in range(100)) in (37, 38)


def test_what_is_remembered_is_counted_by_peer_and_in_total() -> None:
    limits = ConnectionOptions(max_remembered_bytes_by_channel=100, max_remembered_bytes=150)
    budget: Budget[Peer] = Budget(limits)
    assert [budget.remember(A, 100), budget.remember(A, 1), budget.remember(B, 51)] == [True, False, False]
    assert [budget.remember(A, -50), budget.remember(B, 100), budget.remembered_bytes] == [True, True, 150]
    budget.forget(B)
    assert budget.remembered_bytes == 50

"""Every queue has one owner, whatever the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.routing.allocate_strategies import STRATEGIES, allocate_averagely, allocate_averagely_by_circle


@pytest.mark.parametrize(
    ("queues", "members", "expected"),
    [
        pytest.param(8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]], id="first members get one more"),
        pytest.param(4, 2, [[0, 1], [2, 3]], id="even"),
        pytest.param(2, 3, [[0], [1], []], id="more members than queues"),
        pytest.param(0, 2, [[], []], id="no queues"),
    ],
)
def test_averagely(queues: int, members: int, expected: list[list[int]]) -> None:
    ids = [f"c{one}" for one in range(members)]
    assert [allocate_averagely(one, range(queues), ids) for one in ids] == expected


def test_by_circle() -> None:
    ids = ["a", "b", "c"]
    assert [allocate_averagely_by_circle(one, range(8), ids) for one in ids] == [[0, 3, 6], [1, 4, 7], [2, 5]]


@pytest.mark.parametrize("name", STRATEGIES)
def test_member_the_broker_does_not_know_gets_nothing(name: str) -> None:
    assert STRATEGIES[name]("stranger", [1, 2], ["a"]) == []


@pytest.mark.parametrize("name", STRATEGIES)
@given(queues=st.integers(0, 200), members=st.integers(1, 30))
def test_each_queue_has_one_owner_and_shares_differ_by_one_at_most(name: str, queues: int, members: int) -> None:
    ids = [f"c{one:03}" for one in range(members)]
    shares = [STRATEGIES[name](one, range(queues), ids) for one in ids]
    assert sorted(queue for share in shares for queue in share) == list(range(queues))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1

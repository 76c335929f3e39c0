"""The strategies that servers do not know by name; what Apache's give for the same input is in interop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.routing.allocate_strategies import (
    AllocateStrategy,
    allocate_averagely,
    allocate_averagely_by_circle,
    allocate_by_config,
)
from twisted_mq.routing.consistent_hash import allocate_consistent_hash, md5_hash
from twisted_mq.routing.machine_rooms import allocate_by_machine_room, allocate_machine_room_nearby


def room_of(name: str) -> str:
    return name.partition("@")[0]


NEARBY = allocate_machine_room_nearby(allocate_averagely, lambda queue: room_of(queue.broker_name), room_of)

brokers = st.lists(st.sampled_from(["r1@a", "r1@b", "r2@a", "r3@a"]), unique=True, min_size=1)
clients = st.lists(
    st.sampled_from([f"r{room}@c{one}" for room in range(4) for one in range(4)]), unique=True, min_size=1
)


def queues_of(names: list[str], count: int) -> list[MessageQueue]:
    return sorted(MessageQueue("T", name, one) for name in names for one in range(count))


@pytest.mark.parametrize(
    "strategy", [allocate_averagely, allocate_averagely_by_circle, allocate_consistent_hash(), NEARBY]
)
@given(names=brokers, count=st.integers(1, 9), ids=clients)
def test_every_queue_has_exactly_one_member(
    strategy: AllocateStrategy, names: list[str], count: int, ids: list[str]
) -> None:
    queues, ids = queues_of(names, count), sorted(ids)
    given_out = [queue for one in ids for queue in strategy(one, queues, ids)]
    assert sorted(given_out) == queues


@given(names=brokers, count=st.integers(1, 9), ids=clients)
def test_queues_of_a_room_with_members_stay_in_it(names: list[str], count: int, ids: list[str]) -> None:
    queues, ids = queues_of(names, count), sorted(ids)
    rooms = {room_of(one) for one in ids}
    for one in ids:
        for queue in NEARBY(one, queues, ids):
            assert room_of(queue.broker_name) == room_of(one) or room_of(queue.broker_name) not in rooms


@given(names=brokers, count=st.integers(1, 9), ids=clients)
def test_only_queues_of_the_rooms_chosen_are_given(names: list[str], count: int, ids: list[str]) -> None:
    queues, ids = queues_of(names, count), sorted(ids)
    strategy = allocate_by_machine_room({"r1"})
    given_out = sorted(queue for one in ids for queue in strategy(one, queues, ids))
    assert given_out == [queue for queue in queues if queue.broker_name.startswith("r1@")]


@given(names=brokers, count=st.integers(1, 9), ids=clients)
def test_a_member_that_leaves_moves_no_queue_of_the_others(names: list[str], count: int, ids: list[str]) -> None:
    queues, ids = queues_of(names, count), sorted(ids)
    strategy = allocate_consistent_hash()
    rest = ids[1:]
    for one in rest:
        assert set(strategy(one, queues, ids)) <= set(strategy(one, queues, rest))


def test_chosen_queues_are_had_whatever_there_is() -> None:
    own = queues_of(["a"], 2)
    assert allocate_by_config(own)("c", [], []) == own


def test_members_that_no_broker_knows_get_nothing() -> None:
    queues = queues_of(["r1@a"], 4)
    for strategy in (allocate_consistent_hash(), NEARBY, allocate_by_machine_room({"r1"})):
        assert strategy("r1@x", queues, ["r1@c"]) == []


def test_a_queue_without_a_room_is_named() -> None:
    strategy = allocate_machine_room_nearby(allocate_averagely, lambda queue: "", room_of)
    with pytest.raises(ValueError, match="does not belong to a machine room"):
        strategy("r1@c", queues_of(["a"], 1), ["r1@c"])


def test_hashes_are_the_first_four_bytes_of_the_md5() -> None:
    assert md5_hash("") == 0xD41D8CD9


def test_a_ring_without_places_gives_nothing_and_less_is_refused() -> None:
    assert allocate_consistent_hash(0)("c", queues_of(["a"], 2), ["c"]) == []
    with pytest.raises(ValueError, match="-1 virtual nodes"):
        allocate_consistent_hash(-1)

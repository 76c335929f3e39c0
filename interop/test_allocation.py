"""Strategies of allocation give every member of a group the queues that Apache's give it, in the same order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from interop.peers.clients import JavaPeer
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.routing.allocate_strategies import STRATEGIES, AllocateStrategy, allocate_averagely
from twisted_mq.routing.consistent_hash import allocate_consistent_hash
from twisted_mq.routing.machine_rooms import allocate_by_machine_room, allocate_machine_room_nearby

pytestmark = pytest.mark.peer

ROOMS = ["", "room1", "room2", "room3"]
NAMES = ["MACHINE_ROOM", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY", *STRATEGIES]
CASES = 400


def room_of(name: str) -> str:
    return name.split("@")[0]


def strategy(case: dict[str, Any]) -> AllocateStrategy:
    made = {
        "MACHINE_ROOM": allocate_by_machine_room(case["rooms"]),
        "CONSISTENT_HASH": allocate_consistent_hash(case["nodes"]),
        "MACHINE_ROOM_NEARBY": allocate_machine_room_nearby(
            allocate_averagely, lambda queue: room_of(queue.broker_name), room_of
        ),
    }
    return (made | STRATEGIES)[case["strategy"]]


def some_case(rng: random.Random) -> dict[str, Any]:
    """Names of every form: letters of both sizes, digits, more than one "@", none; ids as clients have them."""
    name = rng.choice(NAMES)
    rooms = rng.sample(ROOMS[1:], rng.randint(1, 3))
    forms = (
        ["{room}@{name}"]
        if name == "MACHINE_ROOM_NEARBY"
        else ["{room}@{name}", "{name}", "{room}@{name}@x", "{room}@"]
    )
    brokers = {
        rng.choice(forms).format(room=rng.choice(ROOMS[1:]), name=rng.choice(["broker-a", "Broker-B", "b10", "b9"]))
        for _ in range(rng.randint(1, 4))
    }
    queues = [[broker, one] for broker in sorted(brokers) for one in range(rng.choice([1, 2, 4, 8, 16]))]
    rng.shuffle(queues)
    ids = {
        f"{rng.choice(ROOMS[1:])}@10.0.0.{rng.randint(1, 40)}@{rng.randint(1, 9999)}#{rng.getrandbits(40)}"
        for _ in range(rng.randint(1, 12))
    }
    return {
        "strategy": name,
        "topic": rng.choice(["Orders", "%RETRY%g"]),
        "queues": queues,
        "ids": rng.sample(sorted(ids), len(ids)),
        "rooms": rooms,
        "nodes": rng.choice([1, 10, 50]),
    }


def ours(case: dict[str, Any]) -> list[Any]:
    queues = sorted(MessageQueue(case["topic"], broker, number) for broker, number in case["queues"])
    ids = sorted(case["ids"])
    chosen = strategy(case)
    return [[one, [[queue.broker_name, queue.queue_id] for queue in chosen(one, queues, ids)]] for one in ids]


def test_every_member_gets_what_apaches_strategy_gives_it(java: JavaPeer) -> None:
    rng = random.Random(14)
    cases = [some_case(rng) for _ in range(CASES)]
    assert {case["strategy"] for case in cases} == set(NAMES)
    assert java.request("allocate", cases=cases) == [ours(case) for case in cases]

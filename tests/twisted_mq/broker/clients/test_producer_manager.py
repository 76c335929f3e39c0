"""The connection of a group or a client."""

from __future__ import annotations

from typing import Any

import attrs

from twisted_mq.broker.clients.producer_manager import ClientChannelInfo, ProducerManager


@attrs.define(eq=False)
class Line:
    takes_requests: bool = True
    connected_now: bool = True


def client(channel: Any, client_id: str, at_ms: int = 0) -> ClientChannelInfo:
    return ClientChannelInfo(channel, client_id, "JAVA", 479, at_ms)


def test_a_groups_connections_are_asked_in_turn_and_closed_ones_never():
    producers, lines = ProducerManager(), [Line(), Line(), Line(takes_requests=False)]
    for number, line in enumerate(lines):
        producers.register("G", client(line, f"c{number}"))
    asked = [producers.available_channel("G") for _ in range(4)]
    assert set(asked) == set(lines[:2])
    assert asked[:2] == asked[2:]
    assert producers.available_channel("H") is None


def test_a_client_is_found_as_long_as_one_of_its_groups_is_there():
    producers, line = ProducerManager(), Line()
    producers.register("G", client(line, "c"))
    producers.register("H", client(line, "c"))
    producers.unregister("G", line)
    assert producers.find_channel("c") is line
    producers.unregister("H", line)
    assert (producers.find_channel("c"), producers.groups) == (None, {})


def test_a_client_that_came_back_is_found_on_its_new_connection():
    producers, old, new = ProducerManager(), Line(), Line()
    producers.register("G", client(old, "c"))
    producers.register("G", client(new, "c"))
    list(producers.leave(old))
    assert producers.find_channel("c") is new


def test_clients_without_heartbeats_are_forgotten():
    producers, old, new = ProducerManager(expired_ms=10), Line(), Line()
    producers.register("G", client(old, "old", 0))
    producers.register("G", client(new, "new", 5))
    assert producers.expired(11) == [old]
    list(producers.leave(old))
    assert (producers.find_channel("old"), producers.find_channel("new"), list(producers.groups["G"])) == (
        None,
        new,
        [new],
    )


def test_a_connection_leaves_its_own_groups_alone_one_at_each_step():
    """The others are not even looked at: a client of many groups would hold all others up when it goes."""
    producers, leaves, stays = ProducerManager(), Line(), Line()
    for number in range(3):
        producers.register(f"G{number}", client(leaves, "a"))
    for number in range(1000):
        producers.register(f"H{number}", client(stays, "b"))
    assert len(list(producers.leave(leaves))) == 3
    assert (producers.find_channel("a"), len(producers.groups), list(producers.leave(leaves))) == (None, 1000, [])


def test_the_id_of_a_connected_client_stays_with_its_account():
    producers, owner, stranger = ProducerManager(), Line(), Line()
    producers.register("G", attrs.evolve(client(owner, "c"), account="ada"))
    producers.register("H", attrs.evolve(client(stranger, "c"), account="eve"))
    assert producers.find_channel("c") is owner
    producers.unregister("H", stranger)
    assert producers.find_channel("c") is owner
    owner.connected_now = False
    producers.register("H", attrs.evolve(client(stranger, "c"), account="eve"))
    assert producers.find_channel("c") is stranger


def test_a_connection_that_may_not_be_asked_is_passed_by():
    producers, lines = ProducerManager(), [Line(), Line(), Line()]
    for number, line in enumerate(lines):
        producers.register("G", client(line, f"c{number}"))
    asked = [producers.available_channel("G", lambda one: one.client_id == "c1") for _ in range(4)]
    assert asked == [lines[1]] * 4
    assert producers.available_channel("G", lambda one: False) is None

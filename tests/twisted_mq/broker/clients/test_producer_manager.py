"""Which connection stands for a group or a client."""

from __future__ import annotations

from typing import Any

import attrs

from twisted_mq.broker.clients.producer_manager import ClientChannelInfo, ProducerManager


@attrs.define(eq=False)
class Line:
    connected_now: bool = True


def client(channel: Any, client_id: str, at_ms: int = 0) -> ClientChannelInfo:
    return ClientChannelInfo(channel, client_id, "JAVA", 479, at_ms)


def test_a_groups_connections_are_asked_in_turn_and_closed_ones_never():
    producers, lines = ProducerManager(), [Line(), Line(), Line(connected_now=False)]
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
    producers.channel_lost(old)
    assert producers.find_channel("c") is new


def test_clients_without_heartbeats_are_forgotten():
    producers, old, new = ProducerManager(expired_ms=10), Line(), Line()
    producers.register("G", client(old, "old", 0))
    producers.register("G", client(new, "new", 5))
    assert (producers.expired(11), producers.find_channel("old"), producers.find_channel("new")) == ([old], None, new)

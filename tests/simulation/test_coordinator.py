"""The simulated coordinator is reached through the network, and outlives its process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulation.coordinator import CoordinatorNode
from tests.simulation.world import World
from twisted_mq.coordination.interfaces import Create, NoAnswer, Put
from twisted_mq.coordination.memory import MemoryCoordinator

HOST, SERVER = "10.0.1.1", "10.0.8.1"


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as made:
        yield made


@pytest.fixture
def node(world: World) -> CoordinatorNode:
    node = CoordinatorNode(world, SERVER)
    node.start()
    return node


@pytest.fixture
def client(world: World, node: CoordinatorNode) -> MemoryCoordinator:
    client = node.client(world.boot(HOST))
    client.start()
    world.run(2.0)
    assert client.holds()
    return client


def outcome(world: World, asked: Any) -> Any:
    """Return the result of a Deferred within a second."""
    results: list[Any] = []
    asked.addBoth(results.append)
    world.run(1.0)
    return results[0] if results else None


def test_client_that_is_cut_off_is_not_sure_long_before_its_session_ends(
    world: World, node: CoordinatorNode, client: MemoryCoordinator
) -> None:
    session = client.session_id
    world.network.cut(HOST, SERVER)
    world.run(4.0)
    assert not client.holds()
    assert session in node.ensemble.sessions
    world.run(5.0)
    assert session not in node.ensemble.sessions
    world.network.heal(HOST, SERVER)
    world.run(5.0)
    assert client.holds()
    assert client.session_id != session


def test_restart_keeps_what_was_changed_and_the_sessions(
    world: World, node: CoordinatorNode, client: MemoryCoordinator
) -> None:
    session = client.session_id
    assert outcome(world, client.commit([Create("/a", b"1")])) == ("/a",)
    node.kill()
    assert outcome(world, client.read("/a")).check(NoAnswer)
    world.run(20.0)
    node.start()
    world.run(5.0)
    assert client.session_id == session
    assert outcome(world, client.read("/a")).data == b"1"


def test_what_is_asked_waits_for_a_paused_coordinator_and_is_told_to_no_dead_process(
    world: World, node: CoordinatorNode, client: MemoryCoordinator
) -> None:
    node.host.pause()
    asked: list[Any] = []
    client.commit([Create("/a")]).addBoth(asked.append)
    world.run(1.0)
    assert node.ensemble.tree["/a"] is None
    client._clock.kill()  # type: ignore[attr-defined]
    node.host.resume()
    world.run(1.0)
    assert node.ensemble.tree["/a"] is not None
    assert asked == []


def test_server_that_lags_shows_the_past_but_never_behind_what_its_session_changed(
    world: World, node: CoordinatorNode
) -> None:
    """As ZooKeeper: a change elsewhere is seen late; the event of it comes before a read that sees it."""
    ahead, behind = node.client(world.boot("10.0.1.1")), node.client(world.boot("10.0.1.2"))
    ahead.lag, behind.lag = 0.0, 3.0
    for client in (ahead, behind):
        client.start()
    world.run(2.0)
    told: list[str] = []
    behind.watch("/a", lambda: told.append("/a"))
    world.run(1.0)
    told.clear()
    assert outcome(world, ahead.commit([Create("/a", b"1")])) == ("/a",)
    assert (outcome(world, ahead.read("/a")).data, outcome(world, behind.read("/a")), told) == (b"1", None, [])
    world.run(3.0)
    assert (outcome(world, behind.read("/a")).data, told) == (b"1", ["/a"])
    told.clear()
    assert outcome(world, ahead.commit([Create("/a/b"), Put("/a", b"2", 0)])) == ("/a/b",)
    assert outcome(world, behind.children("/a")) == ()
    assert outcome(world, behind.commit([Create("/c")])) == ("/c",)
    assert told == ["/a"]
    assert (outcome(world, behind.read("/a")).data, outcome(world, behind.children("/a"))) == (b"2", ("b",))


def test_clients_now_are_those_of_processes_that_run(world: World, node: CoordinatorNode) -> None:
    host = world.boot("10.0.1.1")
    client = node.client(host)
    assert list(node.clients_now()) == [(host, client)]
    host.kill()
    assert list(node.clients_now()) == []
    again = world.boot("10.0.1.1")
    assert list(node.clients_now()) == []  # the new process has none yet
    client = node.client(again)
    assert list(node.clients_now()) == [(again, client)]

"""The real client of ZooKeeper, with kazoo, in a world of virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from twisted.internet import defer

from tests.simulation.coordinator import SESSION_SECONDS, CoordinatorNode, DistantZooKeeper
from tests.simulation.nodes import Node
from tests.simulation.world import World
from twisted_mq.coordination.interfaces import Create, SessionEvent


class ProcessNode(Node):
    """A process with nothing but a client."""

    client: DistantZooKeeper

    def _begin(self) -> None:
        self.events: list[SessionEvent] = []
        self.client = DistantZooKeeper(self.host, self.server)
        self.client.listen(self.events.append)
        self.client.start().addErrback(lambda reason: None)

    server: CoordinatorNode


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as made:
        yield made


@pytest.fixture
def server(world: World) -> CoordinatorNode:
    node = CoordinatorNode(world, "10.0.8.1")
    node.start()
    return node


@pytest.fixture
def process(world: World, server: CoordinatorNode) -> ProcessNode:
    node = ProcessNode(world, "10.0.1.1")
    node.server = server
    node.start()
    world.run(2.0)
    assert node.client.holds()
    return node


def changes(world: World, process: ProcessNode, path: str) -> defer.Deferred[object]:
    """Have the process make an ephemeral node."""
    return process.client.commit([Create(path, b"", ephemeral=True)])


def test_node_of_a_session_is_there_while_its_process_lives(world: World, process: ProcessNode) -> None:
    made = changes(world, process, "/mine")
    world.run(60.0)
    assert made.called and process.client.holds()
    tree = process.server.ensemble.tree
    node = tree["/mine"]
    assert node is not None and node.session == process.client.session_id
    process.kill()
    world.run(SESSION_SECONDS + 1.0)
    assert tree["/mine"] is None


def silence(world: World, process: ProcessNode) -> None:
    world.network.cut(process.name, process.server.name)


def only_answers(world: World, process: ProcessNode) -> None:
    world.network.cut_one_way(process.server.name, process.name)


def only_requests(world: World, process: ProcessNode) -> None:
    world.network.cut_one_way(process.name, process.server.name)


@pytest.mark.parametrize("cut", [silence, only_answers, only_requests], ids=lambda cut: cut.__name__)
def test_lease_ends_before_the_session(
    world: World, process: ProcessNode, cut: Callable[[World, ProcessNode], None]
) -> None:
    session, sessions = process.client.session_id, process.server.ensemble.sessions
    cut(world, process)
    seen = []
    for _ in range(200):
        world.run(0.1)
        seen.append((process.client.holds(), session in sessions))
    assert (True, True) in seen and (False, True) in seen
    assert (True, False) not in seen
    world.network.heal(process.name, process.server.name)
    world.run(10.0)
    assert process.client.holds()


def test_process_that_stood_still_for_longer_than_its_session_gets_another_one(
    world: World, process: ProcessNode
) -> None:
    session = process.client.session_id
    process.host.pause()
    world.run(2 * SESSION_SECONDS)
    assert not process.client.holds()
    process.host.resume()
    world.run(5.0)
    assert process.events[-2:] == [SessionEvent.LOST, SessionEvent.CONNECTED]
    assert process.client.session_id not in (0, session) and process.client.holds()


def test_suspended_machine_goes_on_with_a_lease_whose_session_is_over(world: World, process: ProcessNode) -> None:
    """Rules that make acknowledgements safe can't go by it."""
    session = process.client.session_id
    world.network.cut(process.name, process.server.name)
    process.host.suspend()
    world.run(2 * SESSION_SECONDS)
    assert session not in process.server.ensemble.sessions
    process.host.wake()
    assert process.client.holds()
    world.run(SESSION_SECONDS / 2)
    assert not process.client.holds()


def test_server_that_was_killed_finds_its_clients_and_their_sessions_again(world: World, process: ProcessNode) -> None:
    session = process.client.session_id
    changes(world, process, "/mine")
    world.run(1.0)
    process.server.kill()
    world.run(20.0)
    assert not process.client.holds() and process.events[-1] is SessionEvent.DISCONNECTED
    process.server.start()
    world.run(10.0)
    assert process.client.session_id == session and process.client.holds()
    assert process.server.ensemble.tree["/mine"] is not None


def test_connection_that_breaks_before_the_answer_leaves_the_change_done(world: World, process: ProcessNode) -> None:
    process.client.drop_answer()
    made = changes(world, process, "/mine")
    failed: list[object] = []
    made.addErrback(failed.append)
    world.run(5.0)
    assert failed and process.server.ensemble.tree["/mine"] is not None
    assert process.client.holds()

"""The coordinator of ordered groups as a machine of its own: its twin in memory, reached through the simulated network.

In a part of the worlds some processes reach it as they reach ZooKeeper: the real client, with kazoo, speaks ZooKeeper's
protocol with it. What it was told is on its disk at once, so that a kill loses nothing; sessions have their whole time again
after it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twisted.internet import defer, interfaces
from zope.interface import implementer

from tests.simulation.kazoo_threads import handlers_of
from tests.simulation.nodes import Node
from tests.simulation.world import World
from twisted_mq.coordination.address import CoordinatorAddress
from twisted_mq.coordination.interfaces import Node as TreeValue
from twisted_mq.coordination.interfaces import Operation
from twisted_mq.coordination.link import Deliver, Link, Pipe
from twisted_mq.coordination.memory import MemoryCoordinator, MemoryEnsemble
from twisted_mq.coordination.operations import below, check_path
from twisted_mq.coordination.server import CoordinationServer
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.coordination.tree import Change, ChangeKind, TreeNode
from twisted_mq.coordination.zookeeper import ZooKeeperCoordinator
from twisted_mq.testing.virtual_network import VirtualHost, VirtualNetwork

HELD_SECONDS = 0.2
"""Interval of checks whether a link is restored, or a process continues."""
IN_TRACE = b"coordination"
PORT = 2181
SESSION_SECONDS = 6.0

HostOf = Callable[[], VirtualHost]


class Way(Pipe):
    """A direction of a link in the network: late, cut, held while a process is paused, lost with it."""

    def __init__(self, network: VirtualNetwork, sender: HostOf, receiver: HostOf) -> None:
        super().__init__(network.clock)
        self._network = network
        self._sender = sender
        self._receiver = receiver
        self._on_way: deque[tuple[float, Deliver]] = deque()
        self._call: Any = None

    def send(self, deliver: Deliver) -> None:
        network = self._network
        earliest = self._on_way[-1][0] if self._on_way else 0.0
        self._on_way.append((max(earliest, network.clock.seconds() + network.next_delay()), deliver))
        self._wake_up()

    def drop(self) -> None:
        self._on_way.clear()
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _wake_up(self, least_seconds: float = 0.0) -> None:
        if self._on_way and (self._call is None or not self._call.active()):
            clock = self._network.clock
            self._call = clock.callLater(max(least_seconds, self._on_way[0][0] - clock.seconds()), self._arrive)

    def _arrive(self) -> None:
        network, sender, receiver = self._network, self._sender(), self._receiver()
        while self._on_way and self._on_way[0][0] <= network.clock.seconds():
            if receiver.is_paused or network.is_cut(sender.name, receiver.name):
                self._wake_up(HELD_SECONDS)
                return
            deliver = self._on_way.popleft()[1]
            if not receiver.has_ended:
                network.delivered(sender.name, receiver.name, IN_TRACE)
                deliver()
        self._wake_up()


@implementer(interfaces.IReactorTime)
class _HostClock:
    """The clock of whatever process runs on the node now."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def seconds(self) -> float:
        return self._node.host.seconds()

    def callLater(
        self, delay: float, call: Callable[..., Any], *arguments: Any, **named: Any
    ) -> interfaces.IDelayedCall:
        return self._node.host.callLater(delay, call, *arguments, **named)

    def getDelayedCalls(self) -> Any:
        return self._node.host.getDelayedCalls()


class Past:
    """The past of the tree: each node and the names of its children, at any time since the world began."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        self.now = ensemble.monotonic
        self._tree = ensemble.tree
        self._nodes: dict[str, list[tuple[float, TreeNode | None]]] = {}
        self._names: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
        self._tree.told.insert(0, self._changed)

    def _changed(self, changes: Sequence[Change]) -> None:
        for kind, path in changes:
            if kind is ChangeKind.CHILDREN:
                self._names.setdefault(path, []).append((self.now(), tuple(self._tree.children(path))))
            else:
                self._nodes.setdefault(path, []).append((self.now(), self._tree[path]))

    def node(self, path: str, time: float) -> TreeNode | None:
        return next((node for at, node in reversed(self._nodes.get(path, ())) if at <= time), None)

    def children(self, path: str, time: float) -> tuple[str, ...]:
        return next((names for at, names in reversed(self._names.get(path, ())) if at <= time), ())


class StaleCoordinator(MemoryCoordinator):
    """A client of a server that lags behind the leader, as ZooKeeper's may, but never behind what this session saw or changed.

    Its changes are done at once; reads see the tree as it was a while ago, and events come as much later, before what a
    read sees of them.
    """

    past: Past
    lag = 0.0
    _seen = 0.0

    def _time(self) -> float:
        self._seen = max(self._seen, self.past.now() - self.lag)
        return self._seen

    def _read(self, path: str) -> TreeValue | None:
        node = self.past.node(path, self._time())
        return None if node is None else TreeValue(node.data, node.version, node.session)

    def children(self, path: str) -> defer.Deferred[tuple[str, ...]]:
        place = below(self._chroot, check_path(path))
        return self._ask(lambda: self.past.children(place, self._time()))

    def tell_changes(self, changes: Sequence[Change]) -> None:
        self._late.append(changes)
        self._ensemble.clock.callLater(self.lag, self._tell_first, changes)

    def _tell_first(self, changes: Sequence[Change]) -> None:
        while any(one is changes for one in self._late):
            super().tell_changes(self._late.popleft())

    def _commit(self, operations: Sequence[Operation]) -> tuple[str, ...]:
        try:
            return super()._commit(operations)
        finally:
            self._catch_up()

    def _accept(self, started: float) -> None:
        self._late.clear()
        self._seen = self.past.now()
        super()._accept(started)

    def _catch_up(self) -> None:
        """The server has all that came before a change of this session."""
        while self._late:
            super().tell_changes(self._late.popleft())
        self._seen = self.past.now()

    def drop_answer(self) -> None:
        """Fault: the next change is done, and the connection breaks before its answer."""
        self.link.drop_answer()

    def server_is_gone(self) -> None:
        """Its host closes the connections."""
        self.link.answers.send(self.break_connection)

    @property
    def _late(self) -> deque[Sequence[Change]]:
        """Return the changes that the server has not applied yet."""
        return self.__dict__.setdefault("late", deque())


class DistantZooKeeper(ZooKeeperCoordinator):
    """The client that real processes have, on a host of the world."""

    def __init__(self, host: VirtualHost, server: CoordinatorNode) -> None:
        settings = CoordinatorSettings(CoordinatorAddress((f"{server.name}:{PORT}",)), session_seconds=SESSION_SECONDS)
        super().__init__(settings, host, host.callFromThread, host.boot_seconds, handlers_of(host))
        self._host = host
        self._server = server

    def break_connection(self) -> None:
        """Fault: the connection breaks."""
        self._host.network.reset(self._host.name, self._server.name)

    def drop_answer(self) -> None:
        """Fault: a change is done, and the connection breaks before its answer."""
        told = self._server.ensemble.tree.told

        def changed(changes: Sequence[Change]) -> None:
            told.remove(changed)
            self.break_connection()

        told.append(changed)

    def server_is_gone(self) -> None:
        """Its host closes the connections."""


class CoordinatorNode(Node):
    """`clients` are those of the newest process of each host. In half of the worlds its servers lag behind their leader."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.ensemble = MemoryEnsemble(_HostClock(self), monotonic=lambda: self.host.boot_seconds())
        self.past = Past(self.ensemble)
        self.clients: dict[str, StaleCoordinator | DistantZooKeeper] = {}
        self._made_for: dict[str, VirtualHost] = {}
        self._chance = random.Random(f"lags of {world.seed}")
        self._lags = self._chance.random() < 0.5
        self._kazoo_share = self._chance.choice((0.0, 0.0, 0.5))
        self._server = CoordinationServer(self.ensemble, random_bytes=self._chance.randbytes)

    def client(self, host: VirtualHost) -> StaleCoordinator | DistantZooKeeper:
        """For a process on that host; not started."""
        has_kazoo = self._chance.random() < self._kazoo_share
        client = DistantZooKeeper(host, self) if has_kazoo else self.near_client(host)
        self.clients[host.name], self._made_for[host.name] = client, host
        return client

    def clients_now(self) -> Iterator[tuple[VirtualHost, StaleCoordinator | DistantZooKeeper]]:
        """Yield the clients of processes that run; a process that was just started has none yet."""
        for name, client in self.clients.items():
            host = self._made_for[name]
            if not host.has_ended:
                yield host, client

    def near_client(self, host: VirtualHost) -> StaleCoordinator:
        """Return a client without a protocol. It is not started."""
        client = StaleCoordinator(self.ensemble, host, host.boot_seconds, SESSION_SECONDS, "")
        client.past, client.lag = self.past, self._chance.choice((0.0, 0.1, 1.0)) if self._lags else 0.0
        link, network = Link(self.ensemble.clock, host, client.break_connection), self.world.network
        link.requests = Way(network, lambda: host, lambda: self.host)
        link.answers = Way(network, lambda: self.host, lambda: host)
        client.link = link
        return client

    def _begin(self) -> None:
        self.ensemble.start()
        self.host.listenTCP(PORT, self._server)

    def _gone(self) -> None:
        """Its system closes the connections."""
        super()._gone()
        self.ensemble.runs = False
        self.ensemble.sessions.suspend()
        self._server._connections.clear()
        for client in self.clients.values():
            client.server_is_gone()

"""The coordinator of ordered groups as a machine of its own: its twin in memory, reached through the simulated network.

What it was told is on its disk at once, so that a kill loses nothing; sessions have their whole time again after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet import interfaces
from zope.interface import implementer

from tests.simulation.nodes import Node
from tests.simulation.world import World
from twisted_mq.coordination.link import Deliver, Link, Pipe
from twisted_mq.coordination.memory import MemoryCoordinator, MemoryEnsemble
from twisted_mq.testing.virtual_network import VirtualHost, VirtualNetwork

HELD_SECONDS = 0.2
"""How often it is looked whether a link is there again, or a process goes on."""
IN_TRACE = b"coordination"

HostOf = Callable[[], VirtualHost]


class Way(Pipe):
    """One direction of a link as the network has it: late, cut, held while a process is paused, lost with it."""

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


class CoordinatorNode(Node):
    """`clients` are those of the newest process of each host."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.ensemble = MemoryEnsemble(_HostClock(self), monotonic=world.clock.seconds)
        self.clients: dict[str, MemoryCoordinator] = {}

    def client(self, host: VirtualHost, session_seconds: float = 6.0) -> MemoryCoordinator:
        """For a process on that host; not started."""
        client = self.ensemble.coordinator(host, monotonic=self.world.clock.seconds, session_seconds=session_seconds)
        link, network = Link(self.ensemble.clock, host, client.break_connection), self.world.network
        link.requests = Way(network, lambda: host, lambda: self.host)
        link.answers = Way(network, lambda: self.host, lambda: host)
        client.link = link
        self.clients[host.name] = client
        return client

    def _begin(self) -> None:
        self.ensemble.start()

    def _gone(self) -> None:
        """Its system closes the connections."""
        super()._gone()
        self.ensemble.runs = False
        self.ensemble.sessions.suspend()
        for client in self.clients.values():
            client.link.answers.send(client.break_connection)

"""Remoting in memory: a channel over a StringTransport, and endpoints that connect without sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import defer, error, interfaces, protocol
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.remoting.socket_channel import SocketChannel


class ClosingTransport(StringTransport):
    """A StringTransport that tells its protocol when it is closed."""

    def __init__(self, peer: tuple[str, int] = ("127.0.0.1", 54321)) -> None:
        super().__init__(peerAddress=IPv4Address("TCP", *peer))
        self.protocol: protocol.Protocol | None = None
        self.aborted = False

    def loseConnection(self) -> None:
        if not self.disconnecting:
            self.disconnecting = True
            assert self.protocol is not None
            self.protocol.connectionLost(failure.Failure(error.ConnectionDone()))

    def abortConnection(self) -> None:
        self.aborted = True
        self.loseConnection()


def connect(channel: SocketChannel, transport: ClosingTransport | None = None) -> ClosingTransport:
    """Give the channel a transport in memory."""
    transport = transport or ClosingTransport()
    transport.protocol = channel
    channel.makeConnection(transport)
    return transport


def sent(transport: StringTransport) -> list[RemotingCommand]:
    """The commands written so far, which are taken off the transport."""
    commands = FrameDecoder().receive_data(transport.value())
    transport.clear()
    return commands


def frames(*commands: RemotingCommand) -> bytes:
    return b"".join(encode_frame(command) for command in commands)


class _WriteBudget:
    """Bounds what is written without time passing: two sides that answer each other forever fail the test."""

    def __init__(self, clock: Clock, limit: int = 20_000) -> None:
        self._clock = clock
        self._limit = limit
        self._moment = (0.0, 0)

    def take(self) -> None:
        now = self._clock.seconds()
        self._moment = (now, self._moment[1] + 1 if self._moment[0] == now else 1)
        if self._moment[1] > self._limit:
            raise AssertionError(f"more than {self._limit} writes at one moment: this never ends")


class _PipeTransport(ClosingTransport):
    """An end of a pipe: bytes reach the other end's protocol on the clock's next turn."""

    def __init__(self, clock: Clock, peer: tuple[str, int], budget: _WriteBudget) -> None:
        super().__init__(peer)
        self._clock = clock
        self._budget = budget
        self.other: _PipeTransport | None = None

    def write(self, data: bytes) -> None:
        self._budget.take()
        self._clock.callLater(0, self._deliver, data)

    def _deliver(self, data: bytes) -> None:
        if not self.disconnecting and self.other is not None and not self.other.disconnecting:
            assert self.other.protocol is not None
            self.other.protocol.dataReceived(data)

    def loseConnection(self) -> None:
        if not self.disconnecting:
            self._clock.callLater(0, self._close)

    def _close(self) -> None:
        super().loseConnection()
        if self.other is not None and not self.other.disconnecting:
            self.other._close()


@implementer(interfaces.IStreamClientEndpoint)
class _MemoryEndpoint:
    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self._network = network
        self._address = address

    def connect(self, factory: Any) -> defer.Deferred[Any]:
        return self._network._connect(self._address, factory)


class MemoryNetwork:
    """Server factories by address. `connect` is what a RemotingClient takes; unknown addresses refuse."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.servers: dict[str, protocol.Factory] = {}
        self.silent: set[str] = set()
        """Addresses whose connection attempts never end."""
        self.attempts: list[str] = []
        self._pipes: dict[str, list[_PipeTransport]] = {}
        self._budget = _WriteBudget(clock)

    def listen(self, address: str, factory: protocol.Factory) -> None:
        self.servers[address] = factory

    def connect(self, host: str, port: int) -> _MemoryEndpoint:
        return _MemoryEndpoint(self, f"{host}:{port}")

    def close(self, address: str) -> None:
        """The server at that address dies: its connections break, new ones are refused."""
        self.servers.pop(address, None)
        for pipe in self._pipes.pop(address, []):
            pipe.loseConnection()

    def connected(self) -> list[str]:
        """The addresses of servers with a connection, each once for each of them."""
        return [address for address, pipes in self._pipes.items() for pipe in pipes if not pipe.disconnecting]

    def _connect(self, address: str, factory: Any) -> defer.Deferred[Any]:
        self.attempts.append(address)
        if address in self.silent:
            return defer.Deferred()
        server = self.servers.get(address)
        if server is None:
            return defer.fail(error.ConnectionRefusedError())
        host, _, port = address.rpartition(":")
        peer = (host, int(port))
        ours = _PipeTransport(self.clock, peer, self._budget)
        theirs = _PipeTransport(self.clock, ("127.0.0.1", 40000), self._budget)
        ours.other, theirs.other = theirs, ours
        ours.protocol, theirs.protocol = factory.buildProtocol(None), server.buildProtocol(None)
        self._pipes.setdefault(address, []).append(ours)
        theirs.protocol.makeConnection(theirs)
        ours.protocol.makeConnection(ours)
        return defer.succeed(ours.protocol)


def settle(clock: Clock) -> None:
    """Let everything happen that needs no time to pass."""
    clock.advance(0)


def recorder() -> tuple[list[Any], Callable[..., Any]]:
    """A list, and a function that appends its arguments to it."""
    calls: list[Any] = []
    return calls, lambda *arguments: calls.append(arguments)

"""Simulates hosts with names and stream connections between them, in memory, on one virtual clock, with one random seed.

A `VirtualHost` is the reactor of its programs: time, listenTCP, connectTCP. Bytes take a random delay and are cut at
random places; one direction of a connection keeps its order, different connections overtake each other. Links can be
cut (bytes wait, as TCP repeats them), also in one direction, and healed; connections can be reset.

A host's process can be paused, or be killed: then its system closes its connections. A host can vanish without a sign,
which leaves its peers with half-open connections, and boot again. Its clock can be wrong, drift and jump; timers follow
it, as Twisted's do. A suspended host is a virtual machine whose clocks stop meanwhile.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet import error, interfaces
from twisted.internet.address import IPv4Address
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.testing.virtual_time import NEVER, Timers, VirtualCall

SLACK_ABOVE = 0.02
USUAL_DELAY = (0.0001, 0.002)
FIRST_EPHEMERAL_PORT = 40_000
BUFFER_BYTES = 64 * 1024
"""The bytes on their way past which a transport pauses its producer, as Twisted's do."""


class VirtualNetwork:
    """All hosts by name. `delay` is the range of one delivery's seconds; `split` the chance that one is cut in two.

    `delivered` is called with each delivery (sender, receiver, bytes), with None for a connection's end.
    """

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        seed: int = 0,
        *,
        delay: tuple[float, float] = USUAL_DELAY,
        split: float = 0.3,
    ) -> None:
        self.clock = clock
        self.random = random.Random(seed)
        self.delay = delay
        self.split = split
        self.delivered: Callable[[str, str, bytes | None], None] = lambda sender, receiver, data: None
        self._hosts: dict[str, VirtualHost] = {}
        self._cut: set[tuple[str, str]] = set()
        self._pipes: dict[VirtualTransport, None] = {}

    def host(self, name: str) -> VirtualHost:
        """Return the host of that name, created at its first use."""
        if name not in self._hosts:
            self._hosts[name] = VirtualHost(self, name)
        return self._hosts[name]

    def boot(self, name: str) -> VirtualHost:
        """Return the host of that name, new after a kill or a power cut; its system refuses the connections of the old one."""
        self._hosts[name] = VirtualHost(self, name)
        self.deliver_soon()
        return self._hosts[name]

    def is_cut(self, sender: str, receiver: str) -> bool:
        """Return whether nothing gets through from one host to another."""
        return (sender, receiver) in self._cut

    def cut(self, one: str, other: str) -> None:
        """Let nothing through between the two until `heal`; connections stay open and bytes wait."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """Let nothing through in this direction; the other one goes on."""
        self._cut.add((sender, receiver))

    def heal(self, one: str, other: str) -> None:
        """Let bytes through again, the waiting ones first."""
        self._cut -= {(one, other), (other, one)}
        self.deliver_soon()

    def deliver_soon(self) -> None:
        """Deliver waiting bytes, because something may get through again."""
        for transport in tuple(self._pipes):
            transport.deliver_soon()

    def reset(self, one: str, other: str) -> None:
        """Break all connections between the two, and lose the bytes on their way."""
        for transport in tuple(self._pipes):
            if {transport.host.name, transport.other.host.name} == {one, other}:
                transport.connection_lost(error.ConnectionLost())

    def connections(self, one: str, other: str) -> int:
        """Return how many connections to the second host the first one believes open."""
        return sum(
            (transport.host.name, transport.other.host.name) == (one, other) and transport.connected
            for transport in self._pipes
        )

    def next_delay(self) -> float:
        return self.random.uniform(*self.delay)

    def join(self, ours: VirtualTransport, theirs: VirtualTransport) -> None:
        ours.other, theirs.other = theirs, ours
        self._pipes |= {ours: None, theirs: None}

    def forget(self, transport: VirtualTransport) -> None:
        self._pipes.pop(transport, None)

    def transports(self, host: VirtualHost) -> list[VirtualTransport]:
        return [transport for transport in self._pipes if transport.host is host]


@implementer(interfaces.IReactorTime, interfaces.IReactorTCP, interfaces.IReactorSocket, interfaces.IReactorThreads)
class VirtualHost:
    """The reactor of one host, until it is killed or vanishes; `is_up` is True while its system answers for it."""

    def __init__(self, network: VirtualNetwork, name: str) -> None:
        self.network = network
        self.name = name
        self.ports: dict[int, VirtualPort] = {}
        self.is_up = True
        self.is_paused = False
        self.has_ended = False
        """True if its process was killed."""
        self.slack = 0.0
        """Timers above 20 ms are at least this late, on a host that checks them only at that interval."""
        self.pool: Any = None
        """The result of getThreadPool; set it if threads are needed."""
        self._bound: dict[int, VirtualBound] = {}
        self._next_port = FIRST_EPHEMERAL_PORT
        self._shown = self._since = float(network.clock.seconds())
        self._rate = 1.0
        self._jumped = 0.0
        self._suspended_at: float | None = None
        self._stood_still = 0.0
        self.woken_at = -NEVER
        """The end of the last suspension, by the network's clock."""
        self._timers = Timers(self.seconds)
        self._wake: interfaces.IDelayedCall | None = None
        self._wake_time = NEVER

    # IReactorTime

    def seconds(self) -> float:
        """Return the time that timers follow: monotonic time, with the drift of this host's clock."""
        return self._shown + (self._now() - self._since) * self._rate

    def boot_seconds(self) -> float:
        """Return the time since the boot: it counts pauses, and stops while the machine is suspended."""
        return self._now() - self._stood_still

    def _now(self) -> float:
        """Return the network's time; during a suspension, the time of its begin."""
        return float(self.network.clock.seconds()) if self._suspended_at is None else self._suspended_at

    def time_of_day(self) -> float:
        """Return the time of day for messages: `seconds`, and all changes of the clock."""
        return self.seconds() + self._jumped

    def callLater(self, delay: float, callable: Callable[..., Any], *args: object, **kwargs: object) -> VirtualCall:
        made = self._timers.add(max(delay, self.slack) if delay > SLACK_ABOVE else delay, callable, *args, **kwargs)
        if made.time < self._wake_time:
            self._wake_up()
        return made

    def getDelayedCalls(self) -> list[VirtualCall]:
        return self._timers.active()

    def _wake_up(self) -> None:
        """Schedule a call of the network's clock for the next timer."""
        if self._wake is not None and self._wake.active():
            self._wake.cancel()
        self._wake_time = self._timers.next_time()
        if self.has_ended or self.is_paused or self._wake_time == NEVER:
            return
        wait = max(0.0, (self._wake_time - self.seconds()) / self._rate)
        self._wake = self.network.clock.callLater(wait, self._run_due)

    def _run_due(self) -> None:
        self._wake_time = -NEVER  # nothing wakes it meanwhile
        self._timers.run_due()
        self._wake_up()

    def set_clock(self, jump: float = 0.0, rate: float = 1.0) -> None:
        """Set the time of day by `jump` seconds, and change how fast the clock advances."""
        self._jumped += jump
        self._shown = self.seconds()
        self._since = self._now()
        self._rate = rate
        self._wake_up()

    # IReactorThreads

    def callFromThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:
        self.callLater(0, callable, *args, **kwargs)

    def getThreadPool(self) -> Any:
        return self.pool

    def callInThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:
        self.pool.callInThread(callable, *args, **kwargs)

    def suggestThreadPoolSize(self, size: int) -> None:
        """Do nothing: there are as many threads as needed."""

    # IReactorSocket, and the virtual socket

    def bind(self, host: str, port: int, setting: str = "listenPort") -> VirtualBound:
        """Bind as remoting.listen.bind does."""
        port = port or self.take_port()
        if port in self.ports:
            raise error.CannotListenError(host, port, OSError("in use"))
        self._bound[port] = VirtualBound(self.name, port)
        return self._bound[port]

    def adoptStreamPort(self, fileDescriptor: int, addressFamily: int, factory: Any) -> VirtualPort:
        return self.listenTCP(self._bound[fileDescriptor].port, factory)

    def adoptStreamConnection(self, fileDescriptor: int, addressFamily: int, factory: Any) -> None:
        raise NotImplementedError

    def adoptDatagramPort(
        self, fileDescriptor: int, addressFamily: int, protocol: Any, maxPacketSize: int
    ) -> interfaces.IListeningPort:
        raise NotImplementedError

    # IReactorTCP

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> VirtualPort:
        port = port or self.take_port()
        if port in self.ports:
            raise error.CannotListenError(interface, port, OSError("in use"))
        self.ports[port] = VirtualPort(self, port, factory)
        return self.ports[port]

    def connectTCP(
        self, host: str, port: int, factory: Any, timeout: float = 30, bindAddress: Any = None
    ) -> VirtualConnector:
        return VirtualConnector(self, host, port, factory, timeout)

    def take_port(self) -> int:
        self._next_port += 1
        return self._next_port

    # faults

    def pause(self) -> None:
        """Stop the process until `resume` (SIGSTOP); its system keeps the connections."""
        self.is_paused = True
        self._wake_up()

    def resume(self) -> None:
        """Let the process go on, with everything that came meanwhile."""
        self.is_paused = False
        self._wake_up()
        self.network.deliver_soon()

    @property
    def is_suspended(self) -> bool:
        """Return whether its clocks are stopped."""
        return self._suspended_at is not None

    def suspend(self) -> None:
        """Pause the process, and stop all its clocks until `wake`, like those of a suspended virtual machine."""
        self._suspended_at = float(self.network.clock.seconds())
        self.pause()

    def wake(self) -> None:
        """End `suspend`. No clock of the host counted the time between."""
        assert self._suspended_at is not None
        self.woken_at = float(self.network.clock.seconds())
        self._stood_still += self.woken_at - self._suspended_at
        self._since += self.woken_at - self._suspended_at
        self._suspended_at = None
        self.resume()

    def vanish(self) -> None:
        """Stop without a sign: no port, no timer; peers keep their half-open connections."""
        self.is_up = False
        self._end()
        for transport in self.network.transports(self):
            transport.drop()

    def kill(self) -> None:
        """End the process (SIGKILL): its system sends what was written, and closes the connections."""
        self._end()
        for transport in self.network.transports(self):
            transport.loseConnection()

    def _end(self) -> None:
        self.has_ended = True
        self.ports.clear()
        self._timers.clear()
        self._wake_up()
        for transport in self.network.transports(self):
            transport.gone = True


class VirtualBound:
    """A bound socket that is not listened on yet."""

    family = socket.AF_INET

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        self._host = host

    def getsockname(self) -> tuple[str, int]:
        return self._host, self.port

    def fileno(self) -> int:
        return self.port

    def listen(self, backlog: int, /) -> None:
        """Do nothing: `adoptStreamPort` comes next."""

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    def __enter__(self) -> VirtualBound:
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""


@implementer(interfaces.IListeningPort)
class VirtualPort:
    def __init__(self, host: VirtualHost, port: int, factory: Any) -> None:
        self._host = host
        self._port = port
        self.factory = factory
        factory.doStart()

    def startListening(self) -> None:
        """Do nothing: the port listens already."""

    def stopListening(self) -> None:
        self._host.ports.pop(self._port, None)
        self.factory.doStop()

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", self._host.name, self._port)


@implementer(interfaces.IConnector)
class VirtualConnector:
    """An attempt to connect; it times out if the link is cut or the host has vanished, and is refused by a host without
    the port.
    """

    def __init__(self, host: VirtualHost, to: str, port: int, factory: Any, timeout: float) -> None:
        self._host = host
        self._to = to
        self._address = IPv4Address("TCP", to, port)
        self._factory = factory
        self.transport: VirtualTransport | None = None
        factory.doStart()
        factory.startedConnecting(self)
        self._timer = host.callLater(timeout, self._fail, error.TimeoutError())
        self._try = host.callLater(host.network.next_delay(), self._arrive)

    def _arrive(self) -> None:
        network = self._host.network
        to = network.host(self._to)
        unheard = network.is_cut(self._host.name, to.name) or network.is_cut(to.name, self._host.name)
        if unheard or to.is_paused or not to.is_up:
            self._try = self._host.callLater(network.next_delay() + 0.2, self._arrive)
            return
        port = to.ports.get(self._address.port)
        if port is None:
            self._fail(error.ConnectionRefusedError())
            return
        self._timer.cancel()
        source = IPv4Address("TCP", self._host.name, self._host.take_port())
        served = port.factory.buildProtocol(source)
        protocol = self._factory.buildProtocol(self._address)
        ours = self.transport = VirtualTransport(self._host, source, self._address, protocol)
        theirs = VirtualTransport(to, self._address, source, served)
        network.join(ours, theirs)
        if served is not None:
            served.makeConnection(theirs)
        protocol.makeConnection(ours)
        if served is None:
            theirs.loseConnection()

    def _fail(self, reason: Exception) -> None:
        for call in (self._timer, self._try):
            if call.active():
                call.cancel()
        self._factory.clientConnectionFailed(self, failure.Failure(reason))

    def stopConnecting(self) -> None:
        self._fail(error.UserError())

    def disconnect(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()
        else:
            self.stopConnecting()

    def connect(self) -> None:
        raise error.AlreadyCalled

    def getDestination(self) -> IPv4Address:
        return self._address


@attrs.define(eq=False)
class _Piece:
    due: float
    data: bytes | None
    """None closes the connection."""


@implementer(interfaces.ITCPTransport, interfaces.IConsumer)
class VirtualTransport:
    """An end of a connection."""

    other: VirtualTransport
    bufferSize = BUFFER_BYTES

    def __init__(self, host: VirtualHost, local: IPv4Address, peer: IPv4Address, protocol: Any) -> None:
        self.host = host
        self.protocol = protocol
        self.connected = True
        self.disconnecting = False
        self.gone = False
        self.reading = True
        self.written = 0
        self._local = local
        self._peer = peer
        self._on_way: list[_Piece] = []
        self._call: interfaces.IDelayedCall | None = None
        self._producer: Any = None
        self._paused = False

    # writing

    def write(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"{type(data).__name__} instead of bytes")
        if not self.connected or self.disconnecting or not data:
            return
        self.written += len(data)
        network = self.host.network
        if len(data) > 1 and network.random.random() < network.split:
            cut = network.random.randrange(1, len(data))
            self._send(data[:cut])
            self._send(data[cut:])
        else:
            self._send(data)
        if self._producer is not None and not self._paused and self._held() > BUFFER_BYTES:
            self._paused = True
            self._producer.pauseProducing()

    def writeSequence(self, data: Any) -> None:
        self.write(b"".join(data))

    def _held(self) -> int:
        return sum(len(piece.data or b"") for piece in self._on_way)

    def _send(self, data: bytes | None) -> None:
        network = self.host.network
        earliest = self._on_way[-1].due if self._on_way else 0.0
        self._on_way.append(_Piece(max(earliest, network.clock.seconds() + network.next_delay()), data))
        self.deliver_soon()

    def deliver_soon(self) -> None:
        """Wake up when the next piece is due."""
        if self._on_way and (self._call is None or not self._call.active()):
            clock = self.host.network.clock
            self._call = clock.callLater(max(0.0, self._on_way[0].due - clock.seconds()), self._deliver)

    def _deliver(self) -> None:
        network, other = self.host.network, self.other
        while self._on_way and self._on_way[0].due <= network.clock.seconds():
            if not other.reading or other.host.is_paused or network.is_cut(self.host.name, other.host.name):
                return
            if other.gone or not other.connected:
                self._refused()
                return
            piece = self._on_way.pop(0)
            network.delivered(self.host.name, other.host.name, piece.data)
            if piece.data is None:
                other.connection_lost(error.ConnectionDone())
                self.connection_lost(error.ConnectionDone())
                return
            other.protocol.dataReceived(piece.data)
        self.deliver_soon()
        if self._paused and not self._on_way and self.connected:
            self._paused = False
            self._producer.resumeProducing()

    def _refused(self) -> None:
        """Fail, because the other end is gone: its system says so at once or when it is up again."""
        network = self.host.network
        if network.host(self.other.host.name).is_up and not network.is_cut(self.other.host.name, self.host.name):
            self.connection_lost(error.ConnectionLost())

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        assert streaming
        self._producer = producer

    def unregisterProducer(self) -> None:
        self._producer = None
        self._paused = False

    # closing

    def loseConnection(self) -> None:
        if self.connected and not self.disconnecting:
            self.disconnecting = True
            self._send(None)

    def drop(self) -> None:
        """Lose everything on its way."""
        self._on_way.clear()

    def abortConnection(self) -> None:
        if self.connected:
            self._on_way.clear()
            other, network = self.other, self.host.network
            self.connection_lost(error.ConnectionAborted())
            if not network.is_cut(self.host.name, other.host.name) and not other.gone:
                other.connection_lost(error.ConnectionLost())

    def connection_lost(self, reason: Exception) -> None:
        """Inform this end's protocol, once."""
        if not self.connected:
            return
        self.connected = False
        self.host.network.forget(self)
        if self._call is not None and self._call.active():
            self._call.cancel()
        if self._producer is not None and not self.gone:
            self._producer.stopProducing()
        if not self.gone and self.protocol is not None:
            self.protocol.connectionLost(failure.Failure(reason))

    # reading

    def pauseProducing(self) -> None:
        self.reading = False

    def resumeProducing(self) -> None:
        self.reading = True
        self.other.deliver_soon()

    def stopProducing(self) -> None:
        self.loseConnection()

    # the rest of ITCPTransport

    def getPeer(self) -> IPv4Address:
        return self._peer

    def getHost(self) -> IPv4Address:
        return self._local

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Do nothing: no bytes wait for more here."""

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Do nothing: half-open connections stay unnoticed."""

    def getTcpNoDelay(self) -> bool:
        return True

    def getTcpKeepAlive(self) -> bool:
        return False

    def loseWriteConnection(self) -> None:
        self.loseConnection()

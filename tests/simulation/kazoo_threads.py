"""Kazoo in a simulated world: its threads are greenlets, its sockets connections of the virtual network.

Kazoo's client is the real one. What is replaced is its handler, which is where it has threads, events, queues and sockets from,
and two modules that it asks for the time and for chance.
"""

from __future__ import annotations

import atexit
import queue
import random
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from kazoo import retry
from kazoo.handlers import utils
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol import connection
from twisted.internet import protocol
from twisted.python import failure

from tests.simulation.threads import RunningThread, VirtualEvent, VirtualThread, VirtualThreads
from twisted_mq.testing.virtual_network import VirtualHost


class Readable:
    """Condition that a thread waits for until there is data to read."""

    def __init__(self) -> None:
        self.waiting: list[VirtualEvent] = []

    @property
    def is_ready(self) -> bool:
        """Return True if a read would not wait."""
        raise NotImplementedError

    def ready(self) -> None:
        """Wake those who wait for it."""
        for event in self.waiting:
            event.set()

    def close(self) -> None:
        """Nothing is held."""


class Mailbox(Readable):
    """Both ends of a pair of sockets: bytes that one thread leaves for another one of the same process."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    @property
    def is_ready(self) -> bool:
        return self._count > 0

    def send(self, data: bytes) -> int:
        self._count += len(data)
        self.ready()
        return len(data)

    def recv(self, size: int) -> bytes:
        if not self._count:
            raise BlockingIOError("nothing to read")
        taken = min(size, self._count)
        self._count -= taken
        return bytes(taken)


class Socket(protocol.Protocol, Readable):
    """A connection, as kazoo uses a socket that does not block."""

    def __init__(self) -> None:
        Readable.__init__(self)
        self._received = bytearray()
        self.is_lost = False

    @property
    def is_ready(self) -> bool:
        return self.is_lost or bool(self._received)

    def dataReceived(self, data: bytes) -> None:
        self._received += data
        self.ready()

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self.is_lost = True
        self.ready()

    def setblocking(self, flag: bool) -> None:
        """Do nothing: it never blocks."""

    def recv(self, size: int) -> bytes:
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def send(self, data: bytes) -> int:
        if self.is_lost:
            raise ConnectionResetError("connection reset")
        self.transport.write(bytes(data))  # type: ignore[union-attr]
        return len(data)

    def close(self) -> None:
        if not self.is_lost:
            self.transport.loseConnection()  # type: ignore[union-attr]


class _Attempt(protocol.ClientFactory):
    """An attempt to connect; `ended` is set when its result is known."""

    noisy = False

    def __init__(self, ended: VirtualEvent) -> None:
        self.ended = ended
        self.socket: Socket | None = None

    def buildProtocol(self, addr: Any) -> Socket:
        self.socket = Socket()
        self.ended.set()
        return self.socket

    def clientConnectionFailed(self, connector: Any, reason: failure.Failure) -> None:
        self.ended.set()


class VirtualQueue:
    """As queue.Queue, as far as kazoo's handler uses it."""

    def __init__(self, threads: VirtualThreads) -> None:
        self._threads = threads
        self._items: deque[Any] = deque()
        self._filled = threads.event()

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._filled.set()

    def get(self) -> Any:
        while not self._items:
            self._filled = self._threads.event()
            self._filled.wait(None)
        return self._items.popleft()

    def task_done(self) -> None:
        """Do nothing: the result is not used."""


class VirtualHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """The threads of kazoo's client in one process of the world."""

    queue_empty = queue.Empty

    def __init__(self, threads: VirtualThreads) -> None:
        self._threads = threads.precise()
        self.queue_impl = lambda: VirtualQueue(self._threads)
        super().__init__()

    def start(self) -> None:
        super().start()
        atexit.unregister(self.stop)  # a process of the world ends before

    def sleep_func(self, seconds: float) -> None:
        self._threads.event().wait(seconds)

    def spawn(self, func: Callable[..., object], *args: Any, **kwargs: Any) -> VirtualThread:
        return self._threads.start(lambda: _no_result(func(*args, **kwargs)), "kazoo")

    def event_object(self) -> VirtualEvent:
        return self._threads.event()

    def async_result(self) -> utils.AsyncResult:
        return utils.AsyncResult(self, self._threads.condition, KazooTimeoutError)

    def create_socket_pair(self) -> tuple[Mailbox, Mailbox]:
        mailbox = Mailbox()
        return mailbox, mailbox

    def create_connection(self, address: tuple[str, int], timeout: float, **ignored: Any) -> Socket:
        attempt = _Attempt(self._threads.event())
        connector = self._threads.host.connectTCP(*address, attempt, timeout=timeout)
        attempt.ended.wait(timeout)
        if attempt.socket is None:
            if not attempt.ended.is_set():
                connector.stopConnecting()
            raise ConnectionRefusedError("no connection")
        return attempt.socket

    def select(
        self, readers: Sequence[Readable], writers: Sequence[Readable], others: Sequence[Readable], timeout: float
    ) -> tuple[Sequence[Readable], Sequence[Readable], Sequence[Readable]]:
        """Sockets can always be written to."""
        ready = [one for one in readers if one.is_ready]
        if not ready and not writers:
            event = self._threads.event()
            for one in readers:
                one.waiting.append(event)
            event.wait(timeout)
            for one in readers:
                one.waiting.remove(event)
            ready = [one for one in readers if one.is_ready]
        return ready, writers, []


def _no_result(result: object) -> None:
    """Threads have none."""


@contextmanager
def kazoo_in(running: RunningThread, clock: Callable[[], float], source: random.Random) -> Iterator[None]:
    """Have kazoo's own waits follow the clock of the host whose thread runs, and its chance the world's."""

    def monotonic() -> float:
        thread = running.running
        return clock() if thread is None else thread.owner.host.boot_seconds()

    time = types.SimpleNamespace(monotonic=monotonic)
    with (
        mock.patch.object(connection, "time", time),
        mock.patch.object(connection, "random", source),
        mock.patch.object(retry, "time", time),
        mock.patch.object(retry, "random", source),
    ):
        yield


def handlers_of(host: VirtualHost) -> Callable[[], VirtualHandler]:
    """Return what makes kazoo's handlers in a process of that host."""
    return lambda: VirtualHandler(host.pool)

"""The client's hot paths whose instructions are counted: each face of it against a broker that answers from ready bytes.

Real sockets of the loopback, the client and its peer in one loop: nothing depends on who is quicker. What the peer takes is
in every figure alike.
"""

from __future__ import annotations

import asyncio
import collections
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

import attrs
from twisted.internet import defer
from twisted.internet.epollreactor import EPollReactor
from twisted.python.failure import Failure

from tests.bench.canned_broker import BATCH, BODY, TOPIC, CannedBroker
from tests.bench.count_paths import CountedPath, Prepared
from twisted_mq import aio, blocking, client
from twisted_mq.blocking import loop_thread
from twisted_mq.client import (
    ClientOptions,
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    Message,
    ProducerOptions,
    SendResult,
    SendStatus,
)

IN_FLIGHT, TURNS = 64, 4
PULLS = 4
"""That a piece of a backlog consists of."""
Send = Callable[[Message], Any]
PATIENT = ClientOptions(connect_timeout_seconds=600.0, api_timeout_seconds=600.0)
SENDING = ProducerOptions(send_timeout_seconds=600.0)
"""Valgrind takes its time."""


@attrs.define(eq=False)
class Readable:
    """A socket that a reactor of Twisted's reads by calling a function."""

    socket: socket.socket
    read: Callable[[], None]

    def fileno(self) -> int:
        return self.socket.fileno()

    def doRead(self) -> None:
        self.read()

    def connectionLost(self, reason: object) -> None:
        """Its owner knows."""

    def logPrefix(self) -> str:
        return "canned"


class OwnReactor(EPollReactor):
    """Not the process's."""

    def until(self, work: defer.Deferred[Any]) -> Any:
        """Run until it has fired; its result. Raises what it fails with."""
        results: list[Any] = []
        work.addBoth(results.append)
        while not results:
            self.runUntilCurrent()
            self.doIteration(self.timeout())
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def watch(self, connection: socket.socket, read: Callable[[], None]) -> None:
        self.addReader(Readable(connection, read))

    def run_coroutine(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.until(defer.Deferred.fromCoroutine(work))

    def all_of(self, works: list[Coroutine[Any, Any, Any]]) -> defer.Deferred[Any]:
        return defer.gatherResults([defer.Deferred.fromCoroutine(one) for one in works])


def slow_clock() -> float:
    """Valgrind must not look like a process that is late: it would log that, and extend timeouts."""
    return time.monotonic() / 100


def own_reactor() -> OwnReactor:
    reactor = OwnReactor()
    reactor.seconds = slow_clock  # type: ignore[method-assign]
    reactor.startRunning(installSignalHandlers=False)
    return reactor


# Sends


async def send_some(send: Send) -> int:
    """Return how many succeeded."""
    stored = 0
    for _ in range(TURNS):
        stored += (await send(Message(TOPIC, BODY))).status is SendStatus.SEND_OK
    return stored


async def send_side_by_side(send: Send, senders: int, gather: Callable[..., Any]) -> int:
    return sum(await gather([send_some(send) for _ in range(senders)]))


def prepare_deferred_sends(folder: str, count: int, senders: int) -> Prepared:
    """A piece: so many coroutines that send one message after the other."""
    reactor, broker = own_reactor(), CannedBroker()
    broker.serve(reactor.watch)
    producer = client.Producer(reactor, "g", broker.address, options=SENDING, client_options=PATIENT)
    reactor.until(producer.start())

    def close() -> None:
        reactor.until(producer.stop())
        broker.close()

    def call(_: int) -> int:
        return reactor.run_coroutine(send_side_by_side(producer.send, senders, reactor.all_of))

    return Prepared(call, range(count), close=close)


async def gather_tasks(works: list[Coroutine[Any, Any, int]]) -> list[int]:
    return await asyncio.gather(*works)


def prepare_asyncio_sends(folder: str, count: int, senders: int) -> Prepared:
    """The same as tasks of asyncio."""
    loop, broker = asyncio.SelectorEventLoop(), CannedBroker()
    broker.serve(loop.add_reader)
    producer = aio.Producer(broker.address, group="g", options=SENDING, client_options=PATIENT)
    loop.run_until_complete(producer.start())

    def close() -> None:
        loop.run_until_complete(producer.stop())
        loop.close()
        broker.close()

    def call(_: int) -> int:
        return loop.run_until_complete(send_side_by_side(producer.send, senders, gather_tasks))

    return Prepared(call, range(count), close=close)


def plain_producer() -> tuple[blocking.Producer, CannedBroker]:
    """Started; its thread leaves the loop to who sends, however long valgrind makes that take."""
    loop_thread.REST_SECONDS = 600.0
    broker = CannedBroker()
    producer = blocking.Producer(broker.address, group="g", options=SENDING, client_options=PATIENT)
    producer.start()
    loop = producer._reactor.loop
    loop.call_soon_threadsafe(broker.serve, loop.add_reader)
    return producer, broker


def prepare_plain_sends(folder: str, count: int) -> Prepared:
    """Calls of one thread."""
    producer, broker = plain_producer()

    def close() -> None:
        producer.stop()
        broker.close()

    def call(_: int) -> int:
        return sum(producer.send(Message(TOPIC, BODY)).status is SendStatus.SEND_OK for _ in range(TURNS))

    return Prepared(call, range(count), close=close)


def prepare_futures(folder: str, count: int) -> Prepared:
    """As many sends of one thread, which waits for the oldest of those that are under way."""
    producer, broker = plain_producer()
    sent: collections.deque[Future[SendResult]] = collections.deque()

    def close() -> None:
        producer.stop()
        broker.close()

    def send_one() -> bool:
        sent.append(producer.send_async(Message(TOPIC, BODY)))
        return len(sent) <= IN_FLIGHT or sent.popleft().result().status is SendStatus.SEND_OK

    def call(_: int) -> int:
        return sum(send_one() for _ in range(IN_FLIGHT * TURNS))

    return Prepared(call, range(count), close=close)


# A backlog


def options(messages_a_call: int) -> ConsumerOptions:
    return ConsumerOptions(
        consume_from_where=ConsumeFromWhere.FIRST_OFFSET, consume_message_batch_max_size=messages_a_call
    )


@attrs.define(eq=False)
class Backlog:
    """Counts the messages that a listener consumed, and reports when all wanted ones are."""

    broker: CannedBroker
    wanted: int = 0
    consumed: int = 0
    reached: Callable[[None], object] = lambda _: None

    def listener(self, messages: list[Any], context: object) -> ConsumeStatus:
        self.consumed += len(messages)
        if self.consumed == self.wanted:
            self.reached(None)
        return ConsumeStatus.CONSUME_SUCCESS

    def want(self, reached: Callable[[None], object]) -> None:
        """Have a piece more pulled; `reached` is called when it is consumed."""
        self.wanted, self.reached = self.wanted + PULLS * BATCH, reached
        self.broker.allow(PULLS)


def prepare_deferred_listener(folder: str, count: int, messages_a_call: int) -> Prepared:
    """A piece: some pulls' worth of messages to a listener that answers at once."""
    reactor, broker = own_reactor(), CannedBroker(count * PULLS)
    broker.serve(reactor.watch)
    backlog = Backlog(broker)
    consumer = client.PushConsumer(
        reactor, "g", broker.address, listener=backlog.listener, options=options(messages_a_call),
        client_options=PATIENT,
    )  # fmt: skip
    broker.client_id = consumer.client.client_id
    consumer.subscribe(TOPIC)
    reactor.until(consumer.start())

    def close() -> None:
        reactor.until(consumer.stop())
        broker.close()

    def call(_: int) -> int:
        reached: defer.Deferred[None] = defer.Deferred()
        before = backlog.consumed
        backlog.want(reached.callback)
        reactor.until(reached)
        return backlog.consumed - before

    return Prepared(call, range(count), close=close)


def prepare_asyncio_iteration(folder: str, count: int) -> Prepared:
    """A piece: some pulls' worth of messages to one task that acknowledges each."""
    loop, broker = asyncio.SelectorEventLoop(), CannedBroker(count * PULLS)
    broker.serve(loop.add_reader)
    topics = {TOPIC: "*"}
    consumer = aio.PushConsumer(broker.address, group="g", topics=topics, options=options(1), client_options=PATIENT)
    broker.client_id = consumer._core.client.client_id
    loop.run_until_complete(consumer.start())
    messages = consumer.messages()

    async def take() -> int:
        for _ in range(PULLS * BATCH):
            await (await anext(messages)).ack()
        return PULLS * BATCH

    def call(_: int) -> int:
        broker.allow(PULLS)
        return loop.run_until_complete(take())

    def close() -> None:
        loop.run_until_complete(messages.aclose())
        loop.run_until_complete(consumer.stop())
        loop.close()
        broker.close()

    return Prepared(call, range(count), close=close)


def _equals(expected: int) -> Callable[[Any], bool]:
    return lambda found: bool(found == expected)


def _sends(name: str, prepare: Callable[[str, int], Prepared], senders: int) -> CountedPath:
    few, many = (4, 24) if senders > 1 else (50, 300)
    return CountedPath(name, prepare, _equals(senders * TURNS), few, many, requests=senders * TURNS)


def _backlog(name: str, prepare: Callable[[str, int], Prepared]) -> CountedPath:
    return CountedPath(name, prepare, _equals(PULLS * BATCH), 8, 40, requests=PULLS, messages=BATCH)


CLIENT_PATHS = (
    _sends("client: send, Deferreds", partial(prepare_deferred_sends, senders=1), 1),
    _sends("client: send, asyncio", partial(prepare_asyncio_sends, senders=1), 1),
    _sends("client: send, plain calls", prepare_plain_sends, 1),
    _sends("client: 64 sends, Deferreds", partial(prepare_deferred_sends, senders=IN_FLIGHT), IN_FLIGHT),
    _sends("client: 64 sends, asyncio", partial(prepare_asyncio_sends, senders=IN_FLIGHT), IN_FLIGHT),
    _sends("client: 64 sends, futures", prepare_futures, IN_FLIGHT),
    _backlog("client: listener, 32 a call", partial(prepare_deferred_listener, messages_a_call=BATCH)),
    _backlog("client: listener, 1 a call", partial(prepare_deferred_listener, messages_a_call=1)),
    _backlog("client: iteration, asyncio", prepare_asyncio_iteration),
)
"""In the table's order. Of a backlog a request is a pull."""

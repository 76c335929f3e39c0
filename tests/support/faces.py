"""Shared parts of tests of the asyncio and the blocking client: a cluster on its own thread, and the open files and threads of a
process."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

import pytest
from twisted.internet import defer

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.blocking.calls import Call
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.testing import EmbeddedCluster, OrderedCluster

Result = TypeVar("Result")
Cluster = TypeVar("Cluster", EmbeddedCluster, OrderedCluster)
AnyServed = TypeVar("AnyServed", bound="Served[Any]")

SECONDS = 60.0
"""For one step on the cluster's thread."""


class Served(Generic[Cluster]):
    """A cluster on a reactor of its own thread; `run` has a coroutine run there."""

    def __init__(self, make: Callable[[LoopReactor], Cluster]) -> None:
        self.thread = LoopThread()
        self.reactor = LoopReactor()
        self.do(self._enter)
        self.cluster = make(self.reactor)
        self.run(self.cluster.start)

    def _enter(self) -> None:
        self.reactor.enter()

    @property
    def namesrv(self) -> str:
        return self.cluster.name_server

    def run(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        return self._call(lambda: defer.Deferred.fromCoroutine(work()))

    def do(self, function: Callable[[], Result]) -> Result:
        return self._call(lambda: defer.execute(function))

    def _call(self, work: Callable[[], defer.Deferred[Result]]) -> Result:
        """Also in a thread that runs a loop of its own, which stands still meanwhile."""
        call: Call[Result] = Call(self.thread)
        self.thread.soon(call.begin, work)
        return call.wait(SECONDS)

    def stop(self) -> None:
        self.run(self.cluster.stop)
        self.thread.stop()


class ServedCluster(Served[EmbeddedCluster]):
    """A name server and a broker."""

    def __init__(self, **options: Any) -> None:
        super().__init__(lambda reactor: EmbeddedCluster(reactor, **options))

    def topic(self, queues: int = 1) -> str:
        """A new topic's name; it is made with so many queues."""
        name = f"T-{uuid.uuid4().hex[:12]}"
        config = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
        self.do(lambda: self.cluster.broker.controller.topics.update([config]))
        return name

    def settle(self) -> None:
        """Wait until the servers know of no client; the broker is connected to the name server."""
        broker, namesrv = self.cluster.broker, self.cluster.namesrv
        while self.do(lambda: len(broker._ports.factory.channels) + len(namesrv.factory.channels)) > 1:
            time.sleep(0.01)

    def committed(self, group: str, topic: str, queue_id: int = 0) -> int | None:
        """The group's offset at the broker; None without one."""
        return self.do(lambda: self.cluster.broker.controller.offsets.query(group, topic, queue_id))


@contextlib.contextmanager
def stopped(served: AnyServed) -> Iterator[AnyServed]:
    """Stopped at the end."""
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture(scope="package")
def cluster() -> Iterator[ServedCluster]:
    with stopped(ServedCluster()) as served:
        yield served


@pytest.fixture(scope="module")
def ordered_cluster() -> Iterator[Served[OrderedCluster]]:
    with stopped(Served(lambda reactor: OrderedCluster(reactor))) as served:
        yield served


@pytest.fixture
def group() -> str:
    """A name that no other test has."""
    return f"G-{uuid.uuid4().hex[:12]}"


def open_files() -> set[str]:
    """Return the descriptors of this process with their targets, except the files of a store."""
    gc.collect()
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return {one for one in found if "/mq-store-" not in one}


def threads() -> set[str]:
    """Return the names of this process's threads, except the workers of a loop's pool, whose number depends on timing."""
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}

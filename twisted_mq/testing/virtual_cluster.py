"""Runs a name server and a broker on virtual time, in memory: hours of delays and retries pass in the time that they take to run.

with VirtualCluster() as cluster:
    producer = Producer(cluster.reactor, "shop", cluster.name_server)
    cluster.run(producer.start())
    cluster.run(producer.send(message))
    cluster.advance(2 * 3600)

Clients of `twisted_mq.client` run on `cluster.reactor`, in the thread of the test. Things happen only during `run` and
`advance`, and everything happens in the same order each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.broker.machine import Machine
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX
from twisted_mq.testing.cluster import LOOPBACK, EmbeddedCluster, Settings
from twisted_mq.testing.faults import Faults
from twisted_mq.testing.stored import make_topic, messages_of
from twisted_mq.testing.virtual_network import VirtualNetwork
from twisted_mq.testing.virtual_time import VirtualClock

Result = TypeVar("Result")

MINUTE_MS = 60_000
SELDOM = dict.fromkeys(
    (
        "flush_consumer_offset_interval",
        "flush_delay_offset_interval",
        "timer_flush_interval_ms",
        "transaction_metric_flush_interval",
    ),
    MINUTE_MS,
)
"""Settings that make periodic writes rare, because this broker need not survive the loss of its process."""

START_SECONDS = 1_795_217_217.0
"""In November 2026."""

LEAP_SECONDS = 20.0
"""In a long leap, timers may be this late, except at its end, so that periodic work costs little."""


class AtOnce:
    """A thread pool that runs work at once, in the caller's thread."""

    def callInThreadWithCallback(
        self,
        told: Callable[[bool, object], None] | None,
        function: Callable[..., object],
        *arguments: Any,
        **named: Any,
    ) -> None:
        try:
            result, well = function(*arguments, **named), True
        except Exception:
            result, well = failure.Failure(), False
        if told is not None:
            told(well, result)


class VirtualCluster:
    """A cluster that runs inside a `with` block. `busy`, `slow`, `losing_connections` and `full_disk` are its faults, see Faults.

    `broker_options` are attributes of BrokerOptions. All random choices come from `seed`.
    """

    def __init__(self, *, broker_options: Settings | None = None, seed: int = 0) -> None:
        self.clock = VirtualClock(START_SECONDS)
        host = VirtualNetwork(self.clock, seed, split=0.0).host(LOOPBACK)
        host.pool = AtOnce()
        self._host = host
        self.reactor: interfaces.IReactorTime = host
        machine = Machine(bind=host.bind, monotonic=self.clock.seconds, random=random.Random(seed))
        self._cluster = EmbeddedCluster(
            host, broker_options={**SELDOM, **(broker_options or {})}, in_memory=True, machine=machine
        )
        faults = Faults(lambda: self._cluster.broker, host, lambda work: work())
        self.busy, self.slow = faults.busy, faults.slow
        self.losing_connections, self.full_disk = faults.losing_connections, faults.full_disk

    @property
    def name_server(self) -> str:
        """Return the name server's address for clients on `reactor`."""
        return self._cluster.name_server

    def __enter__(self) -> Self:
        self.run(self._cluster.start())
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._cluster.stop())

    # time

    def advance(self, seconds: float) -> None:
        """Let this many seconds pass, with everything that happens in them.

        In a long time, events on the way may be LEAP_SECONDS late; at its end everything is on time.
        """
        end = self.clock.now + seconds
        if seconds > 2 * LEAP_SECONDS:
            self._host.slack = LEAP_SECONDS
            self.clock.advance(seconds - 2 * LEAP_SECONDS)
            self._host.slack = 0.0
        self.clock.advance(end - self.clock.now)

    def run(
        self, work: defer.Deferred[Result] | Coroutine[defer.Deferred[Any], Any, Result], seconds: float = 60.0
    ) -> Result:
        """Let time pass until the work is done; return its result or raise its error. Raises TimeoutError after `seconds`."""
        ended: list[Result | failure.Failure] = []
        defer.ensureDeferred(work).addBoth(ended.append)
        end, timers = self.clock.now + seconds, self.clock.timers
        while not ended and timers.next_time() <= end:
            self.clock.advance(max(0.0, timers.next_time() - self.clock.now))
        if not ended:
            raise TimeoutError(f"not done after {seconds} s of virtual time")
        if isinstance(ended[0], failure.Failure):
            ended[0].raiseException()
        return ended[0]

    # topics and messages

    def make_topic(self, topic: str, queues: int = 4) -> None:
        """Create a topic, if the first send must not do so."""
        self.run(make_topic(self._cluster.broker.controller, topic, queues))

    def messages(self, topic: str) -> Sequence[MessageExt]:
        """Return all messages of a topic, in the order in which they were stored."""
        return messages_of(self._cluster.broker.controller.store, topic)

    def dead_letters(self, group: str) -> Sequence[MessageExt]:
        """Return the messages that a group refused for good."""
        return self.messages(DLQ_PREFIX + group)

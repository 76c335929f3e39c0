"""Shared parts of client tests: a clock, a cluster in memory, and calls that are run to their end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.fake_broker import FakeCluster
from tests.support.remoting import settle

Result = TypeVar("Result")


class ClientCase(SynchronousTestCase):
    """`clock` starts in November 2026: clients put its time into unique keys and headers."""

    name_servers = 1

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_795_217_000)
        self.cluster = FakeCluster(self.clock, self.name_servers)

    def client_arguments(self) -> dict[str, Any]:
        return {"namesrv": self.cluster.namesrv, "connect": self.cluster.network.connect, "ip": "10.9.9.9"}

    def settle(self) -> None:
        settle(self.clock)

    def advance(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass in small steps, with everything that follows from it."""
        while seconds > 0:
            self.clock.advance(min(step, seconds))
            self.settle()
            seconds -= step

    def begin(self, work: defer.Deferred[Result] | Coroutine[Any, Any, Result]) -> defer.Deferred[Result]:
        started = work if isinstance(work, defer.Deferred) else defer.Deferred.fromCoroutine(work)
        self.settle()
        return started

    def run_to_end(self, work: defer.Deferred[Result] | Coroutine[Any, Any, Result], seconds: float = 0.0) -> Result:
        started = self.begin(work)
        self.advance(seconds)
        result: Result = self.successResultOf(started)
        return result

    def run_to_failure(self, work: Any, expected: type[Exception], seconds: float = 0.0) -> Any:
        started = self.begin(work)
        self.advance(seconds)
        return self.failureResultOf(started, expected).value

    def assert_no_timers(self) -> None:
        self.assertEqual([str(one) for one in self.clock.getDelayedCalls()], [])

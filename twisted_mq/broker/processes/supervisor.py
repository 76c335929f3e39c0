"""Supervises several brokers of one cluster: starts them, starts again those that end, and stops all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from twisted.application import service
from twisted.internet import defer, interfaces

from twisted_mq.broker.processes.child import Child, Spawn, State
from twisted_mq.broker.processes.lifeline import LIFELINE, REPORTS, VARIABLE
from twisted_mq.broker.processes.numbering import numbered_name
from twisted_mq.logs import Logger

STDOUT, STDERR = 1, 2
MODULE = "twisted_mq.broker.processes.process"


class BrokerEnded(Exception):
    """Raised when a broker ends before it was ready; the text says which one and how."""


class Supervisor(service.Service):
    """Runs `count` brokers. `ready` fires once each has been ready, and fails with BrokerEnded if one ends before.

    A failure of `ready` stops nothing: the broker is started again.
    """

    log = Logger()

    def __init__(self, name: str, count: int, spawn: Spawn, reactor: interfaces.IReactorTime) -> None:
        self.children = [
            Child(numbered_name(name, number), number, spawn, reactor, self._changed) for number in range(count)
        ]
        self.ready: defer.Deferred[None] = defer.Deferred()
        self._not_ready = set(self.children)
        self._reactor = reactor

    def startService(self) -> None:
        """Start all processes as soon as the reactor runs, which then learns of their end."""
        super().startService()
        interfaces.IReactorCore(self._reactor).callWhenRunning(self._start_all)

    def _start_all(self) -> None:
        if self.running:
            for child in self.children:
                child.start()

    def stopService(self) -> defer.Deferred[None]:
        """Stop all brokers side by side. Fires when no process is left."""
        super().stopService()
        return defer.gatherResults([child.stop() for child in self.children]).addCallback(lambda _: None)

    def _changed(self, child: Child) -> None:
        if child.state is State.READY:
            self.log.info("broker {name} is ready: {ports}", name=child.name, ports=child.ports)
            self._not_ready.discard(child)
            if not self._not_ready and not self.ready.called:
                self.ready.callback(None)
        elif child.state is State.WAITING and child in self._not_ready and not self.ready.called:
            self.ready.errback(BrokerEnded(f"broker {child.name} {child.why}"))


def spawner(reactor: object, words: Sequence[str], twistd: Sequence[str] = ()) -> Spawn:
    """Return a function that starts broker processes with these words of `mqbroker`, after these of twistd."""
    processes = interfaces.IReactorProcess(reactor)

    def spawn(protocol: interfaces.IProcessProtocol, number: int) -> interfaces.IProcessTransport:
        command = [sys.executable, "-m", MODULE, *twistd, "mqbroker", *words, "--broker-number", str(number)]
        return processes.spawnProcess(
            protocol,
            sys.executable,
            command,
            env={**os.environ, VARIABLE: "1"},
            childFDs={LIFELINE: "w", STDOUT: "r", STDERR: "r", REPORTS: "r"},
        )

    return spawn


def words_of_children(words: Sequence[str]) -> list[str]:
    """Return the words of each child: its log is read by the supervisor, and its metrics page too, on a free port."""
    own = ("logFormat=json", "metricsPromExporterHost=127.0.0.1", "metricsPromExporterPort=0")
    return [*words, *(word for setting in own for word in ("--set", setting))]

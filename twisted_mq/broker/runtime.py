"""Holds the environment in which one broker runs: its options, its reactor with clocks and threads, and its machine."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import interfaces

from twisted_mq.broker.machine import Machine
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.clocks import wall_ms
from twisted_mq.reactor_threads import CallFromThread, InThread, threads_of


@attrs.frozen(eq=False)
class BrokerRuntime:
    """The runtime of one broker. The reactor also provides threads and sockets."""

    options: BrokerOptions
    reactor: interfaces.IReactorTime
    machine: Machine
    in_thread: InThread = attrs.field(init=False)
    call_from_thread: CallFromThread = attrs.field(init=False)
    wall_ms: Callable[[], int] = attrs.field(init=False)
    name_servers: list[str] = attrs.field(init=False)
    """Shared by all parts that ask name servers; changed in place."""

    @in_thread.default
    def _threads(self) -> InThread:
        return threads_of(self.reactor)

    @call_from_thread.default
    def _calls(self) -> CallFromThread:
        # mypy-zope takes the argument `callable` for the interface's self
        return interfaces.IReactorThreads(self.reactor).callFromThread  # type: ignore[return-value]

    @wall_ms.default
    def _time_of_day(self) -> Callable[[], int]:
        return wall_ms(self.reactor)

    @name_servers.default
    def _configured_name_servers(self) -> list[str]:
        return self.options.name_servers

    def now_ms(self) -> int:
        """Return the time of the reactor's clock, which timers follow, in ms."""
        return int(self.reactor.seconds() * 1000)

"""Connects a broker to its supervisor: reports when it is ready, and stops it when the supervisor is gone.

The supervisor holds the other end of a pipe. The system closes that end when the supervisor ends in any way, also after
kill -9.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from twisted.application import service
from twisted.internet import interfaces, main
from twisted.python.failure import Failure
from zope.interface import implementer

from twisted_mq.logs import Logger

if TYPE_CHECKING:
    from twisted_mq.broker.service import BrokerService

VARIABLE = "MQ_SUPERVISED"
"""The variable of the environment that a supervisor sets for its brokers."""
LIFELINE, REPORTS = 0, 3
"""The descriptors of a supervised broker: a pipe that ends with the supervisor, and one for its report."""


def is_supervised(environ: Mapping[str, str] = os.environ) -> bool:
    """Return True if a supervisor started this process."""
    return environ.get(VARIABLE) == "1"


def report_of(broker: BrokerService) -> bytes:
    """Return the line that tells a supervisor the ports of a broker; 0 for those that it does not have."""
    ports = {"port": broker.port, "grpc": broker.grpc_port, "metrics": broker.metrics_port}
    return json.dumps(ports).encode() + b"\n"


@implementer(interfaces.IReadDescriptor)
class Lifeline(service.Service):
    """Stops the reactor when the pipe ends, and writes the report once the broker has started."""

    log = Logger()

    def __init__(
        self, broker: BrokerService, reactor: object, lifeline: int = LIFELINE, reports: int = REPORTS
    ) -> None:
        self._broker = broker
        self._reactor = reactor
        self._lifeline = lifeline
        self._reports = reports

    def startService(self) -> None:
        super().startService()
        os.set_blocking(self._lifeline, False)
        interfaces.IReactorFDSet(self._reactor).addReader(self)
        self._broker.started.addCallback(self._report)

    def stopService(self) -> None:
        super().stopService()
        interfaces.IReactorFDSet(self._reactor).removeReader(self)

    def _report(self, broker: BrokerService) -> BrokerService:
        with contextlib.suppress(BrokenPipeError):  # the lifeline has ended too, and stops this process
            os.write(self._reports, report_of(broker))
        return broker

    # IReadDescriptor

    def fileno(self) -> int:
        return self._lifeline

    def logPrefix(self) -> str:
        return "lifeline"

    def doRead(self) -> Failure | None:
        """Read what is there; return a failure at the end."""
        try:
            if os.read(self._lifeline, 4096):
                return None
        except BlockingIOError:
            return None
        return Failure(main.CONNECTION_DONE)

    def connectionLost(self, reason: Failure) -> None:
        """Stop: the reactor calls this after the end was read, or was seen without reading."""
        if self.running:
            interfaces.IReactorCore(self._reactor).stop()
            self.log.error("the supervisor ended: this broker stops")

"""Makes the metrics that every server has: its process, its connections, and what blocks its reactor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from prometheus_client import GC_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.core import Metric

from twisted_mq.metrics.family import Family, one
from twisted_mq.remoting.server import RemotingServerFactory


class Serves(Protocol):
    """The parts of any server that an answer is made from."""

    @property
    def server(self) -> RemotingServerFactory: ...


FAMILIES: tuple[Family[Serves], ...] = (
    Family("mq_connections", "gauge", "Open connections", (), lambda s: one(len(s.server.channels))),
    Family("mq_long_turns_total", "counter", "Commands that held the reactor for over 50 ms", (),
           lambda s: one(s.server.traffic.long_turns)),
    Family("mq_pending_answers", "gauge", "Requests that wait for their answer", (),
           lambda s: one(s.server.traffic.pending_answers)),
)  # fmt: skip


def of_process() -> Iterable[Metric]:
    """Return memory, processor time, files, garbage collections."""
    yield from PROCESS_COLLECTOR.collect()
    yield from GC_COLLECTOR.collect()

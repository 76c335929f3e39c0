"""Work that all faces share, and measurements of a process whose members have all stopped."""

from __future__ import annotations

import gc
import os
import threading

import attrs

from tests.soak.clients.ledger import Ledger
from twisted_mq.client import ConsumeFromWhere, ConsumerOptions, ProducerOptions

PAUSE_SECONDS = 0.04
"""Between two messages of a key."""
SLOW_SECONDS = 0.5
"""Duration of a slow message in its listener."""
DRAIN_SECONDS = 120.0
WARM_SECONDS = 3.0
"""A first round: what is loaded, and kept for ever, is there from then on."""

PRODUCER_OPTIONS = ProducerOptions(retry_times=0)
"""Without further tries a broker stores nothing twice."""
CONSUMER_OPTIONS = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, rebalance_seconds=5)


@attrs.define
class Work:
    """Part of one process."""

    namesrv: str
    topic: str
    ledger: Ledger
    seconds: float
    rests: list[dict[str, int]] = attrs.field(factory=list)

    def group(self, kind: str) -> str:
        """The name of a group of consumers: all its members subscribe to the same."""
        return f"{kind}-{self.topic}"

    def rest(self, timers: int = 0, tasks: int = 0) -> None:
        """Note what is there while nothing runs."""
        gc.collect()
        self.rests.append(
            {
                "files": len(os.listdir("/proc/self/fd")),
                "threads": threading.active_count(),
                "timers": timers,
                "tasks": tasks,
                "objects": len(gc.get_objects()),
            }
        )

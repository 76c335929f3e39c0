"""Selects the broker of a send after failures: plain values and `now` in, a queue out.

Without latency isolation, only the broker of the last attempt is avoided. With it (sendLatencyFaultEnable), a broker
that was slow or failed is left out for a time that grows with its latency (Apache: MQFaultStrategy).
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.names.topic_route import TopicPublishInfo

PENALTIES_MS = ((15_000, 30_000), (3_000, 10_000), (2_000, 6_000), (1_000, 5_000), (550, 2_000))
"""(latency from which, time left out), Apache: latencyMax and notAvailableDuration."""

FAILURE_LATENCY_MS = 10_000
"""A failed send counts as one that took this long."""


def penalty_ms(latency_ms: int) -> int:
    """Return how long a broker with this latency is left out."""
    for from_ms, left_out_ms in PENALTIES_MS:
        if latency_ms >= from_ms:
            return left_out_ms
    return 0


@attrs.define
class _Fault:
    left_out_until_ms: int
    reachable: bool


@attrs.define
class LatencyFault:
    """Remembers the brokers to avoid. `enabled` is sendLatencyFaultEnable, off by default as in Apache's client."""

    enabled: bool = False
    _faults: dict[str, _Fault] = attrs.Factory(dict)

    def record(self, broker_name: str, latency_ms: int, now_ms: int, *, failed: bool = False) -> None:
        """Note the latency of a send to that broker, and whether it failed."""
        if self.enabled:
            left_out_ms = penalty_ms(FAILURE_LATENCY_MS if failed else latency_ms)
            self._faults[broker_name] = _Fault(now_ms + left_out_ms, not failed)

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        fault = self._faults.get(broker_name)
        return fault is None or now_ms >= fault.left_out_until_ms

    def is_reachable(self, broker_name: str) -> bool:
        fault = self._faults.get(broker_name)
        return fault is None or fault.reachable

    def select(self, info: TopicPublishInfo, last_broker: str | None, now_ms: int) -> MessageQueue | None:
        """Return the queue for the next attempt, away from `last_broker` if another broker has one."""

        def elsewhere(queue: MessageQueue) -> bool:
            return queue.broker_name != last_broker

        if self.enabled:
            queue = info.select(elsewhere, lambda one: self.is_available(one.broker_name, now_ms)) or info.select(
                elsewhere, lambda one: self.is_reachable(one.broker_name)
            )
            return queue or info.select()
        if last_broker is None:
            return info.select()
        return info.select(elsewhere) or info.select()

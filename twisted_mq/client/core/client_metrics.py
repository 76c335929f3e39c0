"""Counters that every producer and consumer keeps, for programs to read at any time; they only grow, but for `in_flight`."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class ProducerMetrics:
    """Of one producer. A batch is one send."""

    sent: int = 0
    """Sends that a broker took, whatever it promised of disk and replicas."""
    failed: int = 0
    """Sends that failed: refused, or without an answer after all attempts."""
    retries: int = 0
    """Attempts after the first of a send."""
    in_flight: int = 0
    """Sends that have begun and not ended."""


@attrs.define(eq=False)
class ConsumerMetrics:
    """Of one consumer, in messages. What is polled from a pull consumer counts as consumed."""

    consumed: int = 0
    failed: int = 0
    """Of listener calls that refused, raised, or took too long."""
    in_flight: int = 0
    """Of listener calls that have not answered."""

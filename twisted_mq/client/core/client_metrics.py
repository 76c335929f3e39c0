"""Counters of producers and consumers, which programs can read at any time. Only `in_flight` ever falls."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class ProducerMetrics:
    """Counters of one producer. A batch is one send."""

    sent: int = 0
    """Sends that a broker accepted, whatever its answer says about disk and replicas."""
    failed: int = 0
    """Sends that failed: refused, or without an answer after all attempts."""
    retries: int = 0
    """Attempts after the first of a send."""
    in_flight: int = 0
    """Sends that have begun and not ended."""


@attrs.define(eq=False)
class ConsumerMetrics:
    """Counters of one consumer, in messages. Messages polled from a pull consumer count as consumed."""

    consumed: int = 0
    failed: int = 0
    """Messages of listener calls that refused, raised, or took too long."""
    in_flight: int = 0
    """Messages of listener calls that have not answered."""

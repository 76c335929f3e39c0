"""The limits of one connection, and a counter of events against an allowance. The caller passes the time in."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.protocol.http2.events import (
    Event,
    PingReceived,
    PriorityReceived,
    SettingsReceived,
    StreamReset,
    UnknownFrame,
)

KIB, MIB = 1 << 10, 1 << 20


@attrs.frozen(kw_only=True)
class ConnectionLimits:
    """Limits of each connection of a server."""

    message_bytes: int = 136_314_880
    """The limit of a request in bytes (Apache: grpcMaxInboundMessageSize)."""
    inflated_bytes: int = 16 * MIB
    """The limit of a compressed request after decompression, which takes about 1 ms a MiB. Apache's is `message_bytes`."""
    streams: int = 1000
    """The limit of concurrent calls on a connection. Past it, a client opens more connections."""
    calls: int = 20_000
    """The limit of concurrent calls on all connections together."""
    header_bytes: int = 16 * KIB
    """The limit of a call's headers in bytes, as HPACK counts them. Apache's proxy takes 8 KiB."""
    stream_window: int = 256 * KIB
    connection_window: int = 4 * MIB
    unsent_bytes: int = MIB
    """The limit of a stream's waiting answers in bytes. Past it, `Call.send` waits."""
    request_seconds: float = 60.0
    """The time limit for the request of a call that takes a single message, from the call's headers on."""
    stalled_seconds: float = 60.0
    """A stream is reset if its client has taken none of the waiting answers for this long: its window is closed."""
    idle_seconds: float = 120.0
    """A connection without calls is closed after this time (Apache: grpcClientIdleTimeMills)."""
    ping_after_seconds: float = 60.0
    """A connection with calls is pinged after this time of silence. Otherwise the calls of a dead client stay open."""
    ping_answer_seconds: float = 20.0


@attrs.frozen
class Allowance:
    """The limit of a kind of event: `burst` at once, and `per_second` more each second."""

    burst: int
    per_second: float


@attrs.define
class Bucket:
    """Counts events against an allowance (token bucket)."""

    allowance: Allowance
    _left: float = attrs.field(init=False)
    _at: float | None = None

    def __attrs_post_init__(self) -> None:
        self._left = float(self.allowance.burst)

    def take(self, now: float) -> bool:
        """Count one event. Return False if it exceeds the allowance."""
        if self._at is not None:
            self._left = min(float(self.allowance.burst), self._left + (now - self._at) * self.allowance.per_second)
        self._at = now
        self._left -= 1
        return self._left >= 0

    def refill(self) -> None:
        """Allow a burst again."""
        self._left = float(self.allowance.burst)


class TooMany(Exception):
    """Raised when a client sends more events of a kind than its allowance."""


ALLOWANCES: Mapping[type[Event], Allowance] = {
    StreamReset: Allowance(1000, 33),  # rapid reset, CVE-2023-44487, and resets that a client provokes, CVE-2025-8671
    PingReceived: Allowance(100, 1),  # CVE-2019-9512; refilled by answers
    SettingsReceived: Allowance(100, 1),  # CVE-2019-9515
    PriorityReceived: Allowance(1000, 10),
    UnknownFrame: Allowance(1000, 10),
}
"""The limits of events that cost a server more than a client. No client of RocketMQ comes near them."""
EMPTY_DATA = Allowance(1000, 10)
"""The limit of DATA frames without data that do not end their stream (CVE-2019-9518)."""

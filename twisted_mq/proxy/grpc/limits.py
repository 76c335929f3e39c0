"""What one connection may do, and how often. Values, and a counter of events without a clock of its own."""

from __future__ import annotations

import attrs

KIB, MIB = 1 << 10, 1 << 20


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of each connection of a server."""

    message_bytes: int = 136_314_880
    """Of one request, also when decompressed (Apache: grpcMaxInboundMessageSize)."""
    streams: int = 1000
    """Calls at a time. A client opens more connections past it."""
    calls: int = 20_000
    """Calls at a time on all connections together."""
    header_bytes: int = 16 * KIB
    """Of the headers of a call, as HPACK counts them; Apache's proxy takes 8 KiB."""
    stream_window: int = 256 * KIB
    connection_window: int = 4 * MIB
    unsent_bytes: int = MIB
    """Of a stream's answers that wait; past it `Call.send` waits."""
    request_seconds: float = 60.0
    """For the message of a call that has one, from its headers on."""
    stalled_seconds: float = 60.0
    """A stream whose answers its client has not taken any of for so long is reset: its window is closed."""
    idle_seconds: float = 120.0
    """A connection without calls is closed after it (Apache: grpcClientIdleTimeMills)."""
    ping_after_seconds: float = 60.0
    """Of silence on a connection with calls. A client that is gone without a word holds them otherwise."""
    ping_answer_seconds: float = 20.0


@attrs.frozen
class Allowance:
    """So many events at once, and so many more a second."""

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
        """Count one event; False where that is one too many."""
        if self._at is not None:
            self._left = min(float(self.allowance.burst), self._left + (now - self._at) * self.allowance.per_second)
        self._at = now
        self._left -= 1
        return self._left >= 0

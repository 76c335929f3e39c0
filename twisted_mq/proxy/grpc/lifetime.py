"""The end of a connection: it is closed if it is unused or silent, if its client breaks the protocol, or if the server stops.

Calls that are slow are ended, and streams whose answers are not read.
"""

from __future__ import annotations

from twisted_mq.protocol.http2.events import PingReceived
from twisted_mq.protocol.http2.server_connection import ServerConnection
from twisted_mq.protocol.layouts.http2_frame import STREAM_BITS, ErrorCode
from twisted_mq.proxy.grpc.gathering import Gathering
from twisted_mq.proxy.grpc.limits import ConnectionLimits
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.proxy.grpc.status import GrpcStatus
from twisted_mq.proxy.grpc.streams import Streams

KEEPALIVE = b"mq-proxy"
"""The content of the ping after a silence."""
TOO_MANY_PINGS = b"too_many_pings"
"""A gRPC client that reads this in a GOAWAY doubles the time between its pings (gRPC's keepalive policy)."""


class Lifetime:
    """The rules by which one connection ends, and its last frames."""

    def __init__(
        self,
        http2: ServerConnection,
        limits: ConnectionLimits,
        peer: GrpcPeer,
        streams: Streams,
        gathering: Gathering,
    ) -> None:
        self._http2, self._limits, self._peer = http2, limits, peer
        self._streams, self._gathering = streams, gathering

    def look(self, now: float) -> None:
        """End slow transfers: requests that do not arrive, answers that are not taken, unused connections."""
        limits = self._limits
        if not self._streams.by_id:
            if now - self._streams.idle_since >= limits.idle_seconds:
                self.go_away(ErrorCode.NO_ERROR)
                self._streams.lose()
            return
        for stream in list(self._streams.by_id.values()):
            if not stream.started and now - stream.began >= limits.request_seconds and stream.trailers is None:
                self._streams.end(stream.call, GrpcStatus.DEADLINE_EXCEEDED, "the request did not arrive")
            elif stream.stalled_since is not None and now - stream.stalled_since >= limits.stalled_seconds:
                self._peer.log.warn("stream reset, its answers are not read: peer={peer}", peer=self._peer.address)
                self._http2.reset(stream.call.stream_id, ErrorCode.CANCEL)
                self._streams.forget(stream)
        if self._peer.pinged_at is not None and now - self._peer.pinged_at >= limits.ping_answer_seconds:
            self._peer.cut("it does not answer pings")
            return
        if self._peer.pinged_at is None and now - self._peer.last_active >= limits.ping_after_seconds:
            self._peer.pinged_at = now
            self._http2.ping(KEEPALIVE)
        self._streams.flush()

    def stop(self) -> None:
        """Accept no further calls, and close when the present ones have ended. The caller has set `Shared.stopping`."""
        self.go_away(ErrorCode.NO_ERROR)
        self._streams.close()

    def end_calls(self, message: str) -> None:
        """End the open calls as UNAVAILABLE, so that clients try again or elsewhere."""
        for stream in list(self._streams.by_id.values()):
            self._streams.end(stream.call, GrpcStatus.UNAVAILABLE, message)

    def go_away(self, error: ErrorCode, data: bytes = b"") -> None:
        """Send a GOAWAY, behind what waits to be sent."""
        self._gathering.end()
        self._streams.flush()
        last = STREAM_BITS if error is ErrorCode.NO_ERROR else self._http2.highest_stream_id
        self._http2.go_away(error, last, data)
        self._streams.flush()

    def exceeded(self, what: str) -> None:
        """Close the connection of a client that sends too many events of a kind."""
        self.go_away(ErrorCode.ENHANCE_YOUR_CALM, TOO_MANY_PINGS if what == PingReceived.__name__ else b"")
        self.broken(f"too many times: {what}")

    def broken(self, reason: str) -> None:
        """Close the connection of a client that breaks the protocol: nothing more is read from it."""
        self._peer.log.warn("connection closed: peer={peer} {reason}", peer=self._peer.address, reason=reason)
        self._streams.flush()
        self._peer.closing = True
        for stream in list(self._streams.by_id.values()):
            self._streams.forget(stream)
        self._streams.lose()

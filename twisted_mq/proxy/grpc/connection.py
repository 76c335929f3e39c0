"""An HTTP/2 connection of gRPC clients: reads in turns, and passes the events on to requests, answers and windows.

A client that breaks the protocol, or exceeds Limits and ALLOWANCES, gets a GOAWAY and is disconnected. A single malformed
call ends without the others. While a client does not read, nothing is read from it and none of its calls writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from twisted.internet import interfaces, protocol
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.logs import Logger
from twisted_mq.protocol.http2.errors import Http2Error
from twisted_mq.protocol.http2.events import (
    DataReceived,
    Event,
    GoAwayReceived,
    LateReset,
    PingAnswered,
    PingReceived,
    RequestEnded,
    RequestReceived,
    SettingsReceived,
    StreamReset,
    WindowGrew,
)
from twisted_mq.protocol.http2.server_connection import ServerConnection, ServerSettings
from twisted_mq.proxy.grpc.gathering import BESIDE, Gathering
from twisted_mq.proxy.grpc.lifetime import Lifetime
from twisted_mq.proxy.grpc.limits import ALLOWANCES, Bucket, TooMany
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.proxy.grpc.requests import Requests
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.proxy.grpc.streams import OK_HEADERS, OK_TRAILERS, Streams
from twisted_mq.remoting.socket_channel import SLICE_SECONDS
from twisted_mq.remoting.transport import Transport, peer_of, switch_on

PIECE_BYTES = 4096
"""The limit of bytes that are parsed in one piece: frames of some 40 calls."""


class Listener(Protocol):
    """The server of connections, which keeps those that are open."""

    def made(self, connection: GrpcConnection) -> None: ...

    def lost(self, connection: GrpcConnection) -> None: ...

    def moved(self, connection: GrpcConnection, before: str) -> None:
        """Note that the share of a connection is another one. `before` is the share before."""


@implementer(interfaces.IPushProducer)
class GrpcConnection(protocol.Protocol):
    """A connection of a gRPC client."""

    log = Logger()

    def __init__(self, shared: Shared, listener: Listener) -> None:
        self._shared, self._listener = shared, listener
        limits = shared.limits
        self._seconds = shared.clock.seconds
        settings = ServerSettings(
            streams=limits.streams,
            stream_window=limits.stream_window,
            connection_window=limits.connection_window,
            header_bytes=limits.header_bytes,
        )
        self._http2 = ServerConnection(settings, OK_HEADERS + OK_TRAILERS)
        """Its first frames are sent with the answer to the first bytes: these show whether TLS is used below."""
        self._buckets = {kind: Bucket(allowance) for kind, allowance in ALLOWANCES.items()}
        pings = self._buckets[PingReceived]
        self._peer = GrpcPeer(self.log, shared.clock)
        self._streams = Streams(self._http2, shared, self._peer, pings)
        self._requests = Requests(self._http2, shared, self._peer, self._streams)
        self._gathering = Gathering(self._http2, shared, self._peer, self._streams, self._requests, pings)
        self.lifetime = Lifetime(self._http2, shared.limits, self._peer, self._streams, self._gathering)
        self._reactions: Mapping[type[Event], Callable[[Any], None]] = {
            RequestReceived: self._requests.request,
            DataReceived: self._requests.data,
            RequestEnded: self._requests.trailers,
            StreamReset: self._streams.client_reset,
            LateReset: self._streams.confirmations.late_reset,
            PingAnswered: self._streams.confirmations.ping_answered,
            WindowGrew: self._streams.window_grew,
            SettingsReceived: self._streams.windows_changed,
            GoAwayReceived: self._streams.close,
        }
        self._unread = b""
        self._events: deque[Event] = deque()
        self._has_to_wait = False
        """True if the rest of a read waits for its turn."""

    @property  # type: ignore[override]  # None only before connectionMade
    def transport(self) -> Transport:
        """Return the transport. Twisted sets it, and TLS replaces it."""
        return self._peer.transport

    @transport.setter
    def transport(self, transport: Transport) -> None:
        self._peer.transport = transport

    @property
    def remote_address(self) -> tuple[str, int]:
        """Return the client's host and port."""
        return self._peer.remote_address

    @property
    def share_address(self) -> str:
        """Return the address whose share of the connections it uses, see `remoting.shares`."""
        return self._peer.share_address

    @property
    def calls(self) -> int:
        """Return the number of open calls."""
        return len(self._streams.by_id)

    def come_from(self, source: tuple[str, int]) -> None:
        """Set the client's address: a trusted load balancer told it."""
        before, self._peer.remote_address = self.share_address, source
        self._listener.moved(self, before)

    # transport events

    def connectionMade(self) -> None:
        self._peer.remote_address = peer_of(self.transport)
        self._peer.connected_now = True
        self._listener.made(self)
        switch_on(self.transport, "setTcpNoDelay")
        self.transport.registerProducer(self, True)

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self._peer.lost()
        self._shared.rotation.leave(self)
        self._unread = b""
        self._events.clear()
        self._streams.lost()
        self._listener.lost(self)

    def dataReceived(self, data: bytes) -> None:
        if self._peer.closing:
            return
        self._peer.last_active = now = self._seconds()
        self._peer.pinged_at = None
        if self._unread or self._events:  # a TLS transport passes on what it has decrypted, paused or not
            self._unread += data
            return
        self._unread = data
        rotation = self._shared.rotation
        if now >= rotation.ask_at and rotation.is_crowded(now):
            self._wait()
        else:
            self._read()

    def _read(self) -> None:
        """Handle events one by one; other connections have their turn (`remoting.rotation`) after SLICE_SECONDS."""
        end = self._seconds() + SLICE_SECONDS
        self._streams.reading = True
        try:
            while self._parsed() and self._handled(self._events.popleft()):
                if (self._events or self._unread) and self._seconds() >= end:
                    self._wait()
                    break
            self._gathering.end()
            if self._shared.end_of_read is not None:
                self._shared.end_of_read()
        finally:
            self._streams.reading = False
        self._streams.flush()

    def _wait(self) -> None:
        """Read nothing more, and go on at the next turn of the client's share."""
        self._has_to_wait = True
        self.transport.pauseProducing()
        self._shared.rotation.join(self, self.share_address)

    def go_on(self) -> None:
        """Handle the rest of a read, then read again."""
        self._has_to_wait = False
        if not self._streams.paused and not self._peer.closing:
            self._read()
            if not self._has_to_wait and not self._streams.paused and self._peer.connected_now:
                self.transport.resumeProducing()

    def _parsed(self) -> bool:
        """Parse the next bytes if no event waits. Return False if there are none, or they end the connection."""
        while not self._events and self._unread and not self._peer.closing:
            piece, self._unread = self._unread[:PIECE_BYTES], self._unread[PIECE_BYTES:]
            try:
                self._events.extend(self._http2.receive(piece))
            except Http2Error as error:
                self.lifetime.go_away(error.code)
                self.lifetime.broken(str(error))
        return bool(self._events) and not self._peer.closing

    def _handled(self, event: Event) -> bool:
        """Handle an event. Return False if the connection is closed by it."""
        if self._gathering.takes(event):
            return True
        if (self._gathering.gathered is not None or self._gathering.begun) and type(event) not in BESIDE:
            self._gathering.end()
        bucket = self._buckets.get(type(event))
        if bucket is not None and not bucket.take(self._peer.last_active):
            self.lifetime.exceeded(type(event).__name__)
            return False
        react = self._reactions.get(type(event))
        if react is not None:
            try:
                react(event)
            except TooMany as error:
                self.lifetime.exceeded(str(error))
        return not self._peer.closing

    # IPushProducer: the client stops reading, or reads again

    def pauseProducing(self) -> None:
        self._streams.paused = True
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        self._streams.go_on()
        if self._streams.paused or self._has_to_wait:
            return
        if self._unread or self._events:
            self._wait()
        else:
            self.transport.resumeProducing()

    def stopProducing(self) -> None:
        """Do nothing: the transport is gone."""

    # ends at once

    def cut(self, reason: str) -> None:
        """Close at once, with one log line that says why."""
        self._peer.cut(reason)

    def abort(self) -> None:
        """Close at once. Data that the client has not received is lost."""
        self._peer.abort()

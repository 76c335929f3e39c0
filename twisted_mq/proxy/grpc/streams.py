"""The open streams of a connection: answers leave as the client's windows allow, in few frames and one write.

Ends calls and counts their memory. Closes the connection behind its last call where that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer, interfaces

from twisted_mq.protocol.http2.events import Event, GoAwayReceived, StreamReset, WindowGrew
from twisted_mq.protocol.http2.header_encoder import as_block
from twisted_mq.protocol.http2.server_connection import ServerConnection
from twisted_mq.proxy.grpc.call_stream import CallStream, HeldBytes
from twisted_mq.proxy.grpc.calls import Call, Method
from twisted_mq.proxy.grpc.confirmations import Confirmations
from twisted_mq.proxy.grpc.framing import MessageDecoder
from twisted_mq.proxy.grpc.limits import Bucket
from twisted_mq.proxy.grpc.metadata import RESPONSE_HEADERS, CallHead
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.proxy.grpc.status import GrpcStatus, status_headers
from twisted_mq.remoting.socket_channel import write_promptly

OK = status_headers(GrpcStatus.OK)
OK_HEADERS, OK_TRAILERS = as_block(RESPONSE_HEADERS), as_block(OK)


class Streams:
    """The streams of one connection by their number, and what they have to send. Calls use it as their `Wire`."""

    def __init__(self, http2: ServerConnection, shared: Shared, peer: GrpcPeer, pings: Bucket) -> None:
        self._http2, self._shared, self._peer = http2, shared, peer
        self._limits = shared.limits
        self._seconds = shared.clock.seconds
        self._pings = pings
        """The client's pings that are allowed: clients measure their bandwidth by pings while data comes."""
        self.by_id: dict[int, CallStream] = {}
        self.held = HeldBytes(shared.budget, peer)
        self.confirmations = Confirmations(http2)
        self.idle_since = peer.last_active
        self.paused = False
        """True while the transport takes nothing more."""
        self.reading = False
        """True while a read is handled: its end flushes."""
        self._filled: dict[CallStream, None] = {}
        """Streams that have something to send since the last flush."""
        self._stalled: dict[CallStream, None] = {}
        """Streams whose answers wait for room in the client's windows."""
        self._has_room = False
        """True if windows grew since the last flush."""
        self._writing: interfaces.IDelayedCall | None = None

    def open(self, stream_id: int, head: CallHead, method: Method) -> CallStream:
        """Return the stream of a new call."""
        shared, now = self._shared, self._seconds()
        deadline = None if head.timeout_seconds is None else now + head.timeout_seconds
        call = Call(stream_id, head, self._peer.remote_address, shared.clock, deadline, self)
        decoder = MessageDecoder(self._limits.message_bytes, head.encoding, self._limits.inflated_bytes)
        stream = self.by_id[stream_id] = CallStream(call, method, decoder, now)
        shared.calls += 1
        return stream

    # Wire: the interface for calls

    def write(self, call: Call, data: bytes) -> defer.Deferred[None]:
        """Queue one message; fires when at most `unsent_bytes` wait in the stream."""
        stream = self.by_id.get(call.stream_id)
        if stream is None or stream.trailers is not None:
            return defer.succeed(None)
        stream.outgoing += data
        self._pump_soon(stream)
        if len(stream.outgoing) > self._limits.unsent_bytes:
            self._pump(stream)
        if len(stream.outgoing) <= self._limits.unsent_bytes:
            return defer.succeed(None)
        stream.waiting = stream.waiting or defer.Deferred()
        waited: defer.Deferred[None] = defer.Deferred()
        stream.waiting.addBoth(lambda _: waited.callback(None))
        return waited

    def confirm(self, call: Call, tell: Callable[[bool], object]) -> None:
        """Tell once whether the client has taken all answers of a call."""
        stream = self.by_id.get(call.stream_id)
        if stream is None:
            tell(False)
        else:
            stream.confirm = tell

    def end(self, call: Call, status: GrpcStatus, message: str) -> None:
        """Queue the trailers, and cancel the handler if it still runs."""
        stream = self.by_id.get(call.stream_id)
        if stream is None or stream.trailers is not None:
            return
        stream.trailers = status_headers(status, message) if status or message else OK
        self._shared.ended[status] += 1
        running, stream.running = stream.running, None
        call.over()
        if running is not None:
            running.addErrback(lambda _: None)
            running.cancel()
        self._pump_soon(stream)

    # frames of the client

    def client_reset(self, event: StreamReset) -> None:
        """End a call whose client has given it up."""
        stream = self.by_id.get(event.stream_id)
        if stream is not None:
            stream.call.is_broken = True
            self.forget(stream)

    def window_grew(self, event: WindowGrew) -> None:
        """Let a stream go on, or note that all may."""
        if event.stream_id:
            stream = self.by_id.get(event.stream_id)
            if stream is not None:
                self._pump(stream)
            return
        self.windows_changed(event)

    def windows_changed(self, event: Event) -> None:
        """Note that streams may go on: many of these frames in one read cost as much as one."""
        self._has_room = True

    # answers that leave

    def go_on(self) -> None:
        """Write again: the client reads."""
        self.paused = False
        for stream in list(self._stalled):
            self._pump(stream)
        self.flush()

    def _pump_soon(self, stream: CallStream) -> None:
        """Pump at the end of the present read or turn, so that all answers of it leave in few frames and one write."""
        self._filled[stream] = None
        if not self.reading and self._writing is None:
            self._writing = self._shared.clock.callLater(0, self._flush_now)

    def _flush_now(self) -> None:
        self._writing = None
        self.flush()

    def flush(self) -> None:
        """Write what streams have to send, and what HTTP/2 has."""
        if self._has_room:
            self._has_room = False
            self._filled.update(self._stalled)
        filled, self._filled = self._filled, {}
        for stream in filled:
            self._pump(stream)
        if self.confirmations.sent and not self._peer.closing:
            self.confirmations.ping()
        data = self._http2.to_send()
        if data and self._peer.connected_now:
            write_promptly(self._peer.transport, data)

    def _pump(self, stream: CallStream) -> None:
        """Write as much of the waiting data as the windows allow."""
        if (self._peer.closing and not self._peer.connected_now) or stream.call.stream_id not in self.by_id:
            return
        connection, stream_id, outgoing = self._http2, stream.call.stream_id, stream.outgoing
        if stream_id not in connection.streams:  # closed by a frame of the same read
            self.forget(stream)
            return
        if stream.trailers is not None and not outgoing and not stream.answering:
            connection.send_headers(stream_id, as_block([*RESPONSE_HEADERS, *stream.trailers]), end=True)
            self._done(stream)
            return
        if stream.trailers is OK and outgoing and not stream.answering and not self.paused:
            headers = stream.call.head.response_headers
            first = OK_HEADERS if headers is RESPONSE_HEADERS else as_block(headers)
            if connection.answer(stream_id, first, outgoing, OK_TRAILERS):
                outgoing.clear()
                self.held.count_unsent(stream)
                self._pings.refill()
                self._done(stream)
                return
        if outgoing and not stream.answering:
            connection.send_headers(stream_id, as_block(stream.call.head.response_headers))
            stream.answering = True
        sent = False
        while outgoing and not self.paused:
            room = connection.room_of(stream_id)
            if room <= 0:
                break
            connection.send_data(stream_id, bytes(outgoing[:room]))
            del outgoing[:room]
            sent = True
        if sent:
            self._pings.refill()
        self.held.count_unsent(stream)
        if outgoing:
            if sent or stream.stalled_since is None:
                stream.stalled_since = self._seconds()
            self._stalled[stream] = None
            return
        stream.stalled_since = None
        self._stalled.pop(stream, None)
        if stream.trailers is not None:
            connection.send_headers(stream_id, as_block(stream.trailers), end=True)
            self._done(stream)
        if len(outgoing) <= self._limits.unsent_bytes and stream.waiting is not None:
            waiting, stream.waiting = stream.waiting, None
            waiting.callback(None)

    def _done(self, stream: CallStream) -> None:
        """Close a stream whose trailers are written."""
        confirm, stream.confirm = stream.confirm, None
        if confirm is not None and not self.confirmations.expect(stream.call.stream_id, confirm):
            self._peer.cut("it does not answer the ping behind its answers")
        self.forget(stream)

    def forget(self, stream: CallStream) -> None:
        """Release the bytes of a closed stream."""
        if self.by_id.pop(stream.call.stream_id, None) is None:
            return
        self._shared.calls -= 1
        self.held.count_incomplete(stream, 0)
        self._stalled.pop(stream, None)
        stream.outgoing = bytearray()
        self.held.count_unsent(stream)
        if stream.timer is not None:
            stream.timer.cancel()
            stream.timer = None
        if not stream.call.is_over:
            stream.call.over()
        waiting, stream.waiting = stream.waiting, None
        if waiting is not None:
            waiting.callback(None)
        running, stream.running = stream.running, None
        if running is not None:
            running.addErrback(lambda _: None)
            running.cancel()
        confirm, stream.confirm = stream.confirm, None
        if confirm is not None:
            confirm(False)
        if not self.by_id:
            self.idle_since = self._seconds()
            if self._shared.stopping or self._peer.closing:
                self.lose()

    # the end of the connection

    def close(self, event: GoAwayReceived | None = None) -> None:
        """Close once the present calls have ended."""
        if not self.by_id:
            self.lose()

    def lose(self) -> None:
        """Close once what waits is sent."""
        self._peer.closing = True
        if self._peer.connected_now and not self._peer.losing:
            self.flush()
            self._peer.lose()

    def lost(self) -> None:
        """End all calls: the connection is gone."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        for stream in list(self.by_id.values()):
            stream.call.is_broken = True
            self.forget(stream)
        self.confirmations.lost()
        self._shared.budget.forget(self._peer)

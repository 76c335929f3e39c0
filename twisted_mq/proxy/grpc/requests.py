"""The requests of a connection: frames become calls and messages, messages go to handlers, whose results end the calls.

A single malformed call ends without the others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from google.protobuf.message import DecodeError
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.protocol.http2.events import DataReceived, RequestEnded, RequestReceived
from twisted_mq.protocol.http2.header_encoder import as_block
from twisted_mq.protocol.http2.server_connection import ServerConnection
from twisted_mq.protocol.layouts.http2_frame import ErrorCode
from twisted_mq.proxy.grpc.call_stream import CallStream
from twisted_mq.proxy.grpc.field_counts import check_fields
from twisted_mq.proxy.grpc.limits import EMPTY_DATA, Bucket, TooMany
from twisted_mq.proxy.grpc.metadata import RESPONSE_HEADERS, NotGrpc, read_head
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus, Headers, status_headers
from twisted_mq.proxy.grpc.streams import Streams


class Requests:
    """The requests of one connection. An exception of a handler ends its call."""

    def __init__(self, http2: ServerConnection, shared: Shared, peer: GrpcPeer, streams: Streams) -> None:
        self._http2, self._shared, self._peer, self._streams = http2, shared, peer, streams
        self._limits = shared.limits
        self._empty_data = Bucket(EMPTY_DATA)

    # frames of the client

    def request(self, event: RequestReceived) -> None:
        """Begin a call, or refuse it."""
        stream_id = event.stream_id
        shared = self._shared
        if shared.stopping:
            self._http2.reset(stream_id, ErrorCode.REFUSED_STREAM)
            return
        try:
            head = read_head(dict(event.headers))
            method = shared.methods.get(head.path)
            if method is None:
                raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"method {head.path} is not served")
            if shared.calls >= self._limits.calls:
                raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, f"{shared.calls} calls are open on this server")
        except NotGrpc as refusal:
            self._refuse(stream_id, [(":status", str(refusal.status))])
            return
        except GrpcError as refusal:
            self._refuse(stream_id, [*RESPONSE_HEADERS, *status_headers(refusal.status, refusal.message)])
            return
        stream = self._streams.open(stream_id, head, method)
        if method.takes_stream:
            self._start(stream, stream.call)
        if event.ended:
            self._request_ended(stream_id)

    def _refuse(self, stream_id: int, headers: Headers) -> None:
        """Answer with headers alone. Does nothing if a frame of the same read has closed the stream."""
        self._http2.send_headers(stream_id, as_block(headers), end=True)

    def data(self, event: DataReceived) -> None:
        """Take a part of a request. Raises TooMany."""
        if not event.data and not event.ended and not self._empty_data.take(self._peer.last_active):
            raise TooMany("empty DATA frame")
        self._take_data(event.stream_id, event.data)
        if event.ended:
            self._request_ended(event.stream_id)

    def _take_data(self, stream_id: int, data: bytes) -> None:
        stream = self._streams.by_id.get(stream_id)
        if stream is None or stream.trailers is not None or not data:
            return
        try:
            for message in stream.decoder.receive_data(data):
                self._message(stream, message)
        except GrpcError as error:
            self._streams.end(stream.call, error.status, error.message)
            return
        if stream_id in self._streams.by_id:
            self._streams.held.count_incomplete(stream, stream.decoder.incomplete_bytes)

    def _message(self, stream: CallStream, message: bytes) -> None:
        """Parse a message and hand it to its call. Raises GrpcError."""
        check_fields(stream.method.request, message)
        try:
            request = stream.method.request.FromString(message)
        except DecodeError as error:
            raise GrpcError(
                GrpcStatus.INTERNAL, f"message is not a {stream.method.request.__name__}: {error}"
            ) from None
        if stream.method.takes_stream:
            if stream.call.received is not None and not stream.call.is_over:
                self._guard(stream, stream.call.received, request)
        elif stream.request is None:
            stream.request = request
        else:
            raise GrpcError(GrpcStatus.INTERNAL, "more than one message in a call that takes one")

    def _guard(self, stream: CallStream, tell: Callable[..., object], *arguments: object) -> None:
        """Call a handler. An exception ends the call."""
        try:
            tell(*arguments)
        except Exception:
            self.failed(failure.Failure(), stream)

    def trailers(self, event: RequestEnded) -> None:
        """End a request without further data."""
        self._request_ended(event.stream_id)

    def _request_ended(self, stream_id: int) -> None:
        stream = self._streams.by_id.get(stream_id)
        if stream is None:
            return
        if stream.trailers is not None:
            return
        if stream.method.takes_stream:
            if stream.call.half_closed is not None:
                self._guard(stream, stream.call.half_closed)
        elif stream.request is None:
            self._streams.end(stream.call, GrpcStatus.INTERNAL, "no complete message in the call")
        else:
            self._start(stream, stream.call, stream.request)

    # handlers

    def _start(self, stream: CallStream, *arguments: object) -> None:
        stream.started = True
        stream.request = None
        try:
            result = stream.method.handler(*arguments)
        except Exception:
            self.failed(failure.Failure(), stream)
            return
        if stream.method.takes_stream:
            self._watch_deadline(stream)
            return
        if not isinstance(result, defer.Deferred):
            if not isinstance(result, Coroutine):
                self._answered(result, stream)
                return
            try:
                result.send(None)
            except StopIteration as done:  # nothing was waited for: most calls have their answer at once
                self._answered(done.value, stream)
                return
            except Exception:
                self.failed(failure.Failure(), stream)
                return
            result = defer.ensureDeferred(result)  # waits for the same Deferred again
        stream.running = result
        result.addCallbacks(self._answered, self.failed, callbackArgs=(stream,), errbackArgs=(stream,))
        self._watch_deadline(stream)

    def _watch_deadline(self, stream: CallStream) -> None:
        if stream.trailers is not None or stream.call.is_over:
            return
        remaining = stream.call.remaining_seconds()
        if remaining is not None:
            stream.timer = self._shared.clock.callLater(remaining, self._late, stream)

    def _late(self, stream: CallStream) -> None:
        stream.timer = None
        self._streams.end(stream.call, GrpcStatus.DEADLINE_EXCEEDED, "deadline exceeded")

    def _answered(self, result: Any, stream: CallStream) -> None:
        stream.running = None
        if stream.call.is_over or stream.trailers is not None:
            return
        if not stream.method.gives_stream:
            stream.outgoing += stream.call.framed(result)
        self._streams.end(stream.call, GrpcStatus.OK, "")

    def failed(self, reason: failure.Failure, stream: CallStream) -> None:
        """End a call whose handler failed."""
        stream.running = None
        error = reason.value
        if isinstance(error, GrpcError):
            self._streams.end(stream.call, error.status, error.message)
        elif isinstance(error, defer.CancelledError):
            self._streams.end(stream.call, GrpcStatus.CANCELLED, "cancelled")
        else:
            self._peer.log.failure(
                "call failed: path={p} peer={peer}", reason, p=stream.call.head.path, peer=self._peer.address
            )
            self._streams.end(stream.call, GrpcStatus.INTERNAL, f"{type(error).__name__}: {error}")

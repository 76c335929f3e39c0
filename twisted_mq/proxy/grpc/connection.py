"""An HTTP/2 connection of gRPC clients: its events become calls, answers leave as the client's windows allow.

A client that breaks the protocol, or exceeds Limits and ALLOWANCES, gets a GOAWAY and is disconnected. A single malformed
call ends without the others. While a client does not read, nothing is read from it and none of its calls writes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import attrs
from google.protobuf.message import DecodeError
from twisted.internet import defer, interfaces, protocol
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
    PriorityReceived,
    RequestEnded,
    RequestReceived,
    SettingsReceived,
    StreamReset,
    UnknownFrame,
    WindowGrew,
)
from twisted_mq.protocol.http2.header_encoder import as_block
from twisted_mq.protocol.http2.server_connection import ServerConnection, ServerSettings
from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.protocol.layouts.http2_frame import STREAM_BITS, ErrorCode
from twisted_mq.proxy.grpc.calls import Call, Method, Methods
from twisted_mq.proxy.grpc.field_counts import SMALL_BYTES, check_fields
from twisted_mq.proxy.grpc.framing import MessageDecoder
from twisted_mq.proxy.grpc.limits import Allowance, Bucket, ConnectionLimits
from twisted_mq.proxy.grpc.metadata import RESPONSE_HEADERS, CallHead, NotGrpc, is_plain, read_head
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus, Headers, status_headers
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.remoting.shares import address_of
from twisted_mq.remoting.socket_channel import GRACE_SECONDS, SLICE_SECONDS, write_promptly
from twisted_mq.remoting.transport import Transport, peer_of, switch_on

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
PIECE_BYTES = 4096
"""The limit of bytes that are parsed in one piece: frames of some 40 calls."""
OK = status_headers(GrpcStatus.OK)
OK_HEADERS, OK_TRAILERS = as_block(RESPONSE_HEADERS), as_block(OK)
REPEATED = OK_HEADERS + OK_TRAILERS
"""The headers of nearly every answer."""
KEEPALIVE, CONFIRM = b"mq-proxy", b"mq-taken"
"""The content of pings: one after a silence, and one after answers that a client has to confirm."""
CLIENT_ID = b"x-mq-client-id"
"""The metadata that names a client. Only calls of one client are handled together."""
MOST_TOGETHER = 64
"""The limit of calls that are handled together: some 2 ms of work."""
MOST_UNCONFIRMED = 10_000
"""The limit of ended calls whose answers a client has not confirmed."""
TOO_MANY_PINGS = b"too_many_pings"
"""A gRPC client that reads this in a GOAWAY doubles the time between its pings (gRPC's keepalive policy)."""


@attrs.define(eq=False)
class Shared:
    """The state that all connections of one server share. `calls` is the number of open calls."""

    methods: Methods
    clock: interfaces.IReactorTime
    limits: ConnectionLimits = attrs.field(factory=ConnectionLimits)
    budget: Budget[GrpcConnection] = attrs.field(factory=Budget)
    rotation: Rotation = attrs.field(default=attrs.Factory(lambda self: Rotation(self.clock), takes_self=True))
    calls: int = 0
    ended: Counter[int] = attrs.field(factory=Counter)
    """The number of calls that the server ended, by their gRPC status."""
    stopping: bool = False
    end_of_read: Callable[[], object] | None = None
    """Called when the calls of a read were handled, before their answers leave."""
    made: Callable[[GrpcConnection], object] | None = None
    lost: Callable[[GrpcConnection], object] | None = None
    moved: Callable[[GrpcConnection, str], object] | None = None
    """Called with a connection whose share is another one, and with the share before."""
    together: Mapping[bytes, Method] = attrs.field(init=False)
    """The methods that handle several calls together, by encoded path."""

    def __attrs_post_init__(self) -> None:
        self.together = {path.encode(): one for path, one in self.methods.items() if one.together is not None}


@attrs.define(eq=False)
class Gathered:
    """Calls of one method and one client that came whole in one read. `call` is the first one; each event has its message."""

    method: Method
    client_id: bytes | None
    call: Call
    events: list[tuple[RequestReceived, DataReceived]] = attrs.field(factory=list)

    @property
    def messages(self) -> list[bytes]:
        """Return the calls' encoded messages."""
        return [data.data[GRPC_HEAD.size :] for _, data in self.events]


@attrs.define(eq=False)
class CallStream:
    """A stream: the received part of its request, and the answers that wait to be sent."""

    call: Call
    method: Method
    decoder: MessageDecoder
    began: float
    request: Any = None
    incomplete: int = 0
    started: bool = False
    answering: bool = False
    outgoing: bytearray = attrs.field(factory=bytearray)
    trailers: Headers | None = None
    running: defer.Deferred[Any] | None = None
    waiting: defer.Deferred[None] | None = None
    timer: interfaces.IDelayedCall | None = None
    stalled_since: float | None = None
    unsent: int = 0
    confirm: Callable[[bool], object] | None = None
    """Called once it is known whether the client has taken all answers."""


@implementer(interfaces.IPushProducer)
class GrpcConnection(protocol.Protocol):
    """A connection of a gRPC client."""

    log = Logger()
    transport: Transport  # type: ignore[assignment]  # None only before connectionMade

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._limits = shared.limits
        self._seconds = shared.clock.seconds
        limits = shared.limits
        settings = ServerSettings(
            streams=limits.streams,
            stream_window=limits.stream_window,
            connection_window=limits.connection_window,
            header_bytes=limits.header_bytes,
        )
        self._http2 = ServerConnection(settings, REPEATED)
        """Its first frames are sent with the answer to the first bytes: these show whether TLS is used below."""
        self._streams: dict[int, CallStream] = {}
        self._gathered: Gathered | None = None
        """Calls of this read that are handled together at its end, or before something else that concerns calls."""
        self._begun: dict[int, tuple[RequestReceived, dict[bytes, bytes], Method]] = {}
        """Calls of this read that may be gathered once their message comes, by stream, each with its headers by name. Clients
        send many headers in a row."""
        self._filled: dict[CallStream, None] = {}
        """Streams that have something to send since the last flush."""
        self._buckets = {kind: Bucket(allowance) for kind, allowance in ALLOWANCES.items()}
        self._empty_data = Bucket(EMPTY_DATA)
        self._incomplete = 0
        self._unsent = 0
        self._stalled: dict[CallStream, None] = {}
        """Streams whose answers wait for room in the client's windows."""
        self._has_room = False
        """True if windows grew since the last flush."""
        self._sent: dict[int, Callable[[bool], object]] = {}
        """Streams whose answers have left, and that no ping has followed."""
        self._pinged_for: dict[int, Callable[[bool], object]] = {}
        """Streams that a ping has followed. Its answer confirms that the client has taken their answers."""
        self._paused = False
        self._reading = False
        self._writing: interfaces.IDelayedCall | None = None
        self._closing = False
        self._cut_off: interfaces.IDelayedCall | None = None
        self._unread = b""
        self._events: deque[Event] = deque()
        self._has_to_wait = False
        """True if the rest of a read waits for its turn."""
        self._last_active = self._idle_since = self._seconds()
        self._pinged_at: float | None = None
        self.connected_now = False
        self.remote_address: tuple[str, int] = ("", 0)

    @property
    def address(self) -> str:
        """Return the peer's address as host:port."""
        return f"{self.remote_address[0]}:{self.remote_address[1]}"

    @property
    def share_address(self) -> str:
        """Return the address whose share of the budgets the connection uses, see `remoting.shares`."""
        return address_of(self.remote_address[0])

    @property
    def calls(self) -> int:
        """Return the number of open calls."""
        return len(self._streams)

    def come_from(self, source: tuple[str, int]) -> None:
        """Set the client's address: a trusted load balancer told it."""
        before, self.remote_address = self.share_address, source
        if self._shared.moved is not None:
            self._shared.moved(self, before)

    # transport events

    def connectionMade(self) -> None:
        self.remote_address = peer_of(self.transport)
        self.connected_now = True
        if self._shared.made is not None:
            self._shared.made(self)
        switch_on(self.transport, "setTcpNoDelay")
        self.transport.registerProducer(self, True)

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self.connected_now = False
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None
        self._shared.rotation.leave(self)
        self._unread = b""
        self._events.clear()
        for stream in list(self._streams.values()):
            stream.call.is_broken = True
            self._forget(stream)
        for confirm in (*self._pinged_for.values(), *self._sent.values()):
            confirm(False)
        self._pinged_for, self._sent = {}, {}
        self._shared.budget.forget(self)
        if self._shared.lost is not None:
            self._shared.lost(self)

    def dataReceived(self, data: bytes) -> None:
        if self._closing:
            return
        self._last_active = now = self._seconds()
        self._pinged_at = None
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
        self._reading = True
        try:
            while self._parsed() and self._handled(self._events.popleft()):
                if (self._events or self._unread) and self._seconds() >= end:
                    self._wait()
                    break
            self._end_gathering()
            if self._shared.end_of_read is not None:
                self._shared.end_of_read()
        finally:
            self._reading = False
        self._flush()

    def _wait(self) -> None:
        """Read nothing more, and go on at the next turn of the client's share."""
        self._has_to_wait = True
        self.transport.pauseProducing()
        self._shared.rotation.join(self, self.share_address)

    def go_on(self) -> None:
        """Handle the rest of a read, then read again."""
        self._has_to_wait = False
        if not self._paused and not self._closing:
            self._read()
            if not self._has_to_wait and not self._paused and self.connected_now:
                self.transport.resumeProducing()

    def _parsed(self) -> bool:
        """Parse the next bytes if no event waits. Return False if there are none, or they end the connection."""
        while not self._events and self._unread and not self._closing:
            piece, self._unread = self._unread[:PIECE_BYTES], self._unread[PIECE_BYTES:]
            try:
                self._events.extend(self._http2.receive(piece))
            except Http2Error as error:
                self._go_away(error.code)
                self._broken(str(error))
        return bool(self._events) and not self._closing

    def _handled(self, event: Event) -> bool:
        """Handle an event. Return False if the connection is closed by it."""
        if self._is_gathered(event):
            return True
        if (self._gathered is not None or self._begun) and type(event) not in _BESIDE:
            self._end_gathering()
        bucket = self._buckets.get(type(event))
        if bucket is not None and not bucket.take(self._last_active):
            self._too_much(type(event).__name__)
            return False
        react = _REACTIONS.get(type(event))
        if react is not None:
            react(self, event)
        return not self._closing

    # IPushProducer: the client stops reading, or reads again

    def pauseProducing(self) -> None:
        self._paused = True
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        self._paused = False
        for stream in list(self._stalled):
            self._pump(stream)
        self._flush()
        if self._paused or self._has_to_wait:
            return
        if self._unread or self._events:
            self._wait()
        else:
            self.transport.resumeProducing()

    def stopProducing(self) -> None:
        """Do nothing: the transport is gone."""

    # calls that are handled together

    def _is_gathered(self, event: Event) -> bool:
        """Gather a call for later in this read, or its headers. Return False for an event that has to be handled now."""
        if type(event) is RequestReceived:
            given = dict(event.headers) if self._shared.together else {}
            method = self._method_together(event, given)
            if method is not None:
                self._begun[event.stream_id] = event, given, method
            return method is not None
        if type(event) is not DataReceived or event.stream_id not in self._begun:
            return False
        request, given, method = self._begun.pop(event.stream_id)
        if not event.ended or not _is_plain(event.data):
            self._request(request)
            return False
        self._gather(method, given, request, event)
        return True

    def _method_together(self, event: RequestReceived, given: Mapping[bytes, bytes]) -> Method | None:
        """Return the method of a call, if calls like this one are handled together."""
        shared = self._shared
        if event.ended or shared.stopping:
            return None
        method = shared.together.get(given.get(b":path", b""))
        if method is None or not is_plain(given):
            return None
        return method if shared.calls + len(self._begun) + MOST_TOGETHER < self._limits.calls else None

    def _gather(
        self, method: Method, given: Mapping[bytes, bytes], request: RequestReceived, data: DataReceived
    ) -> None:
        gathered = self._gathered
        client_id = given.get(CLIENT_ID)
        if gathered is not None and (gathered.method is not method or gathered.client_id != client_id):
            self._answer_gathered()
            gathered = self._gathered
        if gathered is None:
            call = Call(request.stream_id, read_head(given), self.remote_address, self._shared.clock, None, self)
            gathered = self._gathered = Gathered(method, client_id, call)
        gathered.events.append((request, data))
        if len(gathered.events) >= MOST_TOGETHER:
            self._answer_gathered()

    def _end_gathering(self) -> None:
        """Handle the gathered calls, and what has come of others."""
        self._answer_gathered()
        if self._begun:
            begun, self._begun = self._begun, {}
            for request, _, _ in begun.values():
                self._request(request)

    def _answer_gathered(self) -> None:
        """Handle the gathered calls. What their method does not take together is handled call by call."""
        gathered, self._gathered = self._gathered, None
        if gathered is None:
            return
        together = gathered.method.together
        assert together is not None, "only calls of such methods are gathered"
        while gathered.events:
            try:
                answers = together(gathered.call, gathered.messages)
            except Exception:
                self._failed_together(gathered)
                return
            for (event, _), answer in zip(gathered.events, answers):  # noqa: B905
                self._answer_whole(event, gathered, answer)
            left = gathered.events[len(answers) :]
            alone = 1 if answers else len(left)
            for request, data in left[:alone]:
                self._request(request)
                self._data(data)
            gathered.events = left[alone:]
        if not self._streams:
            self._idle_since = self._last_active
        self._buckets[PingReceived].refill()

    def _answer_whole(self, event: RequestReceived, gathered: Gathered, answer: bytes) -> None:
        """Write the answer to a gathered call and end it; as far as the client's windows allow, the rest later."""
        if not self._paused and self._http2.answer(event.stream_id, OK_HEADERS, answer, OK_TRAILERS):
            self._shared.ended[GrpcStatus.OK] += 1
            return
        stream = self._opened(event, gathered)
        stream.outgoing += answer
        self.end(stream.call, GrpcStatus.OK, "")

    def _failed_together(self, gathered: Gathered) -> None:
        """End calls whose handler failed: some of them may have had their effect, so that none is handled again."""
        reason = failure.Failure()
        for event, _ in gathered.events:
            self._failed(reason, self._opened(event, gathered))

    def _opened(self, event: RequestReceived, gathered: Gathered) -> CallStream:
        """Return the stream of a gathered call whose answer does not leave now."""
        stream = self._open(event.stream_id, read_head(dict(event.headers)), gathered.method)
        stream.started = True
        return stream

    # frames of the client

    def _request(self, event: RequestReceived) -> None:
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
        stream = self._open(stream_id, head, method)
        if method.takes_stream:
            self._start(stream, stream.call)
        if event.ended:
            self._request_ended(stream_id)

    def _open(self, stream_id: int, head: CallHead, method: Method) -> CallStream:
        """Return the stream of a new call."""
        shared, now = self._shared, self._seconds()
        deadline = None if head.timeout_seconds is None else now + head.timeout_seconds
        call = Call(stream_id, head, self.remote_address, shared.clock, deadline, self)
        decoder = MessageDecoder(self._limits.message_bytes, head.encoding, self._limits.inflated_bytes)
        stream = self._streams[stream_id] = CallStream(call, method, decoder, now)
        shared.calls += 1
        return stream

    def _refuse(self, stream_id: int, headers: Headers) -> None:
        """Answer with headers alone. Does nothing if a frame of the same read has closed the stream."""
        self._http2.send_headers(stream_id, as_block(headers), end=True)

    def _data(self, event: DataReceived) -> None:
        if not event.data and not event.ended and not self._empty_data.take(self._last_active):
            self._too_much("empty DATA frame")
            return
        self._take_data(event.stream_id, event.data)
        if event.ended:
            self._request_ended(event.stream_id)

    def _take_data(self, stream_id: int, data: bytes) -> None:
        stream = self._streams.get(stream_id)
        if stream is None or stream.trailers is not None or not data:
            return
        try:
            for message in stream.decoder.receive_data(data):
                self._message(stream, message)
        except GrpcError as error:
            self.end(stream.call, error.status, error.message)
            return
        if stream_id in self._streams:
            self._count_incomplete(stream, stream.decoder.incomplete_bytes)

    def _count_incomplete(self, stream: CallStream, size: int) -> None:
        """Set how many bytes of an unfinished message of this stream are held."""
        if size == stream.incomplete:
            return
        self._incomplete += size - stream.incomplete
        stream.incomplete = size
        slowest = self._shared.budget.came(self, self._incomplete)
        if slowest is not None:
            slowest.cut("incomplete requests use too much memory, and its requests are the oldest")

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
            self._failed(failure.Failure(), stream)

    def _trailers(self, event: RequestEnded) -> None:
        self._request_ended(event.stream_id)

    def _request_ended(self, stream_id: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if stream.trailers is not None:
            return
        if stream.method.takes_stream:
            if stream.call.half_closed is not None:
                self._guard(stream, stream.call.half_closed)
        elif stream.request is None:
            self.end(stream.call, GrpcStatus.INTERNAL, "no complete message in the call")
        else:
            self._start(stream, stream.call, stream.request)

    def _stream_reset(self, event: StreamReset) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            stream.call.is_broken = True
            self._forget(stream)

    def _late_reset(self, event: LateReset) -> None:
        """Handle the reset of a call that was answered: what it was answered with has not been taken."""
        for waiting in (self._sent, self._pinged_for):
            confirm = waiting.pop(event.stream_id, None)
            if confirm is not None:
                confirm(False)

    def _ping_answered(self, event: PingAnswered) -> None:
        if event.content == CONFIRM:
            taken, self._pinged_for = self._pinged_for, {}
            for confirm in taken.values():
                confirm(True)

    def _window_updated(self, event: WindowGrew) -> None:
        if event.stream_id:
            stream = self._streams.get(event.stream_id)
            if stream is not None:
                self._pump(stream)
            return
        self._windows_changed(event)

    def _windows_changed(self, event: Event) -> None:
        """Note that streams may go on: many of these frames in one read cost as much as one."""
        self._has_room = True

    def _terminated(self, event: GoAwayReceived) -> None:
        self.close()

    # calls

    def _start(self, stream: CallStream, *arguments: object) -> None:
        stream.started = True
        stream.request = None
        try:
            result = stream.method.handler(*arguments)
        except Exception:
            self._failed(failure.Failure(), stream)
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
                self._failed(failure.Failure(), stream)
                return
            result = defer.ensureDeferred(result)  # waits for the same Deferred again
        stream.running = result
        result.addCallbacks(self._answered, self._failed, callbackArgs=(stream,), errbackArgs=(stream,))
        self._watch_deadline(stream)

    def _watch_deadline(self, stream: CallStream) -> None:
        if stream.trailers is not None or stream.call.is_over:
            return
        remaining = stream.call.remaining_seconds()
        if remaining is not None:
            stream.timer = self._shared.clock.callLater(remaining, self._late, stream)

    def _late(self, stream: CallStream) -> None:
        stream.timer = None
        self.end(stream.call, GrpcStatus.DEADLINE_EXCEEDED, "deadline exceeded")

    def _answered(self, result: Any, stream: CallStream) -> None:
        stream.running = None
        if stream.call.is_over or stream.trailers is not None:
            return
        if not stream.method.gives_stream:
            stream.outgoing += stream.call.framed(result)
        self.end(stream.call, GrpcStatus.OK, "")

    def _failed(self, reason: failure.Failure, stream: CallStream) -> None:
        stream.running = None
        error = reason.value
        if isinstance(error, GrpcError):
            self.end(stream.call, error.status, error.message)
        elif isinstance(error, defer.CancelledError):
            self.end(stream.call, GrpcStatus.CANCELLED, "cancelled")
        else:
            self.log.failure("call failed: path={p} peer={peer}", reason, p=stream.call.head.path, peer=self.address)
            self.end(stream.call, GrpcStatus.INTERNAL, f"{type(error).__name__}: {error}")

    # Wire: the interface for calls

    def write(self, call: Call, data: bytes) -> defer.Deferred[None]:
        """Queue one message; fires when at most `unsent_bytes` wait in the stream."""
        stream = self._streams.get(call.stream_id)
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
        stream = self._streams.get(call.stream_id)
        if stream is None:
            tell(False)
        else:
            stream.confirm = tell

    def end(self, call: Call, status: GrpcStatus, message: str) -> None:
        """Queue the trailers, and cancel the handler if it still runs."""
        stream = self._streams.get(call.stream_id)
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

    def _pump(self, stream: CallStream) -> None:
        """Write as much of the waiting data as the windows allow."""
        if (self._closing and not self.connected_now) or stream.call.stream_id not in self._streams:
            return
        connection, stream_id, outgoing = self._http2, stream.call.stream_id, stream.outgoing
        if stream_id not in connection.streams:  # closed by a frame of the same read
            self._forget(stream)
            return
        if stream.trailers is not None and not outgoing and not stream.answering:
            connection.send_headers(stream_id, as_block([*RESPONSE_HEADERS, *stream.trailers]), end=True)
            self._done(stream)
            return
        if stream.trailers is OK and outgoing and not stream.answering and not self._paused:
            headers = stream.call.head.response_headers
            first = OK_HEADERS if headers is RESPONSE_HEADERS else as_block(headers)
            if connection.answer(stream_id, first, outgoing, OK_TRAILERS):
                outgoing.clear()
                self._count_unsent(stream)
                self._buckets[PingReceived].refill()
                self._done(stream)
                return
        if outgoing and not stream.answering:
            connection.send_headers(stream_id, as_block(stream.call.head.response_headers))
            stream.answering = True
        sent = False
        while outgoing and not self._paused:
            room = connection.room_of(stream_id)
            if room <= 0:
                break
            connection.send_data(stream_id, bytes(outgoing[:room]))
            del outgoing[:room]
            sent = True
        if sent:
            self._buckets[PingReceived].refill()  # clients measure their bandwidth by pings while data comes
        self._count_unsent(stream)
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

    def _count_unsent(self, stream: CallStream) -> None:
        """Count what waits in a stream."""
        size = len(stream.outgoing)
        if size == stream.unsent:
            return
        self._unsent += size - stream.unsent
        stream.unsent = size
        budget = self._shared.budget
        budget.taken(self)
        largest = budget.not_taken(self, self._unsent)
        if largest is not None:
            largest.cut("waiting answers use too much memory, and it does not read its answers")

    def _done(self, stream: CallStream) -> None:
        """Close a stream whose trailers are written."""
        confirm, stream.confirm = stream.confirm, None
        if confirm is not None:
            self._sent[stream.call.stream_id] = confirm
            if len(self._sent) > MOST_UNCONFIRMED:
                self.cut("it does not answer the ping behind its answers")
        self._forget(stream)

    def _forget(self, stream: CallStream) -> None:
        """Release the bytes of a closed stream."""
        if self._streams.pop(stream.call.stream_id, None) is None:
            return
        self._shared.calls -= 1
        self._count_incomplete(stream, 0)
        self._stalled.pop(stream, None)
        stream.outgoing = bytearray()
        self._count_unsent(stream)
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
        if not self._streams:
            self._idle_since = self._seconds()
            if self._shared.stopping or self._closing:
                self._lose()

    # life

    def look(self, now: float) -> None:
        """End slow transfers: requests that do not arrive, answers that are not taken, unused connections."""
        limits = self._limits
        if not self._streams:
            if now - self._idle_since >= limits.idle_seconds:
                self._go_away(ErrorCode.NO_ERROR)
                self._lose()
            return
        for stream in list(self._streams.values()):
            if not stream.started and now - stream.began >= limits.request_seconds and stream.trailers is None:
                self.end(stream.call, GrpcStatus.DEADLINE_EXCEEDED, "the request did not arrive")
            elif stream.stalled_since is not None and now - stream.stalled_since >= limits.stalled_seconds:
                self.log.warn("stream reset, its answers are not read: peer={peer}", peer=self.address)
                self._http2.reset(stream.call.stream_id, ErrorCode.CANCEL)
                self._forget(stream)
        if self._pinged_at is not None and now - self._pinged_at >= limits.ping_answer_seconds:
            self.cut("it does not answer pings")
            return
        if self._pinged_at is None and now - self._last_active >= limits.ping_after_seconds:
            self._pinged_at = now
            self._http2.ping(KEEPALIVE)
        self._flush()

    def stop(self) -> None:
        """Accept no further calls, and close when the present ones have ended. The caller has set `Shared.stopping`."""
        self._go_away(ErrorCode.NO_ERROR)
        if not self._streams:
            self._lose()

    def end_calls(self, message: str) -> None:
        """End the open calls as UNAVAILABLE, so that clients try again or elsewhere."""
        for stream in list(self._streams.values()):
            self.end(stream.call, GrpcStatus.UNAVAILABLE, message)

    def close(self) -> None:
        """Close once the present calls have ended."""
        if not self._streams:
            self._lose()

    def _go_away(self, error: ErrorCode, data: bytes = b"") -> None:
        """Send a GOAWAY, behind what waits to be sent."""
        self._end_gathering()
        self._flush()
        last = STREAM_BITS if error is ErrorCode.NO_ERROR else self._http2.highest_stream_id
        self._http2.go_away(error, last, data)
        self._flush()

    def _too_much(self, what: str) -> None:
        self._go_away(ErrorCode.ENHANCE_YOUR_CALM, TOO_MANY_PINGS if what == PingReceived.__name__ else b"")
        self._broken(f"too many times: {what}")

    def _broken(self, reason: str) -> None:
        """Close the connection of a client that breaks the protocol: nothing more is read from it."""
        self.log.warn("connection closed: peer={peer} {reason}", peer=self.address, reason=reason)
        self._flush()
        self._closing = True
        for stream in list(self._streams.values()):
            self._forget(stream)
        self._lose()

    def _lose(self) -> None:
        self._closing = True
        if not self.connected_now or self._cut_off is not None:
            return
        self._flush()
        self.transport.unregisterProducer()
        self._cut_off = self._shared.clock.callLater(GRACE_SECONDS, self._past_grace)
        self.transport.loseConnection()

    def _past_grace(self) -> None:
        self._cut_off = None
        self.abort()

    def cut(self, reason: str) -> None:
        """Close at once, with one log line that says why."""
        self.log.warn("connection cut: peer={peer} {reason}", peer=self.address, reason=reason)
        self.abort()

    def abort(self) -> None:
        """Close at once. Data that the client has not received is lost."""
        if self.connected_now:
            self.transport.abortConnection()

    def _pump_soon(self, stream: CallStream) -> None:
        """Pump at the end of the present read or turn, so that all answers of it leave in few frames and one write."""
        self._filled[stream] = None
        if not self._reading and self._writing is None:
            self._writing = self._shared.clock.callLater(0, self._flush_now)

    def _flush_now(self) -> None:
        self._writing = None
        self._flush()

    def _flush(self) -> None:
        if self._has_room:
            self._has_room = False
            self._filled.update(self._stalled)
        filled, self._filled = self._filled, {}
        for stream in filled:
            self._pump(stream)
        if self._sent and not self._pinged_for and not self._closing:
            self._pinged_for, self._sent = self._sent, {}
            self._http2.ping(CONFIRM)
        data = self._http2.to_send()
        if data and self.connected_now:
            write_promptly(self.transport, data)


_BESIDE = frozenset({WindowGrew, PingReceived, PingAnswered, SettingsReceived})
"""Events that change nothing for calls that are gathered."""


def _is_plain(data: bytes) -> bool:
    """Return whether data is one message that is not compressed and that is too small to have many fields."""
    if not GRPC_HEAD.size <= len(data) <= SMALL_BYTES:
        return False
    compressed, length = GRPC_HEAD.unpack_from(data)
    return not compressed and length == len(data) - GRPC_HEAD.size


_REACTIONS: Mapping[type[Event], Callable[[GrpcConnection, Any], None]] = {
    RequestReceived: GrpcConnection._request,
    DataReceived: GrpcConnection._data,
    RequestEnded: GrpcConnection._trailers,
    StreamReset: GrpcConnection._stream_reset,
    LateReset: GrpcConnection._late_reset,
    PingAnswered: GrpcConnection._ping_answered,
    WindowGrew: GrpcConnection._window_updated,
    SettingsReceived: GrpcConnection._windows_changed,
    GoAwayReceived: GrpcConnection._terminated,
}

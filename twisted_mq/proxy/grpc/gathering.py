"""Gathers calls of one method and one client that come whole in one read, and has them handled together at its end."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from twisted.python import failure

from twisted_mq.protocol.http2.events import (
    DataReceived,
    Event,
    PingAnswered,
    PingReceived,
    RequestReceived,
    SettingsReceived,
    WindowGrew,
)
from twisted_mq.protocol.http2.server_connection import ServerConnection
from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.proxy.grpc.call_stream import CallStream
from twisted_mq.proxy.grpc.calls import Call, Method
from twisted_mq.proxy.grpc.field_counts import SMALL_BYTES
from twisted_mq.proxy.grpc.limits import Bucket
from twisted_mq.proxy.grpc.metadata import is_plain, read_head
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.proxy.grpc.requests import Requests
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.proxy.grpc.status import GrpcStatus
from twisted_mq.proxy.grpc.streams import OK_HEADERS, OK_TRAILERS, Streams

CLIENT_ID = b"x-mq-client-id"
"""The metadata that names a client. Only calls of one client are handled together."""
MOST_TOGETHER = 64
"""The limit of calls that are handled together: some 2 ms of work."""
BESIDE = frozenset({WindowGrew, PingReceived, PingAnswered, SettingsReceived})
"""Events that change nothing for calls that are gathered."""


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


class Gathering:
    """The calls of a connection's read that are handled together, at its end or before something else that concerns calls."""

    def __init__(
        self,
        http2: ServerConnection,
        shared: Shared,
        peer: GrpcPeer,
        streams: Streams,
        requests: Requests,
        pings: Bucket,
    ) -> None:
        self._http2, self._shared, self._peer = http2, shared, peer
        self._streams, self._requests, self._pings = streams, requests, pings
        self.gathered: Gathered | None = None
        self.begun: dict[int, tuple[RequestReceived, dict[bytes, bytes], Method]] = {}
        """Calls that may be gathered once their message comes, by stream, each with its headers by name. Clients send many
        headers in a row."""

    def takes(self, event: Event) -> bool:
        """Gather a call for later in this read, or its headers. Return False for an event that has to be handled now."""
        if type(event) is RequestReceived:
            given = dict(event.headers) if self._shared.together else {}
            method = self._method_together(event, given)
            if method is not None:
                self.begun[event.stream_id] = event, given, method
            return method is not None
        if type(event) is not DataReceived or event.stream_id not in self.begun:
            return False
        request, given, method = self.begun.pop(event.stream_id)
        if not event.ended or not is_one_small_message(event.data):
            self._requests.request(request)
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
        return method if shared.calls + len(self.begun) + MOST_TOGETHER < self._shared.limits.calls else None

    def _gather(
        self, method: Method, given: Mapping[bytes, bytes], request: RequestReceived, data: DataReceived
    ) -> None:
        gathered = self.gathered
        client_id = given.get(CLIENT_ID)
        if gathered is not None and (gathered.method is not method or gathered.client_id != client_id):
            self._answer_gathered()
            gathered = self.gathered
        if gathered is None:
            call = Call(
                request.stream_id, read_head(given), self._peer.remote_address, self._shared.clock, None, self._streams
            )
            gathered = self.gathered = Gathered(method, client_id, call)
        gathered.events.append((request, data))
        if len(gathered.events) >= MOST_TOGETHER:
            self._answer_gathered()

    def end(self) -> None:
        """Handle the gathered calls, and what has come of others."""
        self._answer_gathered()
        if self.begun:
            begun, self.begun = self.begun, {}
            for request, _, _ in begun.values():
                self._requests.request(request)

    def _answer_gathered(self) -> None:
        """Handle the gathered calls. What their method does not take together is handled call by call."""
        gathered, self.gathered = self.gathered, None
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
                self._requests.request(request)
                self._requests.data(data)
            gathered.events = left[alone:]
        if not self._streams.by_id:
            self._streams.idle_since = self._peer.last_active
        self._pings.refill()

    def _answer_whole(self, event: RequestReceived, gathered: Gathered, answer: bytes) -> None:
        """Write the answer to a gathered call and end it; as far as the client's windows allow, the rest later."""
        if not self._streams.paused and self._http2.answer(event.stream_id, OK_HEADERS, answer, OK_TRAILERS):
            self._shared.ended[GrpcStatus.OK] += 1
            return
        stream = self._opened(event, gathered)
        stream.outgoing += answer
        self._streams.end(stream.call, GrpcStatus.OK, "")

    def _failed_together(self, gathered: Gathered) -> None:
        """End calls whose handler failed: some of them may have had their effect, so that none is handled again."""
        reason = failure.Failure()
        for event, _ in gathered.events:
            self._requests.failed(reason, self._opened(event, gathered))

    def _opened(self, event: RequestReceived, gathered: Gathered) -> CallStream:
        """Return the stream of a gathered call whose answer does not leave now."""
        stream = self._streams.open(event.stream_id, read_head(dict(event.headers)), gathered.method)
        stream.started = True
        return stream


def is_one_small_message(data: bytes) -> bool:
    """Return whether data is one message that is not compressed and that is too small to have many fields."""
    if not GRPC_HEAD.size <= len(data) <= SMALL_BYTES:
        return False
    compressed, length = GRPC_HEAD.unpack_from(data)
    return not compressed and length == len(data) - GRPC_HEAD.size

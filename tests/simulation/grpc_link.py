"""A gRPC client's connection on the virtual network: h2's client side, calls that time out, streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from twisted.internet import defer, protocol
from twisted.internet.interfaces import IReactorTime
from twisted.python import failure

from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc.framing import MessageDecoder, frame

MOST_BYTES = 1 << 30


class CallFailed(Exception):
    """The call was reset, or its connection was lost, or it took too long."""


@attrs.define(eq=False)
class _Call:
    answer: type[Any]
    got: Callable[[Any], object]
    ended: defer.Deferred[None]
    decoder: MessageDecoder = attrs.field(factory=lambda: MessageDecoder(MOST_BYTES))


class GrpcLink(protocol.Protocol):
    """A connection of the client with this id."""

    def __init__(self, clock: IReactorTime, client_id: str) -> None:
        self._clock = clock
        self._client_id = client_id
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._calls: dict[int, _Call] = {}
        self.lost: Callable[[], object] = lambda: None

    def connectionMade(self) -> None:
        self._h2.initiate_connection()
        self._write()

    def dataReceived(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            stream_id = getattr(event, "stream_id", None) or 0
            call = self._calls.get(stream_id)
            if isinstance(event, DataReceived):
                self._h2.acknowledge_received_data(event.flow_controlled_length, stream_id)
                if call is not None:
                    for message in call.decoder.receive_data(event.data or b""):
                        call.got(call.answer.FromString(message))
            elif isinstance(event, StreamEnded) and call is not None:
                del self._calls[stream_id]
                call.ended.callback(None)
            elif isinstance(event, StreamReset) and call is not None:
                del self._calls[stream_id]
                call.ended.errback(CallFailed("reset"))
            elif isinstance(event, ConnectionTerminated):
                self.transport.loseConnection()  # type: ignore[union-attr]
        self._write()

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.ended.errback(CallFailed("connection lost"))
        self.lost()

    def open(self, name: str, got: Callable[[Any], object], seconds: float | None = None) -> tuple[int, _Call]:
        """Begin a call whose answers are handed to `got`."""
        stream_id = self._h2.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", f"/{v2.SERVICE}/{name}"),
            (":authority", "mq"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("x-mq-client-id", self._client_id),
            ("x-mq-language", "PYTHON"),
        ]
        if seconds is not None:
            headers.append(("grpc-timeout", f"{int(seconds * 1000)}m"))
        self._h2.send_headers(stream_id, headers)
        call = self._calls[stream_id] = _Call(v2.message_class(v2.METHODS[name][1]), got, defer.Deferred())
        return stream_id, call

    def tell(self, stream_id: int, request: Any, *, end: bool) -> None:
        """Send a message on a stream."""
        self._h2.send_data(stream_id, frame(request.SerializeToString()), end_stream=end)
        self._write()

    async def call(
        self, name: str, seconds: float, got: Callable[[Any], object] = lambda answer: None, **fields: Any
    ) -> list[Any]:
        """Make a call and return its answers; each is handed to `got` when it comes. Raises CallFailed."""
        answers: list[Any] = []

        def came(answer: Any) -> None:
            answers.append(answer)
            got(answer)

        try:
            stream_id, call = self.open(name, came, seconds)
            self.tell(stream_id, v2.message_class(v2.METHODS[name][0])(**fields), end=True)
        except ProtocolError as error:
            raise CallFailed(str(error)) from error
        try:
            await call.ended.addTimeout(seconds, self._clock)
        except defer.TimeoutError:
            if self._calls.pop(stream_id, None) is not None:
                self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
                self._write()
            raise CallFailed(f"{name} took more than {seconds:g} s") from None
        return answers

    def _write(self) -> None:
        data = self._h2.data_to_send()
        if data and self.transport is not None:
            self.transport.write(data)

"""A gRPC client without sockets: h2's client side wired to a server's connection, byte by byte where a test wants it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from google.protobuf.wrappers_pb2 import StringValue
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from twisted_mq.proxy.grpc.calls import Method
from twisted_mq.proxy.grpc.connection import GrpcConnection
from twisted_mq.proxy.grpc.framing import MessageDecoder, frame
from twisted_mq.proxy.grpc.limits import ConnectionLimits
from twisted_mq.proxy.grpc.server import GrpcServerFactory
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.proxy.grpc.status import GrpcStatus

ECHO, SLOW, MANY, TALK = "/test.Echo/Echo", "/test.Echo/Slow", "/test.Echo/Many", "/test.Echo/Talk"


class Wire:
    """A client's connection to a server of these methods on a virtual clock."""

    def __init__(
        self, methods: dict[str, Method], limits: ConnectionLimits | None = None, *, connect: bool = True
    ) -> None:
        self.clock = Clock()
        self.shared = Shared(methods, self.clock, limits or ConnectionLimits())
        self.factory = GrpcServerFactory(self.shared)
        self.events: list[Event] = []
        self._bodies: dict[int, bytes] = defaultdict(bytes)
        self.transport = StringTransport()
        connection = self.factory.buildProtocol(None)
        assert connection is not None
        self.server: GrpcConnection = connection
        self.server.makeConnection(self.transport)
        self.client = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        if connect:
            self.client.initiate_connection()
            self.exchange()

    # what the client does

    def send(self, data: bytes | None = None) -> None:
        """Hand bytes to the server: those given, or what the client's h2 has."""
        self.server.dataReceived(self.client.data_to_send() if data is None else data)

    def receive(self) -> list[Event]:
        """Take what the server has written."""
        self.clock.advance(0)
        data = self.transport.value()
        self.transport.clear()
        events = list(self.client.receive_data(data)) if data else []
        self.events += events
        for event in events:
            if isinstance(event, DataReceived):
                self._bodies[event.stream_id or 0] += event.data or b""
        return events

    def exchange(self) -> None:
        """Both ways, until neither has anything to say."""
        while True:
            self.receive()
            data = self.client.data_to_send()
            if not data:
                return
            self.send(data)

    def headers(self, path: str, **more: str) -> list[tuple[str, str]]:
        """Return the headers of a call. Names in `more` have underscores for hyphens."""
        return [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "mq"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *((name.replace("_", "-"), value) for name, value in more.items()),
        ]

    def begin(self, path: str, **more: str) -> int:
        """Send a call's headers; returns its stream."""
        stream_id = self.client.get_next_available_stream_id()
        self.client.send_headers(stream_id, self.headers(path, **more))
        return int(stream_id)

    def call(self, path: str, *requests: Any, end: bool = True, **more: str) -> int:
        """A call with these texts or messages. Without `end` it stays open for more."""
        stream_id = self.begin(path, **more)
        self.client.send_data(stream_id, b"".join(map(message, requests)), end_stream=end)
        self.exchange()
        return stream_id

    def upload(self, path: str, body: bytes) -> int:
        """A call whose body goes as the server's windows allow; returns its stream."""
        stream_id = self.begin(path)
        while body:
            window = self.client.local_flow_control_window(stream_id)
            room = min(window, self.client.max_outbound_frame_size, len(body))
            assert room > 0
            self.client.send_data(stream_id, body[:room], end_stream=room == len(body))
            body = body[room:]
            self.send()
            self.receive()
        return stream_id

    # what came back

    def of(self, kind: type[Event], stream_id: int) -> list[Any]:
        """Events of a kind on a stream."""
        return [one for one in self.events if type(one) is kind and getattr(one, "stream_id", None) == stream_id]

    def texts(self, stream_id: int) -> list[str]:
        """The answers on a stream."""
        return [one.value for one in self.answers(stream_id, StringValue)]

    def answers(self, stream_id: int, kind: Any) -> list[Any]:
        """The answers on a stream as messages of this class."""
        headers = {name: value for event in self.of(ResponseReceived, stream_id) for name, value in event.headers}
        decoder = MessageDecoder(1 << 30, headers.get("grpc-encoding", "identity"))
        return [kind.FromString(one) for one in decoder.receive_data(self._bodies[stream_id])]

    def received_bytes(self, stream_id: int) -> int:
        """Return the number of received bytes of the answers."""
        return len(self._bodies[stream_id])

    def status(self, stream_id: int) -> tuple[GrpcStatus, str] | None:
        """Return how a call ended, or None before its end."""
        for event in [*self.of(TrailersReceived, stream_id), *self.of(ResponseReceived, stream_id)]:
            headers = dict(event.headers)
            if "grpc-status" in headers:
                return GrpcStatus(int(headers["grpc-status"])), headers.get("grpc-message", "")
        return None

    def is_ended(self, stream_id: int) -> bool:
        """Return True if the server ended the stream."""
        return bool(self.of(StreamEnded, stream_id))

    def resets(self, stream_id: int) -> list[int]:
        """The error codes that the server reset it with."""
        return [int(one.error_code) for one in self.of(StreamReset, stream_id)]

    def goodbyes(self) -> list[int]:
        """The error codes of GOAWAY frames."""
        return [int(one.error_code or 0) for one in self.events if isinstance(one, ConnectionTerminated)]

    def pings(self) -> int:
        """Return the number of received pings."""
        return sum(isinstance(one, PingReceived) for one in self.events)

    @property
    def is_closed(self) -> bool:
        return bool(self.transport.disconnecting or self.transport.disconnected)

    def lose(self) -> None:
        """The connection is gone."""
        from twisted.internet.error import ConnectionLost
        from twisted.python.failure import Failure

        self.server.connectionLost(Failure(ConnectionLost()))


def message(content: Any) -> bytes:
    """A message as it goes on a stream; a text as StringValue, bytes as they are."""
    if isinstance(content, bytes):
        return content
    made = StringValue(value=content) if isinstance(content, str) else content
    return frame(made.SerializeToString())


def echo(call: Any, request: Any) -> Any:
    """Answers what it was asked."""
    return StringValue(value=request.value)


def methods(**handlers: Any) -> dict[str, Method]:
    """Echo, and the handlers given for Slow, Many and Talk."""
    table = {ECHO: Method(StringValue, handlers.get("echo", echo))}
    if "slow" in handlers:
        table[SLOW] = Method(StringValue, handlers["slow"])
    if "many" in handlers:
        table[MANY] = Method(StringValue, handlers["many"], gives_stream=True)
    if "talk" in handlers:
        table[TALK] = Method(StringValue, handlers["talk"], takes_stream=True, gives_stream=True)
    return table


def values(texts: Iterable[str]) -> list[Any]:
    """StringValues of these texts."""
    return [StringValue(value=text) for text in texts]

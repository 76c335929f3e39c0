"""The call as its handler sees it, and the table of methods that a server is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.proxy.grpc.framing import frame
from twisted_mq.proxy.grpc.metadata import CallHead, Metadata
from twisted_mq.proxy.grpc.status import GrpcStatus

ProtobufMessage: TypeAlias = Any
"""An instance of a generated class. The classes are generated at run time."""

Handler: TypeAlias = Callable[..., Any]
"""`handler(call, request)` returns the answer, or an awaitable of it. With `gives_stream` it sends answers by `call.send`, and
the call ends when the handler does. With `takes_stream` it is `handler(call)`: it sets `call.received` and
`call.half_closed`, and ends the call by `call.finish`."""


Together: TypeAlias = "Callable[[Call, Sequence[bytes]], Sequence[bytes]]"
"""`together(call, requests)` handles calls of one client that came in one read. `call` is the first of them, `requests` are the
encoded requests. It returns the framed answers of the first ones, up to a call that the handler has to take."""


@attrs.frozen
class Method:
    """A method of a service. `request` is the protobuf class of its request messages."""

    request: type[Any]
    handler: Handler
    takes_stream: bool = False
    gives_stream: bool = False
    together: Together | None = None


Methods: TypeAlias = Mapping[str, Method]
"""The methods by path: /package.Service/Method."""


class Wire(Protocol):
    """The part of a connection that its calls use."""

    def write(self, call: Call, data: bytes) -> defer.Deferred[None]: ...

    def confirm(self, call: Call, tell: Callable[[bool], object]) -> None: ...

    def end(self, call: Call, status: GrpcStatus, message: str) -> None: ...


@attrs.define(eq=False)
class Call:
    """A call. `deadline` is in seconds of the clock, None without one. `peer` is host and port."""

    stream_id: int
    head: CallHead
    peer: tuple[str, int]
    clock: interfaces.IReactorTime
    deadline: float | None
    _wire: Wire
    received: Callable[[ProtobufMessage], object] | None = None
    half_closed: Callable[[], object] | None = None
    is_over: bool = False
    is_broken: bool = False
    """True if the client ended the call by a reset, or its connection was lost."""
    _ends: list[Callable[[], object]] = attrs.field(factory=list)

    @property
    def metadata(self) -> Metadata:
        """Return the metadata that the client sent with the request."""
        return self.head.metadata

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - self.clock.seconds())

    def send(self, message: ProtobufMessage) -> defer.Deferred[None]:
        """Write one answer of a stream; fires when the next one may follow. After the call's end, nothing is written."""
        return defer.succeed(None) if self.is_over else self._wire.write(self, self.framed(message))

    def when_taken(self, tell: Callable[[bool], object]) -> None:
        """Call `tell` once with whether the client has taken all answers. False if it reset the call or was disconnected."""
        if self.is_over:
            tell(False)
        else:
            self._wire.confirm(self, tell)

    def framed(self, message: ProtobufMessage) -> bytes:
        """Return an answer as it goes on the stream, compressed if the client compresses its requests."""
        return frame(message.SerializeToString(), self.head.answer_encoding)

    def ended(self) -> defer.Deferred[None]:
        """Return a Deferred that fires once the call has ended. Cancelling it does nothing."""
        waiting: defer.Deferred[None] = defer.Deferred()
        self.when_over(lambda: waiting.callback(None))
        return waiting

    def finish(self, status: GrpcStatus = GrpcStatus.OK, message: str = "") -> None:
        """End the call. A second end does nothing."""
        if not self.is_over:
            self._wire.end(self, status, message)

    def when_over(self, tell: Callable[[], object]) -> None:
        """Call `tell` once the call has ended, in whatever way: answered, refused, cancelled, connection lost."""
        if self.is_over:
            tell()
        else:
            self._ends.append(tell)

    def over(self) -> None:
        """Mark the call as ended. Only its connection calls this."""
        self.is_over = True
        ends, self._ends = self._ends, []
        for tell in ends:
            tell()

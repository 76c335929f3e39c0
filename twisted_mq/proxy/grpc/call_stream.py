"""The state of one call on its stream, and the count of the bytes that all streams of a connection hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.proxy.grpc.calls import Call, Method
from twisted_mq.proxy.grpc.framing import MessageDecoder
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.proxy.grpc.status import Headers
from twisted_mq.remoting.budget import Budget


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


class HeldBytes:
    """The bytes that the streams of one connection hold, counted in its server's budget. Past a limit, a peer is cut."""

    def __init__(self, budget: Budget[GrpcPeer], peer: GrpcPeer) -> None:
        self._budget, self._peer = budget, peer
        self._incomplete = 0
        self._unsent = 0

    def count_incomplete(self, stream: CallStream, size: int) -> None:
        """Set how many bytes of an unfinished message of this stream are held."""
        if size == stream.incomplete:
            return
        self._incomplete += size - stream.incomplete
        stream.incomplete = size
        slowest = self._budget.came(self._peer, self._incomplete)
        if slowest is not None:
            slowest.cut("incomplete requests use too much memory, and its requests are the oldest")

    def count_unsent(self, stream: CallStream) -> None:
        """Count what waits in a stream."""
        size = len(stream.outgoing)
        if size == stream.unsent:
            return
        self._unsent += size - stream.unsent
        stream.unsent = size
        self._budget.taken(self._peer)
        largest = self._budget.not_taken(self._peer, self._unsent)
        if largest is not None:
            largest.cut("waiting answers use too much memory, and it does not read its answers")

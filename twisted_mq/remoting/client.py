"""Calls servers: one connection per address, opened when it is first needed, and again after it was lost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NoReturn

from twisted.internet import defer, interfaces, protocol
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ConnectError
from twisted.python import failure

from twisted_mq.protocol.layouts.host import parse_host_text
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES
from twisted_mq.protocol.wire.namespace import add_namespace
from twisted_mq.protocol.wire.shapes import NO_SHAPES, Shapes
from twisted_mq.protocol.wire.signature import Credentials, sign
from twisted_mq.remoting.backoff import Backoff
from twisted_mq.remoting.calling_channel import CallingChannel
from twisted_mq.remoting.channel import Processor, Request
from twisted_mq.remoting.errors import RemotingConnectError, RemotingTimeoutError
from twisted_mq.remoting.name_endpoint import NameEndpoint
from twisted_mq.remoting.outbox import Outbox
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic

Connect = Callable[[str, int], interfaces.IStreamClientEndpoint]
MOST_AWAITED = 65_535
"""The most requests of one connection that wait for their answer (Apache: clientAsyncSemaphoreValue)."""


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port"; IPv6 hosts may be in brackets. Raises RemotingConnectError."""
    try:
        return parse_host_text(address)
    except ValueError as error:
        raise RemotingConnectError(str(error)) from None


def tcp_endpoint(reactor: interfaces.IReactorTime, connect_timeout_seconds: float) -> Connect:
    """Return endpoints over TCP; names are resolved, numeric addresses are not."""

    def connect(host: str, port: int) -> interfaces.IStreamClientEndpoint:
        kind = TCP4ClientEndpoint if host.replace(".", "").isdigit() else NameEndpoint
        return kind(reactor, host, port, timeout=connect_timeout_seconds)

    return connect


def _completes(namespace: str, credentials: Credentials | None) -> Callable[[RemotingCommand], None] | None:
    """Return the change to each request before it leaves: the signature covers the namespace, too."""
    signs = None if credentials is None else functools.partial(sign, credentials=credentials)
    if not namespace:
        return signs

    def complete(command: RemotingCommand) -> None:
        add_namespace(command, namespace)
        if signs is not None:
            signs(command)

    return complete


class RemotingClient:
    """Sends requests to any address, and serves the requests of servers through `processors` (code -> Processor)."""

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        *,
        connect: Connect | None = None,
        connect_timeout_seconds: float = 3.0,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        credentials: Credentials | None = None,
        namespace: str = "",
        channel_made: Callable[[str], None] | None = None,
        channel_lost: Callable[[str], None] | None = None,
        not_reached: Callable[[str, str], None] | None = None,
        backoff: Backoff | None = None,
        completes: Callable[[RemotingCommand], None] | None = None,
        shapes: Shapes = NO_SHAPES,
    ) -> None:
        """Create a client. Requests name the `namespace`, and are signed with `credentials`. `completes` replaces both:
        it changes each request before the request leaves. `shapes` are those of answers that are read together.

        `channel_made` is called with an address before any request leaves on its new connection, `not_reached` with an
        address and the reason when a connection cannot be made. With a `backoff`, an address that could not be reached is
        not tried again during its pause: requests fail at once.
        """
        self.processors: dict[int, Processor] = {}
        self._clock = reactor
        self._connect = connect or tcp_endpoint(reactor, connect_timeout_seconds)
        self._traffic = Traffic(
            self.processors,
            reactor,
            max_frame_bytes,
            MOST_AWAITED,
            sign=completes or _completes(namespace, credentials),
            channel_lost=self._channel_lost,
            pause_reading=False,
            shapes=shapes,
        )
        self.completes_requests = self._traffic.sign is not None
        """True if commands are changed before they leave; encoded requests are not changed."""
        self.outbox = Outbox(reactor)
        self._channels: dict[str, CallingChannel] = {}
        self._connecting: dict[str, list[defer.Deferred[CallingChannel]]] = {}
        self._attempts: dict[str, defer.Deferred[interfaces.IProtocol]] = {}
        self._on_made = channel_made
        self._on_lost = channel_lost
        self._on_failed = not_reached
        self._backoff = backoff
        self._closed = False
        self._closing: list[defer.Deferred[None]] = []
        self._abort: interfaces.IDelayedCall | None = None

    def invoke(self, address: str, request: Request, timeout_seconds: float = 3.0) -> defer.Deferred[RemotingCommand]:
        """Return the answer to a request. Fails with a RemotingError subclass; a refusal by the peer is an answer too.

        The timeout covers connecting and answering together.
        """
        channel = self._channels.get(address)
        if channel is not None:
            return channel.send_request(request, timeout_seconds)
        deadline = self._clock.seconds() + timeout_seconds

        def late(result: object, _: float) -> NoReturn:
            raise RemotingTimeoutError(f"no connection to {address} within {timeout_seconds:g} s")

        waiting = self.channel(address)
        if not waiting.called:
            waiting.addTimeout(timeout_seconds, self._clock, onTimeoutCancel=late)
        return waiting.addCallback(lambda made: made.send_request(request, max(0.0, deadline - self._clock.seconds())))

    def invoke_one_way(self, address: str, command: RemotingCommand) -> defer.Deferred[None]:
        """Send without an answer; fires when the command is passed to the transport."""
        return self.channel(address).addCallback(lambda made: made.send_one_way(command))

    def channel(self, address: str) -> defer.Deferred[CallingChannel]:
        """Return the open connection to that address, made if needed; simultaneous callers share one attempt."""
        channel = self._channels.get(address)
        if channel is not None:
            return defer.succeed(channel)
        if self._closed:
            return defer.fail(RemotingConnectError(f"connect to {address} failed: this client is closed"))
        resting = None if self._backoff is None else self._backoff.resting(address, self._clock.seconds())
        if resting is not None:
            return defer.fail(RemotingConnectError(f"connect to {address} failed: {resting}"))
        waiting: defer.Deferred[CallingChannel] = defer.Deferred()
        self._connecting.setdefault(address, []).append(waiting)
        if address not in self._attempts:
            self._begin(address)
        return waiting

    def channel_now(self, address: str) -> CallingChannel | None:
        """Return the open connection to that address, or None."""
        return self._channels.get(address)

    def postpone(self, seconds: float) -> None:
        """Extend the time of all requests that wait for their answer, because nothing could be read for so long."""
        for channel in self._channels.values():
            channel.postpone(seconds)

    def disconnect(self, address: str) -> None:
        """Close the connection to an address, if one is open."""
        channel = self._channels.get(address)
        if channel is not None:
            channel.close()

    def close(self, abort_after_seconds: float = 1.0) -> defer.Deferred[None]:
        """Close all connections; pending requests fail. Fires when all are gone. Safe to call twice.

        A peer that does not take what was written is cut off after `abort_after_seconds`.
        """
        self._closed = True
        for attempt in list(self._attempts.values()):
            attempt.cancel()
        if not self._channels:
            return defer.succeed(None)
        for channel in list(self._channels.values()):
            channel.close()
        self.outbox.stop()
        gone: defer.Deferred[None] = defer.Deferred()
        self._closing.append(gone)
        if self._abort is None and self._channels:
            self._abort = self._clock.callLater(abort_after_seconds, self._abort_all)
        self._report_closed()
        return gone

    def _abort_all(self) -> None:
        self._abort = None
        for channel in list(self._channels.values()):
            channel.abort()

    def _report_closed(self) -> None:
        if self._channels or not self._closed:
            return
        if self._abort is not None:
            self._abort.cancel()
            self._abort = None
        waiting, self._closing = self._closing, []
        for one in waiting:
            one.callback(None)

    def _begin(self, address: str) -> None:
        factory = protocol.Factory.forProtocol(lambda: CallingChannel(self._traffic, self.outbox))
        factory.noisy = False
        try:
            attempt = self._connect(*split_address(address)).connect(factory)
        except RemotingConnectError as error:
            self._failed(failure.Failure(error), address)
            return
        self._attempts[address] = attempt
        attempt.addCallbacks(self._made, self._failed, callbackArgs=(address,), errbackArgs=(address,))

    def _made(self, channel: CallingChannel, address: str) -> None:
        self._attempts.pop(address, None)
        if self._backoff is not None:
            self._backoff.connected(address)
        if channel.connected_now:
            self._channels[address] = channel
            if self._on_made is not None:
                self._on_made(address)
        for waiting in self._connecting.pop(address, []):
            waiting.callback(channel)

    def _failed(self, reason: failure.Failure, address: str) -> None:
        self._attempts.pop(address, None)
        error = reason.value
        text = str(error) if isinstance(error, ConnectError) else reason.getErrorMessage()
        refused = error if isinstance(error, RemotingConnectError) else None
        if self._backoff is not None and not self._closed:
            self._backoff.failed(address, text, self._clock.seconds())
        if self._on_failed is not None and not self._closed:
            self._on_failed(address, text)
        for waiting in self._connecting.pop(address, []):
            waiting.errback(refused or RemotingConnectError(f"connect to {address} failed: {text}"))

    def _channel_lost(self, channel: SocketChannel) -> None:
        for address, held in list(self._channels.items()):
            if held is channel:
                del self._channels[address]
                if self._on_lost is not None:
                    self._on_lost(address)
        self._report_closed()

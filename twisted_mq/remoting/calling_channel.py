"""Makes the calling side of a connection: a SocketChannel whose requests leave together, and whose answers are read together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import protocol
from twisted.internet.tcp import Connection
from twisted.python import failure

from twisted_mq.protocol.errors import CommandError
from twisted_mq.protocol.wire.shapes import Streak
from twisted_mq.remoting.awaited_answers import Asker
from twisted_mq.remoting.outbox import Outbox
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic, write_promptly

REQUESTS_TOGETHER = 64
"""This many requests leave at once, without waiting for more."""
_SAME_MOMENT_SECONDS = 1e-3
"""A request that an answer triggers leaves when the answer came, up to rounding of times."""


class CallingChannel(SocketChannel):
    """A client's connection, as Channel. Requests are held while the transport `writes_at_once`."""

    def __init__(self, traffic: Traffic, outbox: Outbox) -> None:
        super().__init__(traffic)
        self._outbox = outbox
        self._requests: list[bytes] = []
        self._may_hold = False

    def connectionMade(self) -> None:
        plain = isinstance(self.transport, Connection) and not self.transport.TLS
        self._may_hold = plain or getattr(self.transport, "writes_at_once", False)
        super().connectionMade()

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self._requests = []
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        outbox = self._outbox
        outbox.reading = True
        try:
            super().dataReceived(data)
        finally:
            outbox.reading = False
            outbox.flush()

    def _streak(self, streak: Streak) -> bytes:
        """Pass on answers of one shape."""
        if self._awaited.answered_together(streak):
            return b""
        for index in range(len(streak)):
            try:
                command = streak.plain(index)
            except CommandError as damage:
                self._damaged(damage)
                break
            self._answer(command)
        return b""

    def takes(self, count: int) -> bool:
        """Return whether that many requests may be sent now."""
        return self.connected_now and len(self._awaited.requests) + count <= self._traffic.max_awaited

    def send_together(self, asker: Asker, requests: list[tuple[Callable[[int], bytes], float, Any]]) -> None:
        """Send requests that the connection `takes` in one write; see AwaitedAnswers.expect_together."""
        frames = self._awaited.expect_together(asker, requests, self.address)
        write_promptly(self.transport, b"".join(frames))

    def holds(self, data: bytes) -> bool:
        held = self._requests
        if not self._may_hold or (not held and len(self._awaited.requests) < 2 and not self._outbox.reading):
            return False
        held.append(data)
        if len(held) == 1:
            self._outbox.add(self)
        elif len(held) == REQUESTS_TOGETHER:
            self.flush()
        return True

    def late(self, sent_at: float) -> None:
        """Close the connection if nothing has come from the peer since then: it may be gone without a sign. The next
        request reconnects.

        (Apache's client closes after each answer that does not come, clientCloseSocketIfTimeout.)
        """
        if self.connected_now and not self._incomplete and self.last_active <= sent_at + _SAME_MOMENT_SECONDS:
            self.log.warn("nothing received, connection closed: peer={peer}", peer=self.address)
            self.abort()

    def flush(self) -> None:
        """Write the held requests."""
        held, self._requests = self._requests, []
        if held and self.connected_now:
            write_promptly(self.transport, held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        self.flush()
        super().close()

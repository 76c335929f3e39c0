"""Defines the interface of a channel: what a processor uses of the peer whose request it answers.

`SocketChannel` is a remoting connection. A gRPC client is a channel too, though it has no connection of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Protocol, TypeAlias

import attrs
from twisted.internet import defer

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.shapes import Shapes, Streak

Ready: TypeAlias = RemotingCommand | bytes | None
"""A command, an encoded frame, or None for no answer."""
Later: TypeAlias = (
    defer.Deferred[RemotingCommand] | defer.Deferred[bytes] | defer.Deferred[None] | defer.Deferred[Ready]
)
Answer: TypeAlias = Ready | Later

Request: TypeAlias = RemotingCommand | Callable[[int], bytes]
"""A command, or a function that returns the frame of one for its opaque."""
Invoke: TypeAlias = Callable[[str, RemotingCommand, float], defer.Deferred[RemotingCommand]]
"""Asks the peer at an address, and waits so many seconds for the answer, as RemotingClient.invoke does."""


class Channel(Protocol):
    """A peer. Two channels are equal only if they are the same object."""

    connected_now: bool
    account: str | None
    """The account whose share of the budgets the peer uses; None if no signed request was allowed yet."""

    def __hash__(self) -> int: ...

    @property
    def remote_address(self) -> tuple[str, int]:
        """Return the peer's host and port."""

    @property
    def address(self) -> str:
        """Return the peer's address as host:port."""

    @property
    def packed_address(self) -> bytes:
        """Return the peer's address as records hold it."""

    @property
    def share_address(self) -> str:
        """Return the address, or the account, whose share of the budgets the peer uses, see `remoting.shares`."""

    def proven(self, account: str) -> None:
        """Record that a signed request of an account was allowed."""

    @property
    def last_active(self) -> float:
        """Return the time of the last read in seconds of the clock."""

    @property
    def takes_requests(self) -> bool:
        """Return whether the peer takes a request now."""

    def remember(self, name: Hashable, size: int) -> None:
        """Set the size in bytes of what is remembered under a name until the peer goes; 0 forgets it.

        Raises BrokerError if that is too much.
        """

    def send_request(self, request: Request, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        """Send a request and return its answer. Fails with RemotingError."""

    def send_one_way(self, command: RemotingCommand) -> None:
        """Send a command that has no answer. It may be dropped."""

    def close(self) -> None:
        """Disconnect the peer after what was written has left."""

    def abort(self) -> None:
        """Disconnect the peer at once."""


Processor: TypeAlias = Callable[[Channel, RemotingCommand], Answer]


Take: TypeAlias = Callable[[Channel, Streak, int], tuple[int, bytes | defer.Deferred[bytes]]]
"""Processes the requests of a streak from one on, up to the first that needs the processor of its code.

Returns how many were processed, and the frames of their answers, in order and in one piece.
"""


@attrs.frozen(eq=False)
class StreakProcessors:
    """Process requests that have shapes, many at a time, by the code of the requests."""

    shapes: Shapes
    takes: Mapping[int, Take]

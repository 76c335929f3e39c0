"""Defines the errors between two processes, apart from a peer's error answers (`twisted_mq.protocol.errors.BrokerError`)."""

from __future__ import annotations

from twisted_mq.protocol.errors import RocketMQError


class RemotingError(RocketMQError):
    """Base class of transport failures; the text names the address."""


class RemotingConnectError(RemotingError):
    """Raised when no connection could be made (Apache: RemotingConnectException)."""


class RemotingSendError(RemotingError):
    """Raised when the connection was lost before the answer came (Apache: RemotingSendRequestException)."""


class RemotingTimeoutError(RemotingError):
    """Raised when no answer came within the given time (Apache: RemotingTimeoutException)."""


class RemotingTooMuchRequestError(RemotingError):
    """Raised when more requests wait for this peer than the limit allows (Apache: RemotingTooMuchRequestException)."""

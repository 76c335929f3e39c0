"""What can go wrong between two processes, apart from what a peer answers (that is `twisted_mq.protocol.errors.BrokerError`)."""

from __future__ import annotations

from twisted_mq.protocol.errors import RocketMQError


class RemotingError(RocketMQError):
    """Root of transport failures; the text names the address."""


class RemotingConnectError(RemotingError):
    """No connection could be made (Apache: RemotingConnectException)."""


class RemotingSendError(RemotingError):
    """The connection was lost before the answer came (Apache: RemotingSendRequestException)."""


class RemotingTimeoutError(RemotingError):
    """No answer within the time given (Apache: RemotingTimeoutException)."""


class RemotingTooMuchRequestError(RemotingError):
    """More requests wait for this peer than the limit allows (Apache: RemotingTooMuchRequestException)."""

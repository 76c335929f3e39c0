"""What can go wrong for a user of the client, each with the next step in its text.

All are RocketMQErrors. What a broker refuses is `twisted_mq.protocol.errors.BrokerError`, with the code and the remark as
they came; a lost connection or a missing answer is a `twisted_mq.remoting.errors.RemotingError`. Everything else is a
ClientError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.logger import LogLevel

from twisted_mq.client.core.refusals import described
from twisted_mq.protocol.errors import BrokerError, ProtocolError, RocketMQError
from twisted_mq.remoting.errors import RemotingConnectError, RemotingError, RemotingSendError
from twisted_mq.routing.errors import (
    AccessDenied,
    BrokerGone,
    ClientError,
    ClientOptionIllegal,
    NameServerUnreachable,
    NoRoute,
    TopicCreationRefused,
    TopicNotFound,
    TopicNotWritable,
)

__all__ = [
    "EXPECTED_ERRORS",
    "AccessDenied",
    "BrokerError",
    "BrokerGone",
    "ClientError",
    "ClientOptionIllegal",
    "ClientStateError",
    "ForkedProcess",
    "MessageIllegal",
    "NameServerUnreachable",
    "NoRoute",
    "RemotingError",
    "RequestTimeout",
    "RocketMQError",
    "SendFailed",
    "SendRefused",
    "TopicCreationRefused",
    "TopicNotFound",
    "TopicNotWritable",
]

EXPECTED_ERRORS = (ClientError, RemotingError, ProtocolError)
"""What a peer or the network can do to work in the background: logged in one line, and tried again where that helps."""


UNREACHED = (RemotingConnectError, RemotingSendError, BrokerGone, NameServerUnreachable)
"""A server is away. Its outage has a log line of its own, see outages.py."""


def level_of(error: Exception) -> Any:
    """Return the level of a log line about work in the background that failed and is tried again."""
    return LogLevel.debug if isinstance(error, UNREACHED) else LogLevel.warn


class ClientStateError(ClientError):
    """Used before start, after stop, or started twice; or two members of one group in one client."""


class ForkedProcess(ClientStateError):
    """The process was forked after the client was made: sockets and timers belong to the parent."""

    def __init__(self, made_in: int, used_in: int) -> None:
        super().__init__(
            f"this client was made in process {made_in} and is used in its fork {used_in}; "
            "make and start the client after the fork, in each process"
        )
        self.made_in = made_in
        self.used_in = used_in


class MessageIllegal(ClientError):
    """A message that no broker would take: nothing was sent."""


class RequestTimeout(ClientError):
    """A request was sent and nobody replied in time."""

    def __init__(self, topic: str, correlation_id: str, seconds: float) -> None:
        super().__init__(
            f"no reply to the request {correlation_id} to topic {topic} within {seconds:g} s. Does a consumer of that "
            "topic send reply_message(request, body)? A larger timeout_seconds waits longer"
        )
        self.topic = topic


class SendFailed(ClientError):
    """Every attempt failed; `__cause__` is the error of the last one."""

    def __init__(
        self,
        topic: str,
        brokers: Sequence[str],
        elapsed_seconds: float,
        last: BaseException,
        name_servers: Sequence[str] = (),
    ) -> None:
        super().__init__(
            f"sent {len(brokers)} times in {elapsed_seconds * 1000:.0f} ms and still failed, topic {topic}, "
            f"brokers tried: {', '.join(dict.fromkeys(brokers))}; last error: {described(last, topic, name_servers)}"
        )
        self.topic = topic
        self.brokers = tuple(brokers)
        self.__cause__ = last


class SendRefused(BrokerError):
    """A broker refuses the message, and no other broker would take it: nothing was stored."""

    def __init__(self, topic: str, broker: str, error: BrokerError, name_servers: Sequence[str]) -> None:
        super().__init__(error.response_code, error.remark, error.ext_fields)
        self.args = (f"broker {broker} refused a message of topic {topic}: {described(error, topic, name_servers)}",)
        self.topic = topic
        self.broker = broker

"""Errors that users of the client can get; each text says what to do next.

All are RocketMQErrors. A broker's refusal is `twisted_mq.protocol.errors.BrokerError`, with the code and remark of the
answer. A lost connection or a missing answer is a `twisted_mq.remoting.errors.RemotingError`. Everything else is a
ClientError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.logger import LogLevel

from twisted_mq.protocol.codes import ResponseCode
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
"""Errors of background work caused by a peer or the network: logged in one line, and retried if that helps."""


UNREACHED = (RemotingConnectError, RemotingSendError, BrokerGone, NameServerUnreachable)
"""Errors that mean that a server is away. Its outage has a log line of its own, see outages.py."""


def level_of(error: Exception) -> Any:
    """Return the log level for failed background work that is retried."""
    return LogLevel.debug if isinstance(error, UNREACHED) else LogLevel.warn


class ClientStateError(ClientError):
    """Raised when used before start, after stop, or started twice; or for two members of one group in one client."""


class ForkedProcess(ClientStateError):
    """Raised when the process was forked after the client was made: sockets and timers belong to the parent."""

    def __init__(self, made_in: int, used_in: int) -> None:
        super().__init__(
            f"this client was made in process {made_in} and is used in its fork {used_in}; "
            "create and start the client after the fork, in each process"
        )
        self.made_in = made_in
        self.used_in = used_in


class MessageIllegal(ClientError):
    """Raised for a message that no broker would accept: nothing was sent."""


class RequestTimeout(ClientError):
    """Raised when a request was sent, but no reply came in time."""

    def __init__(self, topic: str, correlation_id: str, seconds: float) -> None:
        super().__init__(
            f"no reply to the request {correlation_id} to topic {topic} within {seconds:g} s. Check that a consumer of that "
            "topic sends reply_message(request, body), or use a larger timeout_seconds"
        )
        self.topic = topic


class SendFailed(ClientError):
    """Raised when every attempt failed; `__cause__` is the error of the last one."""

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
    """Raised when a broker refuses the message, and no other broker would accept it: nothing was stored."""

    def __init__(self, topic: str, broker: str, error: BrokerError, name_servers: Sequence[str]) -> None:
        super().__init__(error.response_code, error.remark, error.ext_fields)
        self.args = (f"broker {broker} refused a message of topic {topic}: {described(error, topic, name_servers)}",)
        self.topic = topic
        self.broker = broker


NEXT_STEPS: dict[int, str] = {
    ResponseCode.TOPIC_NOT_EXIST: ("Create the topic: mqadmin updateTopic -n {servers} -c DefaultCluster -t {topic}"),
    ResponseCode.NO_PERMISSION: (
        "Check the permission of broker and topic: mqadmin topicRoute -n {servers} -t {topic}. If the cluster has accounts, "
        "check the rights of yours"
    ),
    ResponseCode.MESSAGE_ILLEGAL: (
        "Check the broker's limits (maxMessageSize): mqadmin getBrokerConfig -n {servers} -c DefaultCluster"
    ),
    ResponseCode.SYSTEM_BUSY: "Check the load of the broker: mqadmin brokerStatus -n {servers} -c DefaultCluster",
    ResponseCode.SERVICE_NOT_AVAILABLE: (
        "Check the disk and the role of the broker: mqadmin brokerStatus -n {servers} -c DefaultCluster"
    ),
    ResponseCode.FLOW_CONTROL: "Check the load of the broker: mqadmin brokerStatus -n {servers} -c DefaultCluster",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: (
        "Create the group: mqadmin updateSubGroup -n {servers} -c DefaultCluster -g GROUP"
    ),
}
"""Response code -> next step; `servers` and `topic` are filled in."""


def code_name(code: int) -> str:
    """Return the code's name (SYSTEM_BUSY for 2), or the number if it has no name."""
    return ResponseCode(code).name if code in ResponseCode.__members__.values() else str(code)


def described(error: BaseException, topic: str, name_servers: Sequence[str]) -> str:
    """Describe a refusal in one or two sentences; return the text of any other error."""
    if not isinstance(error, BrokerError):
        return str(error)
    code = int(error.response_code)
    text = f"{code_name(code)} ({code}): {error.remark}"
    step = NEXT_STEPS.get(code)
    return text if step is None else f"{text.rstrip('.')}. {step.format(servers=';'.join(name_servers), topic=topic)}"

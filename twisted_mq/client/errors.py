"""What can go wrong for a user of the client, each with the next step in its text.

What a broker refuses is `protocol.errors.BrokerError`; a lost connection or a missing answer is a
`twisted_mq.remoting.errors.RemotingError`. Everything else is a ClientError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protocol.errors import BrokerError
from twisted_mq.remoting.errors import RemotingError

__all__ = [
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
    "SendFailed",
    "TopicNotFound",
    "TopicNotWritable",
]


class ClientError(Exception):
    """Root of the client's own errors (Apache: MQClientException)."""


class ClientStateError(ClientError):
    """Used before start, after stop, or started twice; or two members of one group in one client."""


class ClientOptionIllegal(ClientError, ValueError):
    """A group, topic, address or option of a value that cannot work; the text names it."""


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


class NoRoute(ClientError):
    """There is no way to a queue of the topic; the subclass says why (Apache has one text for all causes)."""


class NameServerUnreachable(NoRoute):
    """No name server answered; `failures` has the reason for each address."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{address}: {reason}" for address, reason in failures.items())
        super().__init__(
            f"no name server answers ({reasons}). Is one running there? Start it (mq up, or twistd mqnamesrv), "
            "or correct the namesrv argument"
        )
        self.failures = dict(failures)


class TopicNotFound(NoRoute):
    """The name servers answer, and do not know the topic."""

    def __init__(self, topic: str, name_servers: Sequence[str], *, creatable: bool = True) -> None:
        """`creatable` False: no broker there would create it on the first send."""
        servers = ";".join(name_servers)
        cause = "yet (its first message may create it)" if creatable else "and no broker there creates topics by itself"
        super().__init__(
            f"topic {topic} does not exist on name server {servers} {cause}. "
            f"See what exists: mqadmin topicList -n {servers}. "
            f"Create it: mqadmin updateTopic -n {servers} -c DefaultCluster -t {topic}"
        )
        self.topic = topic


class TopicNotWritable(NoRoute):
    """The topic has a route without a queue that takes messages: no write permission, or its master is down."""

    def __init__(self, topic: str, name_servers: Sequence[str]) -> None:
        servers = ";".join(name_servers)
        super().__init__(
            f"topic {topic} has no queue to send to: its permission excludes writing, or no master of its brokers is "
            f"up. Look at it: mqadmin topicRoute -n {servers} -t {topic}"
        )
        self.topic = topic


class BrokerGone(NoRoute):
    """A queue's broker is not among the registered ones (any more)."""

    def __init__(self, broker_name: str, name_servers: Sequence[str]) -> None:
        servers = ";".join(name_servers)
        super().__init__(
            f"broker {broker_name} has no master registered with name server {servers}. "
            f"See which brokers are: mqadmin clusterList -n {servers}"
        )
        self.broker_name = broker_name


class SendFailed(ClientError):
    """Every attempt failed; `__cause__` is the error of the last one."""

    def __init__(self, topic: str, brokers: Sequence[str], elapsed_seconds: float, last: BaseException) -> None:
        super().__init__(
            f"sent {len(brokers)} times in {elapsed_seconds * 1000:.0f} ms and still failed, topic {topic}, "
            f"brokers tried: {', '.join(brokers)}; last error: {last}"
        )
        self.topic = topic
        self.brokers = tuple(brokers)
        self.__cause__ = last

"""Why there is no way to a queue, each with the next step in its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ClientError(Exception):
    """Root of the client's own errors (Apache: MQClientException)."""


class ClientOptionIllegal(ClientError, ValueError):
    """A group, topic, address or option of a value that cannot work; the text names it."""


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

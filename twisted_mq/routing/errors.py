"""Errors of finding a queue's broker; each text says what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted_mq.protocol.errors import RocketMQError


class ClientError(RocketMQError):
    """Root of the client's own errors (Apache: MQClientException)."""


class ClientOptionIllegal(ClientError, ValueError):
    """Raised for a group, topic, address or option whose value cannot work; the text names it."""


class NoRoute(ClientError):
    """No queue of the topic can be reached; the subclass says why (Apache has one text for all causes)."""


class NameServerUnreachable(NoRoute):
    """No name server answered; `failures` has the reason for each address."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{address}: {reason}" for address, reason in failures.items())
        super().__init__(
            f"no name server answers ({reasons}). Start one (mq up, or twistd mqnamesrv), or correct the namesrv argument"
        )
        self.failures = dict(failures)


class TopicNotFound(NoRoute):
    """The name servers answer, but do not know the topic."""

    def __init__(
        self, topic: str, name_servers: Sequence[str], cause: str = "yet (its first message may create it)"
    ) -> None:
        """`cause` ends the sentence that says that the topic does not exist."""
        servers = ";".join(name_servers)
        super().__init__(
            f"topic {topic} does not exist on name server {servers} {cause}. "
            f"List topics: mqadmin topicList -n {servers}. "
            f"Create it: mqadmin updateTopic -n {servers} -c DefaultCluster -t {topic}"
        )
        self.topic = topic


class TopicCreationRefused(TopicNotFound):
    """The topic does not exist, and no broker creates it on its first message (autoCreateTopicEnable=false)."""

    def __init__(self, topic: str, name_servers: Sequence[str], remark: str = "") -> None:
        """`remark` is the broker's, if one was asked."""
        said = f" ({remark})" if remark else ""
        super().__init__(topic, name_servers, f"and no broker there creates topics automatically{said}")


class TopicNotWritable(NoRoute):
    """The topic has queues, but none of them has the permission to write."""

    def __init__(self, topic: str, name_servers: Sequence[str]) -> None:
        servers = ";".join(name_servers)
        super().__init__(
            f"topic {topic} has no queue to send to: its permission excludes writing. "
            f"Check it: mqadmin topicRoute -n {servers} -t {topic}. "
            f"Allow writing: mqadmin updateTopicPerm -n {servers} -c DefaultCluster -t {topic} -p 6"
        )
        self.topic = topic


class AccessDenied(NoRoute):
    """The name servers check accounts, and this account may not read the topic's route; `remark` is their answer."""

    def __init__(self, topic: str, name_servers: Sequence[str], remark: str) -> None:
        super().__init__(
            f"name server {';'.join(name_servers)} denied access to topic {topic}: {remark}. "
            "Check the client's access key and secret key, and the rights of the account"
        )
        self.topic = topic
        self.remark = remark


class BrokerGone(NoRoute):
    """A queue's broker is not registered (any more), or has no registered master."""

    def __init__(self, broker_name: str, name_servers: Sequence[str]) -> None:
        servers = ";".join(name_servers)
        super().__init__(
            f"broker {broker_name} has no master registered with name server {servers}. "
            f"List brokers: mqadmin clusterList -n {servers}"
        )
        self.broker_name = broker_name

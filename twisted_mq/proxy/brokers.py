"""What the proxy needs of brokers: one interface, for the broker of its own process and for a cluster over the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer

from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicRouteData
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.proxy.clients import GrpcClient

CALL_SECONDS = 2.0
"""How long a broker has for a request that does not wait (Apache's proxy: 2 s)."""


class Brokers(Protocol):
    """The brokers behind the proxy."""

    def route(self, topic: str) -> defer.Deferred[TopicRouteData]:
        """Which brokers have which queues. Fails with TopicNotFound."""

    def endpoint_of(self, broker_name: str, address: str) -> tuple[str, int] | None:
        """Host and port where clients reach a broker by gRPC; None where it is where they found this proxy."""

    def message_type(self, topic: str) -> defer.Deferred[str]:
        """The topic's attribute message.type; NORMAL without one."""

    def group(self, group: str, topic: str) -> defer.Deferred[SubscriptionGroupConfig | None]:
        """A consumer group's configuration, from a broker of the topic; None where there is none."""

    def ask(
        self,
        client: GrpcClient,
        broker_name: str,
        command: RemotingCommand,
        seconds: float = CALL_SECONDS,
        unwanted: Callable[[RemotingCommand], None] | None = None,
    ) -> defer.Deferred[RemotingCommand]:
        """A broker's answer. Fails with RocketMQError; a refusal is an answer too.

        `unwanted` is given the answer that comes after the Deferred was cancelled, where it cannot be prevented.
        """

    def register(self, client: GrpcClient) -> defer.Deferred[None]:
        """A client's heartbeat. Fails with BrokerError for an expression that cannot be read."""

    def unregister(self, client: GrpcClient) -> None:
        """A client is gone."""

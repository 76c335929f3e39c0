"""Defines the interface to the brokers that a proxy serves: the broker of its own process, or a cluster over the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from twisted.internet import defer

from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicRouteData
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.rights import WantedRights

CALL_SECONDS = 2.0
"""The time limit of a broker for a request that does not wait (Apache's proxy: 2 s)."""


class PlainColumns(NamedTuple):
    """Plain messages of one topic, one in each place of every column.

    `properties` are records' texts, each with UNIQ_KEY. `tags` are empty for messages without. Bodies are not empty.
    """

    topic: str
    queue_ids: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes]
    tags: Sequence[str]
    born_timestamps: Sequence[int]


class PlainPop(NamedTuple):
    """An unordered pop of one queue by a group. `topic` may be the group's retry topic. Times are in ms."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int


class OwnBroker(Protocol):
    """The broker of this process: what it does at once. Rights are not checked here."""

    def dispatch(self) -> None:
        """Make visible what calls appended: it is visible before their clients have their answers."""

    def queue_ids_now(self, topic: str) -> Sequence[int]:
        """Return this broker's writable queues of a topic, if that is known now; otherwise none."""

    def type_now(self, topic: str) -> str:
        """Return the topic's attribute message.type; NORMAL without one."""

    def put_plain(self, client: GrpcClient, columns: PlainColumns) -> Sequence[int]:
        """Store the first messages, up to one that needs a request. Return the queue offset of each that was stored."""

    def may_ack(self, topic: str, receipt: Receipt) -> bool:
        """Return whether `ack_plain` takes a message of this topic, which may be a retry topic."""

    def ack_plain(self, pop: PlainPop, queue_offsets: Sequence[int]) -> Mapping[int, str]:
        """Acknowledge messages of one pop, each of which `may_ack` allows. Return the reasons why they are refused by queue
        offset; nothing if they are acknowledged.
        """


class Brokers(Protocol):
    """The brokers that a proxy serves."""

    own: OwnBroker | None
    """None if brokers are asked over the network."""

    def route(self, topic: str) -> defer.Deferred[TopicRouteData]:
        """Return the brokers of a topic and their queues. Fails with TopicNotFound."""

    def serves(self, broker_name: str) -> bool:
        """Return whether requests to this broker are sent. A broker serves only itself, although routes have all brokers."""

    def endpoint_of(self, broker_name: str, address: str) -> tuple[str, int] | None:
        """Return host and port where clients reach a broker by gRPC; None if clients use the address of this proxy."""

    def message_type(self, topic: str) -> defer.Deferred[str]:
        """Return the topic's attribute message.type; NORMAL without one."""

    def group(self, group: str, topic: str) -> defer.Deferred[SubscriptionGroupConfig | None]:
        """Return a consumer group's configuration from a broker of the topic, or None."""

    def ask(
        self,
        client: GrpcClient,
        broker_name: str,
        command: RemotingCommand,
        seconds: float = CALL_SECONDS,
        unwanted: Callable[[RemotingCommand], None] | None = None,
    ) -> defer.Deferred[RemotingCommand]:
        """Send a request to a broker and return its answer. Fails with RocketMQError. A refusal is an answer too.

        `unwanted` is called with an answer that comes after the Deferred was cancelled, if it cannot be prevented.
        """

    def permit(self, client: GrpcClient, wanted: Sequence[WantedRights]) -> defer.Deferred[None]:
        """Fail with ProxyError unless the client's user has these rights. All are given if users are not checked."""

    def register(self, client: GrpcClient) -> defer.Deferred[None]:
        """Register a client at its heartbeat.

        Fails with BrokerError for an expression that cannot be read, with ProxyError without the rights that its settings need.
        """

    def unregister(self, client: GrpcClient) -> None:
        """Unregister a client that is gone."""

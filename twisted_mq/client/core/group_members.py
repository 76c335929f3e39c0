"""Interfaces of the producers and consumers that share a client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from twisted_mq.protocol.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerData,
    ConsumerRunningInfo,
    MessageQueue,
    TopicRouteData,
)
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.command import RemotingCommand


class Member(Protocol):
    """A producer or a consumer: one group in one client."""

    @property
    def group(self) -> str: ...

    def topics(self) -> Iterable[str]:
        """Return the topics whose routes the client keeps up to date for it."""

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Handle a route that is new or has changed."""


@runtime_checkable
class TransactionMember(Member, Protocol):
    """A producer that brokers ask about its transactions."""

    async def check_transaction(
        self, header: CheckTransactionStateRequestHeader, message: MessageExt
    ) -> RemotingCommand:
        """Return the request that informs the broker of the transaction's state."""


class ConsumerMember(Member, Protocol):
    """A consumer, which also sends heartbeats to brokers and answers their requests."""

    def consumer_data(self) -> ConsumerData:
        """Return its part of a heartbeat."""

    def members_changed(self) -> None:
        """Handle a broker's notice that the group's members have changed."""

    async def persist_offsets(self) -> None:
        """Write the consumed offsets to their store."""

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Continue from these offsets (requested by an administrator)."""

    def consumed_offsets(self, topic: str) -> dict[MessageQueue, int]:
        """Return its position in each of its queues."""

    def running_info(self) -> ConsumerRunningInfo:
        """Return its status for an administrator."""

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        """Call the listener with one message now, whichever consumer has its queue."""

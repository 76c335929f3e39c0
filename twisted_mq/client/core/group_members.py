"""What a shared client needs of the producers and consumers that use it."""

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
        """Whose routes are kept up to date for it."""

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """A route is new or other than before."""


@runtime_checkable
class TransactionMember(Member, Protocol):
    """A producer that brokers ask about its transactions."""

    async def check_transaction(
        self, header: CheckTransactionStateRequestHeader, message: MessageExt
    ) -> RemotingCommand:
        """The request that tells the broker what became of a message."""


class ConsumerMember(Member, Protocol):
    """A consumer also shows itself to brokers and is asked by them."""

    def consumer_data(self) -> ConsumerData:
        """What heartbeats say of it."""

    def members_changed(self) -> None:
        """A broker says that the group has other members now."""

    async def persist_offsets(self) -> None:
        """Bring the consumed offsets to their store."""

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on from these offsets (an administrator wishes so)."""

    def consumed_offsets(self, topic: str) -> dict[MessageQueue, int]:
        """Where it stands in each of its queues."""

    def running_info(self) -> ConsumerRunningInfo:
        """What an administrator is shown of it."""

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        """Hand one message to the listener now, whoever has its queue."""

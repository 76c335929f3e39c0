"""The interfaces through which a broker serves strictly ordered topics. Without a coordinator they refuse.

`ordering.agent` adds the parts that need a coordinator, once the broker has a coordinator and an ordered topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import attrs

from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.order_mark import ORDER_TERM
from twisted_mq.remoting.channel import Answer
from twisted_mq.storage.interfaces import GetResult, InnerBatch, InnerMessage, PutResult
from twisted_mq.storage.retention import Needed

MOST_DIGITS = 18
"""The limit of an epoch's number in decimal digits."""

Sent = Callable[[PutResult, int], bytes]
"""Makes the answer to a send from the place of its message and the code that says how durable it is."""


class OrderedSends(Protocol):
    """Takes sends of ordered topics."""

    def take(self, mode: str, message: InnerMessage, put: Callable[[InnerMessage], PutResult], sent: Sent) -> Answer:
        """Put a message if this broker may. The answer follows when both brokers hold it. Raises BrokerError."""

    def take_batch(self, mode: str, batch: InnerBatch, put: Callable[[InnerBatch], PutResult], sent: Sent) -> Answer:
        """Like `take`, for a batch of a plain producer to a topic whose queues move as one."""


class OrderedReads(Protocol):
    """Hands out messages of ordered topics."""

    def read(
        self, config: TopicConfig, queue_id: int, offset: int, consumer_group: str, read: Callable[[], GetResult]
    ) -> GetResult:
        """Return the part of what `read` finds that may be handed out. Raises BrokerError for a topic that is not declared."""

    def begin(self, config: TopicConfig, queue_id: int) -> int:
        """Return the offset at which a consumer group without a committed offset begins."""

    def committed(self, config: TopicConfig, queue_id: int, consumer_group: str, offset: int, epoch: int | None) -> int:
        """Count a group that commits an offset from now on, and return the offset to record.

        The offset is not before `begin`. If the consumer gives the epoch of the messages that it consumed, the commit does
        not cover messages of a later epoch.
        """


class OrderedRoutes(Protocol):
    """The topics whose queues move as one, as they are registered at name servers."""

    version: int
    """The number of changes so far."""
    acting: bool
    """True if this is a slave that replaces a lost master."""

    def shown(self, configs: list[TopicConfig]) -> list[TopicConfig]:
        """Return the topics with their permissions at this broker."""


class OrderedNeeds(Protocol):
    """Knows which messages of ordered topics must be kept."""

    async def find(self) -> list[Needed]:
        """Return the first message of each ordered queue that a consumer group still needs."""


@attrs.define(eq=False)
class Ordering:
    """The parts of a broker for ordered topics, as soon as it has them."""

    with_coordinator: bool = False
    parts: OrderedParts | None = None

    async def needed(self) -> list[Needed]:
        """Return the messages that retention must keep for consumers of ordered topics."""
        return [] if self.parts is None else await self.parts.needs.find()

    @property
    def routes(self) -> OrderedRoutes | None:
        """Return the routes for name servers; None if the topics' configurations are used."""
        return None if self.parts is None else self.parts.routes

    def noted(
        self, config: TopicConfig, queue_id: int, consumer_group: str, offset: int, fields: Mapping[str, str]
    ) -> int:
        """Return the offset to record when a group commits one. For ordered topics see OrderedReads. Raises BrokerError.

        `fields` are all fields of the request.
        """
        if not config.attributes or config.order_mode is None:
            return offset
        text = fields.get(ORDER_TERM)
        if text is not None and not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER, f"{ORDER_TERM} must be the number of an epoch, got {text!r}"
            )
        epoch = None if text is None else int(text)
        return self.asked(config.topic_name).reads.committed(config, queue_id, consumer_group, offset, epoch)

    def asked(self, topic: str) -> OrderedParts:
        """Return the parts that decide about a topic. Raises BrokerError if the broker does not have them."""
        if self.parts is not None:
            return self.parts
        what = "it has not reached its coordinator yet" if self.with_coordinator else "set its key orderCoordinator"
        raise BrokerError(
            ResponseCode.NO_PERMISSION, f"topic {topic} is ordered, and this broker can't keep order: {what}"
        )


@attrs.frozen
class OrderedParts:
    """The parts of a broker that has a coordinator."""

    sends: OrderedSends
    reads: OrderedReads
    routes: OrderedRoutes
    needs: OrderedNeeds

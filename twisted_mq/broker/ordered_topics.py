"""What a broker asks about strictly ordered topics. Without a coordinator the answer is always no.

The parts that need a coordinator are put in by `ordering.agent`, once the broker has one and an ordered topic.
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
"""Of an epoch."""

Sent = Callable[[PutResult, int], bytes]
"""The answer to a send, of where it is and the code of how durable."""


class OrderedSends(Protocol):
    """Takes sends of ordered topics."""

    def take(self, mode: str, message: InnerMessage, put: Callable[[InnerMessage], PutResult], sent: Sent) -> Answer:
        """Put a message if this broker may; the answer follows when both brokers hold it. Raises BrokerError."""

    def take_batch(self, mode: str, batch: InnerBatch, put: Callable[[InnerBatch], PutResult], sent: Sent) -> Answer:
        """The same for a batch of a plain producer, to a topic whose queues move as one."""


class OrderedReads(Protocol):
    """Hands out messages of ordered topics."""

    def read(
        self, config: TopicConfig, queue_id: int, offset: int, consumer_group: str, read: Callable[[], GetResult]
    ) -> GetResult:
        """What may be handed out of what `read` finds at the offset. Raises BrokerError for a topic that is not declared."""

    def begin(self, config: TopicConfig, queue_id: int) -> int:
        """The offset of the first message that a group without an offset is to be handed."""

    def committed(self, config: TopicConfig, queue_id: int, consumer_group: str, offset: int, epoch: int | None) -> int:
        """A group committed an offset: from now on the group counts. What is to be noted: nothing before `begin`, and of a
        consumer that says in which epoch the messages were which it consumed, nothing of a later epoch.
        """


class OrderedRoutes(Protocol):
    """What name servers are told of topics whose queues move as one."""

    version: int
    """Counts the changes."""
    acting: bool
    """Whether this is a slave that stands in for a lost master."""

    def shown(self, configs: list[TopicConfig]) -> list[TopicConfig]:
        """The topics with their permissions at this broker."""


class OrderedNeeds(Protocol):
    """Knows which messages of ordered topics must stay."""

    async def find(self) -> list[Needed]:
        """The first message of each ordered queue that a consumer group still needs."""


@attrs.define(eq=False)
class Ordering:
    """The parts of one broker, as soon as it has them."""

    with_coordinator: bool = False
    parts: OrderedParts | None = None

    async def needed(self) -> list[Needed]:
        """What retention must keep for consumers of ordered topics."""
        return [] if self.parts is None else await self.parts.needs.find()

    @property
    def routes(self) -> OrderedRoutes | None:
        """What name servers are told; None for what the topics' configurations say."""
        return None if self.parts is None else self.parts.routes

    def noted(
        self, config: TopicConfig, queue_id: int, consumer_group: str, offset: int, fields: Mapping[str, str]
    ) -> int:
        """What is noted of an offset that a group commits: of an ordered topic see OrderedReads. Raises BrokerError.

        `fields` are all those of the request.
        """
        if not config.attributes or config.order_mode is None:
            return offset
        text = fields.get(ORDER_TERM)
        if text is not None and not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"{ORDER_TERM} is the number of an epoch, got {text!r}")
        epoch = None if text is None else int(text)
        return self.asked(config.topic_name).reads.committed(config, queue_id, consumer_group, offset, epoch)

    def asked(self, topic: str) -> OrderedParts:
        """Who decides. Raises BrokerError where nobody can."""
        if self.parts is not None:
            return self.parts
        what = "it has not reached its coordinator yet" if self.with_coordinator else "set its key orderCoordinator"
        raise BrokerError(
            ResponseCode.NO_PERMISSION, f"topic {topic} is ordered, and this broker can't keep order: {what}"
        )


@attrs.frozen
class OrderedParts:
    """Those of a broker with a coordinator."""

    sends: OrderedSends
    reads: OrderedReads
    routes: OrderedRoutes
    needs: OrderedNeeds

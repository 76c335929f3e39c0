"""Acknowledges popped messages that this process's own proxy has read: those of one pop in one record of the revive log.

Acknowledgements that it does not take go to the processor of acknowledgements as requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import attrs

from twisted_mq.broker.pop.acknowledge import not_stored
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.pop_service import PopService
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.protocol.bodies import AckMsg, BatchAckMsg
from twisted_mq.protocol.codes import RequestCode, ResponseCode

_CODE = int(RequestCode.ACK_MESSAGE)
"""The request that each of these acknowledgements would be."""
NONE_REFUSED: Mapping[int, str] = MappingProxyType({})


class AckParts(PopParts, Protocol):
    """The parts of the broker that these acknowledgements use."""

    pop: PopService
    static_topics: StaticTopics


@attrs.frozen(eq=False)
class HandedAcks:
    """Takes acknowledgements of unordered pops. Nothing is taken while topics are static, or while answers wait for
    durability.
    """

    broker: AckParts

    def may_take(self, topic: str, queue_id: int, queue_offset: int, revive_queue_id: int) -> bool:
        """Return whether a request would be written to the revive log now. `topic` may be a retry topic."""
        broker, store = self.broker, self.broker.store
        config = broker.topics.get(topic)
        return (
            config is not None
            and 0 <= queue_id < config.read_queue_nums
            and 0 <= revive_queue_id < broker.options.revive_queue_num
            and not broker.static_topics.topics
            and not broker.durability.waits
            and store.min_offset_in_queue(topic, queue_id) <= queue_offset <= store.max_offset_in_queue(topic, queue_id)
        )

    def take(
        self,
        topic: str,
        group: str,
        queue_id: int,
        start_offset: int,
        pop_time: int,
        invisible_time: int,
        revive_queue_id: int,
        queue_offsets: Sequence[int],
    ) -> Mapping[int, str]:
        """Acknowledge messages of one pop, each of which `may_take` allows. Returns nothing, or the remark of the refusal of each
        by queue offset.
        """
        broker, count = self.broker, len(queue_offsets)
        times = broker.statistics.request_times
        began = 0.0 if times is None else times.seconds()
        popped = start_offset, group, topic, queue_id, pop_time, broker.options.broker_name
        ack = AckMsg(queue_offsets[0], *popped) if count == 1 else BatchAckMsg(-1, *popped, list(queue_offsets))
        refusal = broker.pop.acknowledgements.settle(ack, revive_queue_id, pop_time + invisible_time, *queue_offsets)
        if times is not None:
            times.note_together(_CODE, count, began, ResponseCode.SUCCESS if refusal is None else refusal.code)
        if refusal is None:
            return NONE_REFUSED
        return {one: not_stored(topic, queue_id, one).remark for one in queue_offsets}

"""Takes acknowledgements: writes them to the revive log or, for an ordered group, removes the messages from those that it holds.

Apache: AckMessageProcessor.appendAck, ackOrderly.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.pop.in_flight import InFlightMessages
from twisted_mq.broker.pop.order_info import NOT_POPPED
from twisted_mq.broker.pop.order_manager import ConsumerOrderManager
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.protocol.bodies import AckMsg
from twisted_mq.protocol.codes import ResponseCode


class Refusal(NamedTuple):
    """The reason why a message is not acknowledged."""

    code: int
    remark: str


def not_stored(topic: str, queue_id: int, *queue_offsets: int) -> Refusal:
    """Return the refusal of messages whose acknowledgement the store did not take. They come back unless they are acknowledged
    again.
    """
    offsets = ", ".join(map(str, queue_offsets))
    remark = f"the acknowledgement was not stored, acknowledge again: topic={topic} queue={queue_id} offset={offsets}"
    return Refusal(ResponseCode.SYSTEM_ERROR, remark)


@attrs.frozen
class Acknowledgements:
    """Takes the acknowledgements of one broker."""

    offsets: ConsumerOffsetManager
    statistics: BrokerStatistics
    revive_log: ReviveLog
    in_flight: InFlightMessages
    orders: ConsumerOrderManager

    def note(self, ack: AckMsg, revive_queue_id: int, revive_time: int, *queue_offsets: int) -> Refusal | None:
        """Write and count an acknowledgement of these messages. Returns why they are refused."""
        if not self.revive_log.put_ack(ack, revive_queue_id, revive_time):
            return not_stored(ack.topic or "", ack.queue_id, *queue_offsets)
        self.statistics.acks[f"{ack.topic}@{ack.consumer_group}"].add(len(queue_offsets), 0)
        return None

    def settle(self, ack: AckMsg, revive_queue_id: int, revive_time: int, *queue_offsets: int) -> Refusal | None:
        """Write and count an acknowledgement of messages that a client holds. Returns why they are refused."""
        refusal = self.note(ack, revive_queue_id, revive_time, *queue_offsets)
        if refusal is None:
            topic, group = ack.topic or "", ack.consumer_group or ""
            self.in_flight.settled(topic, group, ack.queue_id, ack.pop_time, len(queue_offsets))
        return refusal

    def take_in_order(
        self, client: str, place: tuple[str, str, int], queue_offset: int, pop_time: int
    ) -> Refusal | None:
        """Acknowledge a message of topic, group and queue. Returns why it is refused if it was not popped; ignores one
        before the committed offset.
        """
        topic, group, queue_id = place
        committed = self.offsets.query(group, topic, queue_id)
        if committed is not None and queue_offset < committed:
            return None
        next_offset = self.orders.commit(topic, group, queue_id, queue_offset, pop_time)
        if next_offset == NOT_POPPED:
            old = -1 if committed is None else committed
            remark = (
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{old}, commit:{queue_offset},"
                f" next:{next_offset}, /{client}"
            )
            return Refusal(ResponseCode.MESSAGE_ILLEGAL, remark)
        if next_offset >= 0 and not self.offsets.has_reset(group, topic, queue_id):
            self.offsets.commit(group, topic, queue_id, next_offset)
        self.in_flight.settled(topic, group, queue_id, pop_time, 1)
        return None

"""Acknowledgements: noted in the revive log, or of an ordered group taken out of what it holds.

Apache: AckMessageProcessor.appendAck, ackOrderly.
"""

from __future__ import annotations

from typing import Any

from twisted_mq.broker.pop.order_info import NOT_POPPED
from twisted_mq.protocol.bodies import AckMsg
from twisted_mq.remoting.channel import Channel


def acknowledge(broker: Any, ack: AckMsg, revive_queue_id: int, revive_time: int, messages: int) -> None:
    """Note and count an acknowledgement. What cannot be noted is logged, and its messages come back."""
    broker.statistics.acks[f"{ack.topic}@{ack.consumer_group}"].add(messages, 0)
    broker.pop.revive_log.put_ack(ack, revive_queue_id, revive_time)


def acknowledge_in_order(
    broker: Any, channel: Channel, place: tuple[str, str, int], queue_offset: int, pop_time: int
) -> str | None:
    """Acknowledge a message of topic, group and queue; why not, where it was not popped. One of the past is passed over."""
    topic, group, queue_id = place
    committed = broker.offsets.query(group, topic, queue_id)
    if committed is not None and queue_offset < committed:
        return None
    next_offset = broker.pop.orders.commit(topic, group, queue_id, queue_offset, pop_time)
    if next_offset == NOT_POPPED:
        old = -1 if committed is None else committed
        return (
            f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{old}, commit:{queue_offset},"
            f" next:{next_offset}, /{channel.address}"
        )
    if next_offset >= 0 and not broker.offsets.has_reset(group, topic, queue_id):
        broker.offsets.commit(group, topic, queue_id, next_offset)
    broker.pop.in_flight.settled(topic, group, queue_id, pop_time, 1)
    return None

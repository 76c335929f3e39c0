"""Writes check points and acknowledgements to the revive log (Apache: PopMessageProcessor.buildCkMsg, AckMessageProcessor).

They are messages of rmq_sys_REVIVE_LOG_<cluster> that wait in the timer until their messages may come back: an
acknowledgement until that time, a check point until one second before it. Later ones go into the log at once.
"""

from __future__ import annotations

from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.schedule.postpone import PostponeRefused
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import AckMsg, BatchAckMsg, PopCheckPoint, encode_body
from twisted_mq.protocol.bodies.pop import ACK_TAG, BATCH_ACK_TAG, CHECK_POINT_TAG
from twisted_mq.protocol.names.pop_topics import revive_topic
from twisted_mq.protocol.text.java import tags_code, utf8
from twisted_mq.protocol.text.properties import (
    PROPERTY_TAGS,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    encode_properties,
)
from twisted_mq.storage.interfaces import InnerMessage, PutStatus

ACK_INTERVAL_MS = 1000
"""A check point enters the log this long before its messages return (Apache: PopAckConstants.ackTimeInterval)."""


class ReviveLog:
    """Writes the revive log of the broker's cluster; `topic` is its name."""

    log = Logger()

    def __init__(self, broker: PopParts) -> None:
        self._broker = broker
        self._born_host = broker.store_host
        self.topic = revive_topic(broker.options.broker_cluster_name)

    def put_check_point(self, point: PopCheckPoint, queue_id: int) -> bool:
        """Write a pop's check point; False if the store refuses it, so that the messages must not be handed out."""
        key = (point.topic, point.queue_id, point.start_offset, point.consumer_group, point.pop_time)
        return self._put(
            point, queue_id, CHECK_POINT_TAG, (*key, point.broker_name, CHECK_POINT_TAG),
            point.revive_time - ACK_INTERVAL_MS,
        )  # fmt: skip

    def put_ack(self, ack: AckMsg, queue_id: int, revive_time: int) -> bool:
        """Write an acknowledgement, of one message or several; False if the store refuses it."""
        tag = BATCH_ACK_TAG if isinstance(ack, BatchAckMsg) else ACK_TAG
        key = (ack.topic, ack.queue_id, ack.ack_offset, ack.consumer_group, ack.pop_time, ack.broker_name, ACK_TAG)
        return self._put(ack, queue_id, tag, key, revive_time)

    def _put(self, body: PopCheckPoint | AckMsg, queue_id: int, tag: str, key: tuple[object, ...], due_ms: int) -> bool:
        broker = self._broker
        properties = {
            PROPERTY_TAGS: tag,
            PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: "@".join(map(str, key)),
            PROPERTY_TIMER_DELIVER_MS: str(due_ms),
        }
        message = InnerMessage(
            self.topic,
            queue_id,
            encode_body(body, standard=True),
            utf8(encode_properties(properties)),
            properties,
            tags_code(tag),
            born_timestamp=broker.wall_ms(),
            born_host=self._born_host,
        )
        try:
            status = broker.store.put_message(broker.postponement.apply(message)).status.name
        except PostponeRefused as refused:
            status = refused.status
        if status != PutStatus.PUT_OK.name:
            self.log.error("revive log not written: queue={q} status={s} body={b}", q=queue_id, s=status, b=body)
        return status == PutStatus.PUT_OK.name

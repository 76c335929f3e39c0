"""Puts the messages that a check point has left into the group's retry topic (Apache: PopReviveService.reviveMsgFromCk)."""

from __future__ import annotations

from twisted_mq.broker.pop.in_flight import InFlightMessages
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.retried_record import revived
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import PopCheckPoint
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.names.pop_topics import pop_retry_topic
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.storage.interfaces import InnerMessage, PutStatus

AGAIN_SECONDS = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""The delays before a message that could not be revived is tried again, by the number of tries (Apache:
ckRewriteIntervalsInSeconds).
"""
UNREADABLE_TIMES = 127
RETRY_QUEUES = 1
_READ_BYTES = 1 << 20


class StoreTakesNothing(Exception):
    """Raised when a message could neither be revived nor written to the log again: its check point must stay."""


class Reviver:
    """Revives for one queue of the revive log."""

    log = Logger()

    def __init__(self, broker: PopParts, log: ReviveLog, in_flight: InFlightMessages, queue_id: int) -> None:
        self._broker = broker
        self._revive_log = log
        self._in_flight = in_flight
        self._queue_id = queue_id

    def revive(self, point: PopCheckPoint) -> int:
        """Revive messages and return their number. One that the store refuses gets a new check point.

        Finished messages are marked in the bit map, so that the rest can be tried again after StoreTakesNothing.
        """
        if point.broker_name != self._broker.options.broker_name:
            self.log.warn("check point of another broker skipped: queue={q} point={p}", q=self._queue_id, p=point)
            return 0
        count = 0
        for index in range(point.count):
            if not point.bit_map >> index & 1:
                count += self._revive_one(point, point.offset_of(index))
                point.bit_map |= 1 << index
        return count

    def _revive_one(self, point: PopCheckPoint, offset: int) -> bool:
        message = self._copy(point, offset)
        if message is None:
            return False
        if not self._put(message, point.consumer_group or "", point.topic or ""):
            self._put_again(point, offset)
            return False
        self._in_flight.settled(point.topic or "", point.consumer_group or "", point.queue_id, point.pop_time, 1)
        return True

    def _copy(self, point: PopCheckPoint, offset: int) -> InnerMessage | None:
        """Return the message for its retry topic; None if it is not in the store any more."""
        broker, topic = self._broker, point.topic or ""
        records = broker.store.get_message(topic, point.queue_id, offset, 1, _READ_BYTES, None).records
        retry_topic = topic
        if not topic.startswith(RETRY_PREFIX):
            retry_topic = pop_retry_topic(topic, point.consumer_group or "", broker.options.enable_retry_topic_v2)
        try:
            if records:
                return revived(records[0], retry_topic, point, broker.store_host)
        except RecordError as error:
            self.log.error("popped message cannot be read: topic={t} offset={o} error={e}", t=topic, o=offset, e=error)
            return None
        self.log.info(
            "popped message is no longer in the log: topic={t} queue={q} offset={o} group={g}",
            t=topic, q=point.queue_id, o=offset, g=point.consumer_group,
        )  # fmt: skip
        return None

    def _put(self, message: InnerMessage, group: str, origin: str) -> bool:
        broker, topic = self._broker, message.topic
        self._add_topic(topic, group)
        try:
            result = broker.store.put_message(broker.postponement.apply(message))
            status = result.status.name
        except BrokerError as refused:
            status = refused.remark
        broker.statistics.revived[group, origin, status] += 1
        if status != PutStatus.PUT_OK.name:
            self.log.error("popped message not revived: topic={t} group={g} status={s}", t=topic, g=group, s=status)
            return False
        broker.statistics.count_put(topic, 1, result.end_offset - result.physical_offset, queue_id=0)
        return True

    def _add_topic(self, topic: str, group: str) -> None:
        broker = self._broker
        if broker.topics.get(topic) is None:
            broker.topics.create_for_group(topic, RETRY_QUEUES)
            if broker.offsets.query(group, topic, 0) is None:
                broker.offsets.commit(group, topic, 0, 0)

    def _put_again(self, point: PopCheckPoint, offset: int) -> None:
        """Write a check point for one message, with a later time if its own is over. Raises StoreTakesNothing."""
        times = parse_int(point.times_put_again or "0")
        times = UNREADABLE_TIMES if times is None else times
        if times >= len(AGAIN_SECONDS) and self._broker.options.skip_when_ck_re_put_reach_max_times:
            self.log.error("popped message given up: offset={o} point={p}", o=offset, p=point)
            return
        late = point.revive_time <= self._broker.now_ms()
        wait_ms = AGAIN_SECONDS[min(times, len(AGAIN_SECONDS) - 1)] * 1000 if late else 0
        again = PopCheckPoint(
            start_offset=offset,
            pop_time=point.pop_time,
            invisible_time=point.invisible_time + wait_ms,
            count=1,
            queue_id=point.queue_id,
            topic=point.topic,
            consumer_group=point.consumer_group,
            offset_differences=[0],
            broker_name=point.broker_name,
            times_put_again=str(times + 1),
        )
        if not self._revive_log.put_check_point(again, self._queue_id):
            raise StoreTakesNothing

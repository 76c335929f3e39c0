"""Reads one queue of the revive log: matches check points with acknowledgements, and revives messages that were not acknowledged.

Apache: PopReviveService. A check point is settled two seconds after its revive time, so that its acknowledgements have
been read. The times of the log's own messages are the clock; if the log is silent and the timer has delivered all, the
real clock is. The offset of CID_RMQ_SYS_REVIVE_GROUP is where the settled check points end; a new start reads
everything from there again. Messages that no broker has written are skipped.
"""

from __future__ import annotations

from twisted_mq.broker.pop.credible import check_point_fault
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.revive_log import ACK_INTERVAL_MS
from twisted_mq.broker.pop.reviver import Reviver, StoreTakesNothing
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import AckMsg, BatchAckMsg, PopCheckPoint, decode_body
from twisted_mq.protocol.bodies.pop import ACK_TAG, BATCH_ACK_TAG, CHECK_POINT_TAG
from twisted_mq.protocol.errors import BodyError, RecordError
from twisted_mq.protocol.names.pop_topics import origin_topic
from twisted_mq.protocol.names.system_topics import REVIVE_GROUP
from twisted_mq.protocol.text.properties import PROPERTY_TAGS, PROPERTY_TIMER_DELIVER_MS
from twisted_mq.storage.interfaces import GetStatus

SECOND_MS = 1000
SILENCE_MS = 3 * SECOND_MS
"""This long after the log's last message, the real clock is used instead."""
MESSAGES_A_READ, MESSAGES_A_TURN = 32, 256
REVIVED_A_TURN = 256
_READ_BYTES = 1 << 20
CHECK_POINT, ACKNOWLEDGEMENT = "CK", "ACK"
"""Kinds of the log's messages (Apache: PopReviveMessageType)."""
_NOTHING_NEW = (GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.NO_MESSAGE_IN_QUEUE, GetStatus.NO_MATCHED_LOGIC_QUEUE)

MergeKey = tuple[str | None, str | None, int, int, int, str | None]


def merge_key(one: PopCheckPoint | AckMsg, broker_name: str | None) -> MergeKey:
    """Return the key that a check point and its acknowledgements share."""
    return one.topic, one.consumer_group, one.queue_id, one.start_offset, one.pop_time, broker_name


class ReviveQueue:
    """Revives one queue. `turn` is called repeatedly; it works each reviveInterval, less often while nothing is popped."""

    log = Logger()

    def __init__(self, broker: PopParts, topic: str, queue_id: int, reviver: Reviver) -> None:
        self._broker = broker
        self._topic = topic
        self._queue_id = queue_id
        self._reviver = reviver
        committed = broker.offsets.query(REVIVE_GROUP, topic, queue_id)
        self._next = 0 if committed is None else committed + 1
        self._pending: dict[MergeKey, PopCheckPoint] = {}
        self._delivered_ms = 0
        self._due_ms = 0
        self._rest = 0
        self._passed_over: list[str] = []

    @property
    def queue_id(self) -> int:
        """The queue id in the revive log."""
        return self._queue_id

    @property
    def messages_behind(self) -> int:
        """The number of messages in the log that were not read yet."""
        return max(0, self._broker.store.max_offset_in_queue(self._topic, self._queue_id) - self._next)

    @property
    def ms_behind(self) -> int:
        """The time that the first of these has been there; 0 if there are none."""
        if not self.messages_behind:
            return 0
        stored_ms = self._broker.store.store_timestamp(self._topic, self._queue_id, self._next)
        return max(0, self._broker.wall_ms() - stored_ms) if stored_ms > 0 else 0

    def turn(self) -> bool:
        """Read new messages and settle ripe check points; True if there is more to do at once."""
        broker, options = self._broker, self._broker.options
        now = broker.now_ms()
        if now < self._due_ms or not options.timer_wheel_enable:
            return False
        more = self._read()
        more |= self._settle(now, at_end=not more)
        self._tell_what_was_passed_over()
        if more:
            return True
        self._rest = 0 if self._pending else min(self._rest + 1, options.revive_max_slow)
        self._due_ms = now + (1 + self._rest) * options.revive_interval
        return False

    # reading

    def _read(self) -> bool:
        """Read the log's next messages; True if there may be more."""
        for _ in range(MESSAGES_A_TURN // MESSAGES_A_READ):
            result = self._broker.store.get_message(
                self._topic, self._queue_id, self._next, MESSAGES_A_READ, _READ_BYTES, None
            )
            if result.status is not GetStatus.FOUND:
                if result.status not in _NOTHING_NEW and result.next_begin_offset != self._next:
                    self.log.warn(
                        "revive log's offset corrected: queue={q} from={a} to={b} status={s}",
                        q=self._queue_id, a=self._next, b=result.next_begin_offset, s=result.status.name,
                    )  # fmt: skip
                    self._next = result.next_begin_offset
                return False
            self._broker.statistics.count_get(
                self._topic, REVIVE_GROUP, len(result.records), result.size_bytes, queue_id=self._queue_id
            )
            for record in result.records:
                self._take(record)
            self._next = result.next_begin_offset
        return True

    def _take(self, record: memoryview | bytes) -> None:
        try:
            message = StoredMessage.read(record)
            take = _TAKE.get(message.properties.get(PROPERTY_TAGS, ""))
            if take is not None:
                take(self, message)
        except (RecordError, BodyError) as error:
            self._passed_over.append(str(error))
            return
        if self._pending:
            due_ms = (message.number(PROPERTY_TIMER_DELIVER_MS) or 0) - self._set_by_ms(message)
            stored_ms = message.head.store_timestamp - self._broker.steps.ms()
            self._delivered_ms = max(self._delivered_ms, min(due_ms, stored_ms))

    def _set_by_ms(self, message: StoredMessage) -> int:
        """Return how far the time of day is ahead of the timers' clock, at least as far as a delivered message proves:
        its time is over.
        """
        due_ms = message.number(PROPERTY_TIMER_DELIVER_MS) or 0
        return max(self._broker.steps.ms(), due_ms - self._broker.now_ms())

    def _take_check_point(self, message: StoredMessage) -> None:
        point = decode_body(PopCheckPoint, message.body)
        if point.topic is None or point.consumer_group is None:
            return
        self._count(point.consumer_group, point.topic, CHECK_POINT)
        point.revive_offset = message.head.queue_offset
        point.revive_time = point.pop_time + point.invisible_time
        self._await(point, merge_key(point, point.broker_name), message)

    def _await(self, point: PopCheckPoint, key: MergeKey, message: StoredMessage) -> None:
        """Queue a check point until its time, after those before it in the log; skip one that no broker wrote.

        The time of one that waits is on the timers' clock.
        """
        fault = check_point_fault(
            point, message.head.store_timestamp, self._broker.options.timer_max_delay_sec * SECOND_MS
        )
        if fault is not None:
            self._passed_over.append(f"check point at {point.revive_offset}: {fault}")
            return
        point.revive_time -= self._set_by_ms(message)
        self._pending.pop(key, None)
        self._pending[key] = point

    def _tell_what_was_passed_over(self) -> None:
        """Log the skipped messages of one turn in one line."""
        passed_over, self._passed_over = self._passed_over, []
        if passed_over:
            self.log.error(
                "revive log's messages skipped: queue={q} count={n} first={e}",
                q=self._queue_id, n=len(passed_over), e=passed_over[0],
            )  # fmt: skip

    def _take_ack(self, message: StoredMessage) -> None:
        ack = decode_body(AckMsg, message.body)
        self._count(ack.consumer_group, ack.topic, ACKNOWLEDGEMENT)
        self._acknowledge(message, ack, [ack.ack_offset])

    def _take_batch_ack(self, message: StoredMessage) -> None:
        ack = decode_body(BatchAckMsg, message.body)
        self._count(ack.consumer_group, ack.topic, ACKNOWLEDGEMENT)
        self._acknowledge(message, ack, ack.ack_offsets)

    def _count(self, group: str | None, topic: str | None, kind: str) -> None:
        self._broker.statistics.revive_reads[group or "", topic or "", self._queue_id, kind] += 1

    def _acknowledge(self, message: StoredMessage, ack: AckMsg, offsets: list[int]) -> None:
        key = merge_key(ack, ack.broker_name or self._broker.options.broker_name)
        point = self._pending.get(key)
        if point is None:
            self._pass_over(message, ack, key)
            return
        indexes = [point.index_of(offset) for offset in offsets]
        for index in indexes:
            if index is not None:
                point.bit_map |= 1 << index
        if None in indexes:
            self._passed_over.append(f"acknowledgement at {message.head.queue_offset} of a message that was not popped")

    def _pass_over(self, message: StoredMessage, ack: AckMsg, key: MergeKey) -> None:
        """Skip an acknowledgement without a check point; a very late one advances the group's offset
        (enableSkipLongAwaitingAck).
        """
        options, now = self._broker.options, self._broker.now_ms()
        due_ms = message.number(PROPERTY_TIMER_DELIVER_MS) or 0
        if (
            options.enable_skip_long_awaiting_ack
            and now - due_ms + self._set_by_ms(message) > options.revive_ack_wait_ms
        ):
            late = PopCheckPoint(
                start_offset=ack.start_offset, pop_time=ack.pop_time, queue_id=ack.queue_id, topic=ack.topic,
                consumer_group=ack.consumer_group, revive_offset=message.head.queue_offset, broker_name=key[-1],
            )  # fmt: skip
            self._await(late, key, message)

    # settling

    def _settle(self, now: int, *, at_end: bool) -> bool:
        """Revive what ripe check points have left, in the log's order; True if there are more.

        A check point whose messages the store refuses waits for the next turn, and so do those after it.
        """
        end = self._end_ms(now) if at_end else self._delivered_ms
        settled = revived = 0
        for point in self._pending.values():
            if revived >= REVIVED_A_TURN or end - point.revive_time <= ACK_INTERVAL_MS + SECOND_MS:
                break
            try:
                revived += self._revive(point)
            except StoreTakesNothing:
                break
            settled += 1
            last = point.revive_offset
        for key in list(self._pending)[:settled]:
            del self._pending[key]
        if settled:
            self._broker.offsets.commit(REVIVE_GROUP, self._topic, self._queue_id, last)
        if not self._pending:
            self._delivered_ms = 0
        return revived >= REVIVED_A_TURN

    def _end_ms(self, now: int) -> int:
        """Return the time up to which the log is known: from its messages, or from the clock if no more can come."""
        delivered = self._delivered_ms
        if delivered and now - delivered > SILENCE_MS and self._broker.waiting.timer.has_caught_up():
            return now
        return delivered

    def _revive(self, point: PopCheckPoint) -> int:
        """Revive the messages of a check point and return their number; skip messages of a deleted topic or group."""
        broker, group = self._broker, point.consumer_group or ""
        if broker.topics.get(origin_topic(point.topic or "", group)) is None or group not in broker.groups.groups:
            self._passed_over.append(
                f"check point at {point.revive_offset}: no topic {point.topic!r} or group {group!r}"
            )
            return 0
        return self._reviver.revive(point)


_TAKE = {
    CHECK_POINT_TAG: ReviveQueue._take_check_point,
    ACK_TAG: ReviveQueue._take_ack,
    BATCH_ACK_TAG: ReviveQueue._take_batch_ack,
}

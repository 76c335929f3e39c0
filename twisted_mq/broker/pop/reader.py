"""Takes messages of a topic's queues for one pop, and records what it took (Apache: PopMessageProcessor.popMsgFromQueue)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

import attrs

from twisted_mq.broker.filter.selection import Selection
from twisted_mq.broker.pop.in_flight import InFlightMessages
from twisted_mq.broker.pop.offsets import init_offset
from twisted_mq.broker.pop.order_manager import ConsumerOrderManager
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.retried_record import with_receipt
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.broker.topics.topic_attributes import MESSAGE_TYPE, priority_factor
from twisted_mq.protocol.bodies import PopCheckPoint, TopicConfig
from twisted_mq.protocol.headers import PopMessageRequestHeader
from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.layouts.record import unpack_queue_offset
from twisted_mq.protocol.messages.message_type import PRIORITY
from twisted_mq.protocol.names.pop_receipt import message_offset_info, start_offset_info
from twisted_mq.protocol.names.pop_topics import ORDER_REVIVE_QUEUE, pop_retry_topic
from twisted_mq.storage.interfaces import GetResult, GetStatus
from twisted_mq.turns import Work

DEFAULT_MAX_BYTES = 2**31 - 1

_WRONG_OFFSET = (GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_OVERFLOW_BADLY, GetStatus.OFFSET_FOUND_NULL)
_PASSED_OVER = (
    GetStatus.NO_MATCHED_MESSAGE,
    GetStatus.OFFSET_FOUND_NULL,
    GetStatus.MESSAGE_WAS_REMOVING,
    GetStatus.NO_MATCHED_LOGIC_QUEUE,
)
PlacesOf = Callable[[str, int], Iterable[tuple[str, int]]]
"""Returns the queues of a topic, of which there are so many."""
SLICE_QUEUES = 512
"""Queues of a topic that are read in one turn of the reactor."""


@attrs.define
class Popped:
    """The result of one pop: records for the wire, the parts of its infos by queue, and how many messages are left."""

    pop_time: int
    revive_queue_id: int
    records: list[Buffer] = attrs.field(factory=list)
    rest: int = 0
    starts: list[str] = attrs.field(factory=list)
    offsets: list[str] = attrs.field(factory=list)
    counts: list[str] = attrs.field(factory=list)


class PopReader:
    """Pops for one broker; unordered pops use the revive log's queues in turn."""

    def __init__(
        self, broker: PopParts, revive_log: ReviveLog, in_flight: InFlightMessages, orders: ConsumerOrderManager
    ) -> None:
        self._broker = broker
        self._revive_log = revive_log
        self._in_flight = in_flight
        self._orders = orders
        self._pops = 0

    def pop(self, header: PopMessageRequestHeader, config: TopicConfig, wanted: Selection) -> Work[Popped]:
        """Return up to `max_msg_nums` messages of the header's topic, and of its retry topic.

        At random the retry topic comes first; never in an ordered pop.
        """
        chance = self._broker.random.randrange(100)
        popped = Popped(self._broker.wall_ms(), self._revive_queue(header))
        for looked, (topic, queue_id) in enumerate(self._places(popped, header, config, chance), 1):
            self._queue(popped, header, topic, queue_id, wanted)
            if looked % SLICE_QUEUES == 0:
                popped.records = [bytes(record) for record in popped.records]  # a mapped file may be unmapped meanwhile
                yield None
        return popped

    def _places(
        self, popped: Popped, header: PopMessageRequestHeader, config: TopicConfig, chance: int
    ) -> Iterator[tuple[str, int]]:
        """Yield the queues of a pop. If the retry topic comes last, yield its queues only while messages are wanted."""
        options = self._broker.options
        by_priority = self._goes_by_priority(header, config, chance)
        places_of: PlacesOf = self._by_priority if by_priority else functools.partial(_places_of, first=chance)
        queues = config.read_queue_nums
        own = [(header.topic, header.queue_id)] if header.queue_id >= 0 else places_of(header.topic, queues)
        if header.order:
            yield from own
            return
        retry_topic = self._retry_topic(header, chance)
        retry_config = self._broker.topics.get(retry_topic)
        retried = places_of(retry_topic, 0 if retry_config is None else retry_config.read_queue_nums)
        first = options.pop_from_retry_probability_for_priority if by_priority else options.pop_from_retry_probability
        if chance < first:
            yield from retried
            yield from own
            return
        yield from own
        if len(popped.records) < header.max_msg_nums:
            yield from retried

    def _goes_by_priority(self, header: PopMessageRequestHeader, config: TopicConfig, chance: int) -> bool:
        """Return True if a pop begins with the queue of the highest priority, as 5.4's: so does the group's share of pops of a
        topic with message.type=PRIORITY.
        """
        if header.order or (config.attributes or {}).get(MESSAGE_TYPE) != PRIORITY:
            return False
        group = self._broker.groups.groups.get(header.consumer_group)
        return chance < priority_factor((group.attributes if group is not None else None) or {})

    def _by_priority(self, topic: str, queues: int) -> Iterable[tuple[str, int]]:
        """Return all queues of a topic, that of the highest priority first."""
        numbers = range(queues)
        return ((topic, one) for one in (reversed(numbers) if self._broker.options.priority_order_asc else numbers))

    def _revive_queue(self, header: PopMessageRequestHeader) -> int:
        if header.order:
            return ORDER_REVIVE_QUEUE
        self._pops += 1
        return (self._pops - 1) % self._broker.options.revive_queue_num

    def _retry_topic(self, header: PopMessageRequestHeader, chance: int) -> str:
        """Return the retry topic of the broker's version; in half of the pops that of version 1, while it is being emptied."""
        options = self._broker.options
        version_1 = options.retrieve_message_from_pop_retry_topic_v1 and chance % 2 == 0
        return pop_retry_topic(header.topic, header.consumer_group, options.enable_retry_topic_v2 and not version_1)

    def _queue(
        self, popped: Popped, header: PopMessageRequestHeader, topic: str, queue_id: int, wanted: Selection
    ) -> None:
        broker, group = self._broker, header.consumer_group
        store = broker.store
        if self._is_stuck(topic, group, queue_id):
            popped.rest += store.max_offset_in_queue(topic, queue_id) - self._offset(header, topic, queue_id)
            return
        offset = self._offset(header, topic, queue_id)
        if header.order:
            if self._orders.blocks(header.attempt_id, topic, group, queue_id, header.invisible_time):
                return
            self._in_flight.clear(topic, group, queue_id)
        room = header.max_msg_nums - len(popped.records)
        if room <= 0:
            popped.rest += store.max_offset_in_queue(topic, queue_id) - offset
            return
        result = self._read(topic, queue_id, offset, room, wanted)
        if result.status in _WRONG_OFFSET:
            offset = result.next_begin_offset
            broker.offsets.commit(group, topic, queue_id, offset)
            result = self._read(topic, queue_id, offset, room, wanted)
        if result.records:
            if not self._note(popped, header, topic, queue_id, offset, result):
                popped.rest += len(result.records)
                return
        elif result.status in _PASSED_OVER:
            broker.offsets.commit(group, topic, queue_id, result.next_begin_offset)
        popped.rest += result.max_offset - result.next_begin_offset

    def _is_stuck(self, topic: str, group: str, queue_id: int) -> bool:
        """Return True if the group already holds too many messages of the queue."""
        options = self._broker.options
        held = self._in_flight.count(topic, group, queue_id)
        return options.enable_pop_message_threshold and held > options.pop_inflight_message_threshold

    def _read(self, topic: str, queue_id: int, offset: int, room: int, wanted: Selection) -> GetResult:
        return self._broker.store.get_message(
            topic, queue_id, offset, room, DEFAULT_MAX_BYTES, wanted.tags_codes, wanted.matches
        )

    def _offset(self, header: PopMessageRequestHeader, topic: str, queue_id: int) -> int:
        """Return the offset where the group goes on: its reset, its offset, or where a new group starts."""
        broker, group = self._broker, header.consumer_group
        reset = broker.offsets.take_reset(group, topic, queue_id) if broker.offsets.resets else None
        if reset is not None:
            self._orders.clear(topic, group, queue_id)
            self._in_flight.clear(topic, group, queue_id)
            broker.offsets.commit(group, topic, queue_id, reset)
            return reset
        offset = broker.offsets.query(group, topic, queue_id)
        if offset is None:
            offset = init_offset(broker, topic, queue_id, header.init_mode)
            broker.offsets.commit(group, topic, queue_id, offset)
        return offset

    def _note(
        self, popped: Popped, header: PopMessageRequestHeader, topic: str, queue_id: int, offset: int, result: GetResult
    ) -> bool:
        """Record the pop, then hand out what was read; False if the pop cannot be recorded."""
        broker, group = self._broker, header.consumer_group
        offsets = [unpack_queue_offset(record)[0] for record in result.records]
        if header.order:
            popped.counts += self._orders.popped(header, topic, queue_id, popped.pop_time, offsets)
            broker.offsets.commit(group, topic, queue_id, offset)
        else:
            point = PopCheckPoint(
                start_offset=offset,
                pop_time=popped.pop_time,
                invisible_time=header.invisible_time,
                count=len(offsets),
                queue_id=queue_id,
                topic=topic,
                consumer_group=group,
                offset_differences=[one - offset for one in offsets],
                broker_name=broker.options.broker_name,
            )
            if not self._revive_log.put_check_point(point, popped.revive_queue_id):
                return False
            broker.offsets.commit(group, topic, queue_id, result.next_begin_offset)
            broker.statistics.checkpoints[f"{header.topic}@{group}"].add(1, 0)
        popped.starts.append(start_offset_info(topic, queue_id, offset))
        popped.offsets.append(message_offset_info(topic, queue_id, offsets))
        self._in_flight.handed_out(topic, group, queue_id, popped.pop_time, len(offsets))
        broker.statistics.count_get(topic, group, len(offsets), result.size_bytes, queue_id=queue_id)
        popped.records += self._for_the_wire(popped, header, topic, offset, result)
        return True

    def _for_the_wire(
        self, popped: Popped, header: PopMessageRequestHeader, topic: str, offset: int, result: GetResult
    ) -> list[memoryview | bytes]:
        """Return the records as they are stored; those of a retry topic under their original topic's name, with their
        receipts.
        """
        options = self._broker.options
        if topic == header.topic or options.pop_response_return_actual_retry_topic:
            return result.records
        return [
            with_receipt(
                record,
                header.topic,
                offset,
                popped.pop_time,
                header.invisible_time,
                popped.revive_queue_id,
                options.broker_name,
            )
            for record in result.records
        ]


def _places_of(topic: str, queues: int, *, first: int) -> Iterable[tuple[str, int]]:
    """Return all queues of a topic, starting with the one of that number."""
    return ((topic, (first + index) % queues) for index in range(queues))

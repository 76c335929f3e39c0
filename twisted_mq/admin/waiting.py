"""Messages that brokers do not deliver yet: delayed messages until their time, half messages until they are decided."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import broker_stats
from twisted_mq.admin.queues import pull_at
from twisted_mq.client.core.pull_result import PullStatus
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.bodies.metrics import TimerMetricsSerializeWrapper
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC, TRANSACTION_GROUP
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
)

LEVEL_FIGURE = "scheduleMessageOffset_"
DELAYED_SHOWN = 50
HALVES_SHOWN = 50
MOST_READ = 2000
"""The limit of half messages, and of decisions, that are read to find undecided ones."""


@attrs.frozen
class DelayLevel:
    """A delay level at a broker. Its messages from offset `delivered` to before `end` wait."""

    level: int
    delivered: int
    end: int

    @property
    def waiting(self) -> int:
        return max(0, self.end - self.delivered)


async def delay_levels(admin: AdminCalls, address: str, figures: Mapping[str, str]) -> list[DelayLevel]:
    """Return each delay level that was ever used at a broker with these runtime metrics, sorted.

    A broker's metrics have only the levels of which it has delivered messages since its start.
    """
    try:
        queues = (await admin.topic_stats(address, SCHEDULE_TOPIC)).offset_table
    except BrokerError as error:
        if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        queues = {}
    found = []
    for queue, offset in queues.items():
        delivered = _delivered(figures.get(f"{LEVEL_FIGURE}{queue.queue_id + 1}", ""))
        found.append(DelayLevel(queue.queue_id + 1, max(delivered, offset.min_offset), offset.max_offset))
    return sorted(found, key=lambda one: one.level)


def _delivered(text: str) -> int:
    """Return the offset up to which a level is delivered: 20 for "20,25" (delivered, stored); 0 for any other text."""
    return parse_int(text.partition(",")[0].strip(), 64) or 0


async def delayed_messages(admin: AdminCalls, broker_name: str, address: str, level: DelayLevel) -> list[MessageExt]:
    """Return the next messages of a delay level."""
    if not level.waiting:
        return []
    queue = MessageQueue(SCHEDULE_TOPIC, broker_name, level.level - 1)
    return list((await pull_at(admin, address, queue, level.delivered, DELAYED_SHOWN)).messages)


async def timed(admin: AdminCalls, address: str) -> dict[str, int]:
    """Return topic -> the number of messages that wait for a delivery time of their own."""
    found = await admin.ask(address, TimerMetricsSerializeWrapper, RequestCode.GET_TIMER_METRICS)
    return {topic: metric.count for topic, metric in sorted(found.timing_count.items()) if metric.count > 0}


@attrs.frozen
class Half:
    """A half message: its producer has neither committed it nor rolled it back."""

    message: MessageExt

    @property
    def topic(self) -> str | None:
        """The topic to which it goes once it is committed."""
        return self.message.properties.get(PROPERTY_REAL_TOPIC)

    @property
    def producer_group(self) -> str | None:
        return self.message.properties.get(PROPERTY_PRODUCER_GROUP)

    @property
    def checks(self) -> int:
        """The number of times that its producer was asked."""
        return parse_int(self.message.properties.get(PROPERTY_TRANSACTION_CHECK_TIMES)) or 0


@attrs.frozen
class OpenHalves:
    """The undecided half messages of a broker. `count` is exact if all were read, else the number among the first ones."""

    shown: list[Half]
    count: int
    all_read: bool


async def open_halves(admin: AdminCalls, broker_name: str, address: str) -> OpenHalves:
    """Return half messages after the broker's check position that have no recorded decision."""
    stats = await broker_stats(admin, address, TRANSACTION_GROUP)
    held = {(queue.topic, queue.queue_id): one.consumer_offset for queue, one in stats.offset_table.items()}
    halves, all_halves = await _read(admin, address, MessageQueue(HALF_TOPIC, broker_name, 0), held)
    operations, all_operations = await _read(admin, address, MessageQueue(OP_TOPIC, broker_name, 0), held)
    decided = {offset for one in operations for offset in decided_offsets(one.body)}
    waiting = [Half(one) for one in halves if one.queue_offset not in decided]
    return OpenHalves(waiting[:HALVES_SHOWN], len(waiting), all_halves and all_operations)


def decided_offsets(body: bytes) -> list[int]:
    """Return the half queue offsets that an operation names, for example b"7,9,12,"."""
    offsets = (parse_int(part, 64) for part in body.decode("utf-8", "replace").split(","))
    return [offset for offset in offsets if offset is not None]


async def _read(
    admin: AdminCalls, address: str, queue: MessageQueue, held: Mapping[tuple[str, int], int]
) -> tuple[list[MessageExt], bool]:
    """Return messages after the broker's own position in a queue, and whether these are all."""
    offset, found = held.get((queue.topic, queue.queue_id), 0), list[MessageExt]()
    while len(found) < MOST_READ:
        result = await pull_at(admin, address, queue, max(0, offset))
        if result.status in (PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL) and result.next_begin_offset <= offset:
            return found, True
        found += result.messages
        if result.status == PullStatus.NO_NEW_MSG:
            return found, True
        offset = max(result.next_begin_offset, offset + 1)
    return found, False

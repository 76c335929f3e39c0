"""Formats a consumer's report of itself as text (Apache: ConsumerRunningInfo.formatString, analyze...)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from twisted_mq.admin.groups import is_push_type
from twisted_mq.cli.admin.java_format import fixed, time_text
from twisted_mq.cli.admin.java_text import members_of, queue_text, value_text
from twisted_mq.protocol.bodies import (
    ConsumerRunningInfo,
    ConsumeStatus,
    MessageQueue,
    PopProcessQueueInfo,
    ProcessQueueInfo,
)

QUEUE_HEADS = ("#Topic", "#Broker Name", "#QID")
WIDE, NARROW = "{:<64}  {:<32}  {:<4}  {:<20}", "{:<32}  {:<32}  {:<4}  {:<20}"
RATES = "{:<64}  {:>14} {:>14} {:>14} {:>14} {:>18} {:>25}"
RATE_ROW = "{:<32}  {:>14} {:>14} {:>14} {:>14} {:>18} {:>25}"
RATE_HEADS = ("#Topic", "#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS", "#ConsumeFailed TPS",
              "#ConsumeFailedMsgsInHour")  # fmt: skip

BLOCKED_MS = 60_000


def running_text(info: ConsumerRunningInfo) -> str:
    """Return the whole report."""
    return "\n".join([line for section in _sections(info) for line in section])


def _sections(info: ConsumerRunningInfo) -> Iterator[list[str]]:
    yield ["#Consumer Properties#", *(f"{key:<40}: {value}" for key, value in sorted(info.properties.items()))]
    yield ["", "", "#Consumer Subscription#", *_subscriptions(info)]
    yield _queues("#Consumer Offset#", "#Consumer Offset", WIDE, NARROW,
                  {queue: held.commit_offset for queue, held in info.mq_table.items()})  # fmt: skip
    yield _queues("#Consumer MQ Detail#", "#ProcessQueueInfo", WIDE, WIDE, info.mq_table)
    yield _queues("#Consumer Pop Detail#", "#ProcessQueueInfo", NARROW, NARROW, info.mq_pop_table)
    rates = [RATE_ROW.format(topic, *_rates(info.status_table[topic])) for topic in sorted(info.status_table)]
    yield ["", "", "#Consumer RT&TPS#", RATES.format(*RATE_HEADS), *rates]
    yield [
        "",
        "",
        "#User Consume Info#",
        *(f"{key:<40}: {value}" for key, value in sorted(info.user_consumer_info.items())),
    ]
    if info.jstack is not None:
        yield ["", "", "#Consumer jstack#", info.jstack]


def _subscriptions(info: ConsumerRunningInfo) -> list[str]:
    ordered = sorted(info.subscription_set, key=lambda one: one.topic)
    return [
        f"{number:03d} Topic: {one.topic:<40} ClassFilter: {value_text(one.class_filter_mode):<8} "
        f"SubExpression: {one.sub_string}"
        for number, one in enumerate(ordered, 1)
    ]


def _queues(title: str, last: str, head: str, row: str, table: Mapping[MessageQueue, object]) -> list[str]:
    """Return a line for each queue; values that are not numbers are written as objects."""
    rows = [
        row.format(queue.topic, queue.broker_name, queue.queue_id, _held_text(table[queue])) for queue in sorted(table)
    ]
    return ["", "", title, head.format(*QUEUE_HEADS, last), *rows]


def _held_text(held: object) -> str:
    if not isinstance(held, ProcessQueueInfo | PopProcessQueueInfo):
        return str(held)
    pulls = isinstance(held, ProcessQueueInfo)
    members = members_of(held)
    texts = {name: _time_or_value(name, value) if pulls else value_text(value) for name, value in members.items()}
    mark = "=" if pulls else ":"
    return f"{type(held).__name__} [{', '.join(f'{name}{mark}{text}' for name, text in texts.items())}]"


def _time_or_value(name: str, value: object) -> str:
    """Return times of process queues as 20261120232722099 (UtilAll.timeMillisToHumanString)."""
    if not name.endswith("Timestamp"):
        return value_text(value)
    return re.sub(r"\D", "", time_text(int(str(value))))


def _rates(status: ConsumeStatus) -> list[str]:
    numbers = (status.pull_rt, status.pull_tps, status.consume_rt, status.consume_ok_tps, status.consume_failed_tps)
    return [*(fixed(number, 2) for number in numbers), str(status.consume_failed_msgs)]


def complaints(client_id: str, info: ConsumerRunningInfo, now_ms: int) -> list[str]:
    """Return the problems of a member's queues: not locked although ordered, or not consumed for a minute."""
    if not is_push_type(info):
        return []
    in_order = info.properties.get("PROP_CONSUMEORDERLY", "").lower() == "true"
    found = (_complaint(in_order, info.mq_table[queue], now_ms) for queue in sorted(info.mq_table))
    named = zip(sorted(info.mq_table), found, strict=True)
    return [f"{client_id} {queue_text(queue)} {text}" for queue, text in named if text]


def _complaint(in_order: bool, held: ProcessQueueInfo, now_ms: int) -> str | None:
    silent_ms = now_ms - held.last_consume_timestamp
    if in_order and not held.locked:
        return f"can't lock for a while, {now_ms - held.last_lock_timestamp}ms"
    if in_order and held.dropped and held.try_unlock_times > 0:
        return f"unlock {held.try_unlock_times} times, still failed"
    if not in_order and silent_ms > BLOCKED_MS and held.cached_msg_count > 0:
        return f"can't consume for a while, maybe blocked, {silent_ms}ms"
    return None

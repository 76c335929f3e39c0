"""A consumer's status for an administrator (Apache: ConsumerRunningInfo)."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.client.consuming.process_queue import PopProcessQueue, ProcessQueue
from twisted_mq.client.core.consume_rates import ConsumeRates
from twisted_mq.protocol.bodies import (
    ConsumerRunningInfo,
    MessageQueue,
    PopProcessQueueInfo,
    ProcessQueueInfo,
    SubscriptionData,
)


def running_info(
    properties: Mapping[str, str],
    subscriptions: Mapping[str, SubscriptionData],
    held: Mapping[MessageQueue, ProcessQueue],
    offsets: Mapping[MessageQueue, int],
    rates: ConsumeRates,
    now_seconds: float,
) -> ConsumerRunningInfo:
    """Return its settings, subscriptions, rates by topic, and the messages held and the offset of each of its queues."""
    return ConsumerRunningInfo(
        properties=dict(properties),
        subscription_set=[subscriptions[topic] for topic in sorted(subscriptions)],
        mq_table={
            queue: _queue_info(one, offsets.get(queue, 0))
            for queue, one in held.items()
            if not isinstance(one, PopProcessQueue)
        },
        mq_pop_table={queue: _pop_info(one) for queue, one in held.items() if isinstance(one, PopProcessQueue)},
        status_table={topic: rates.status(topic, now_seconds) for topic in sorted(subscriptions)},
    )


def _queue_info(held: ProcessQueue, commit_offset: int) -> ProcessQueueInfo:
    return ProcessQueueInfo(
        commit_offset=commit_offset,
        cached_msg_min_offset=max(0, held.min_offset),
        cached_msg_max_offset=max(0, held.max_offset) if held.count else 0,
        cached_msg_count=held.count,
        cached_msg_size_in_mib=held.size_bytes >> 20,
        locked=held.locked_at is not None,
        last_lock_timestamp=int((held.locked_at or 0) * 1000),
        dropped=held.dropped,
        last_pull_timestamp=int(held.last_pull_seconds * 1000),
    )


def _pop_info(held: PopProcessQueue) -> PopProcessQueueInfo:
    return PopProcessQueueInfo(
        wait_ack_count=held.count, dropped=held.dropped, last_pop_timestamp=int(held.last_pull_seconds * 1000)
    )

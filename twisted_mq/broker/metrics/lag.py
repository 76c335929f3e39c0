"""Computes how far each group is behind on each topic (Apache: ConsumerLagCalculator).

Unlike Apache, it includes groups whose members are all gone, and leaves out queues on which a group has no offset yet
instead of counting them as consumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from twisted_mq.protocol.names.system_topics import RETRY_PREFIX, is_system_topic
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR
from twisted_mq.turns import Work

if TYPE_CHECKING:
    from twisted_mq.broker.controller import BrokerController

SYSTEM_GROUP_PREFIX = "cid_rmq_sys_"
QUEUES_OF_SLICE = 512


@attrs.define
class Lag:
    """The lag of one group on one topic: messages, and ms. A time is None if no message waits."""

    group: str
    topic: str
    lag: int = 0
    ready: int = 0
    committed: int = 0
    oldest_unread_ms: int | None = None
    oldest_not_pulled_ms: int | None = None

    @property
    def in_flight(self) -> int:
        """Return the messages that were handed out and not committed."""
        return self.lag - self.ready

    @property
    def is_retry(self) -> bool:
        return self.topic.startswith(RETRY_PREFIX)

    @property
    def is_system(self) -> bool:
        return is_system_topic(self.topic) or is_system_group(self.group)

    def labels(self) -> tuple[str, str, str, str]:
        """Return group, topic, is_retry, is_system."""
        return self.group, self.topic, flag(self.is_retry), flag(self.is_system)


def flag(value: bool) -> str:
    """Return a bool as Apache's labels write it."""
    return str(value).lower()


def is_system_group(group: str) -> bool:
    return group.lower().startswith(SYSTEM_GROUP_PREFIX)


def lags(broker: BrokerController) -> Work[list[Lag]]:
    """Return the lag of all groups with an offset, in no order, some queues in each slice; deleted topics are left out."""
    found: list[Lag] = []
    looked = 0
    for key in list(broker.offsets.offsets):
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        queues = broker.offsets.offsets.get(key)
        if queues is None or broker.topics.get(topic) is None:
            continue
        found.append(Lag(group, topic))
        for queue_id, committed in list(queues.items()):
            _add(broker, found[-1], queue_id, committed)
            looked += 1
            if looked % QUEUES_OF_SLICE == 0:
                yield None
    return found


def _add(broker: BrokerController, lag: Lag, queue_id: int, committed: int) -> None:
    """Add one queue to the lag of a group."""
    store = broker.store
    end = store.max_offset_in_queue(lag.topic, queue_id)
    pulled = max(committed, broker.offsets.pulled(lag.group, lag.topic, queue_id) or 0)
    lag.committed += committed
    if committed < end:
        lag.lag += end - committed
        lag.oldest_unread_ms = _older(lag.oldest_unread_ms, store.store_timestamp(lag.topic, queue_id, committed))
    if pulled < end:
        lag.ready += end - pulled
        lag.oldest_not_pulled_ms = _older(lag.oldest_not_pulled_ms, store.store_timestamp(lag.topic, queue_id, pulled))


def age(since_ms: int | None, now_ms: int) -> int:
    """Return an age in ms; 0 for None."""
    return 0 if since_ms is None else max(0, now_ms - since_ms)


def _older(known_ms: int | None, found_ms: int) -> int | None:
    if found_ms <= 0:
        return known_ms
    return found_ms if known_ms is None else min(known_ms, found_ms)

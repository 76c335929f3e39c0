"""The lag of consumer groups."""

from __future__ import annotations

import contextlib

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import consume_stats, consumer_connection, group_of
from twisted_mq.protocol.bodies import ConsumeStats, MessageQueue, OffsetWrapper
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.remoting.errors import RemotingError


@attrs.frozen
class TopicLag:
    """The lag of a group in one topic.

    `behind_seconds` is the age of the last consumed message of the queue furthest behind; None if no message waits.
    """

    group: str
    members: int
    topic: str
    waiting: int
    in_flight: int
    behind_seconds: int | None
    committed: int
    """The sum of the offsets in all queues. Its growth is the rate at which the group consumes."""


@attrs.frozen
class QueueLag:
    """The lag of a group in one queue."""

    queue: MessageQueue
    committed: int
    end: int
    waiting: int
    in_flight: int
    behind_seconds: int | None


def groups_among(topics: list[str]) -> list[str]:
    """Return the groups whose retry topics are in the list, sorted."""
    return sorted({group_of(topic) for topic in topics if topic.startswith(RETRY_PREFIX)})


async def lag_by_topic(admin: AdminCalls, group: str) -> list[TopicLag]:
    """Return the lag of a group by topic; empty if no broker can tell."""
    members = 0
    with contextlib.suppress(ProtocolError, RemotingError):
        members = len((await consumer_connection(admin, group)).connection_set)
    with contextlib.suppress(ProtocolError):
        return _by_topic(group, members, queue_lags(await consume_stats(admin, group), admin.now_ms()))
    return []


def _by_topic(group: str, members: int, lags: list[QueueLag]) -> list[TopicLag]:
    found = []
    for topic in sorted({one.queue.topic for one in lags}):
        of_topic = [one for one in lags if one.queue.topic == topic]
        behind = [one.behind_seconds for one in of_topic if one.behind_seconds is not None]
        waiting, in_flight = sum(one.waiting for one in of_topic), sum(one.in_flight for one in of_topic)
        committed = sum(one.committed for one in of_topic)
        found.append(TopicLag(group, members, topic, waiting, in_flight, max(behind, default=None), committed))
    return found


def queue_lags(stats: ConsumeStats, now_ms: int) -> list[QueueLag]:
    """Return the lag in each queue, sorted."""
    return [
        QueueLag(
            queue=queue,
            committed=one.consumer_offset,
            end=one.broker_offset,
            waiting=one.broker_offset - one.consumer_offset,
            in_flight=one.pull_offset - one.consumer_offset,
            behind_seconds=_behind(one, now_ms),
        )
        for queue, one in sorted(stats.offset_table.items())
    ]


def _behind(one: OffsetWrapper, now_ms: int) -> int | None:
    if one.broker_offset <= one.consumer_offset or one.last_timestamp <= 0:
        return None
    return max(0, (now_ms - one.last_timestamp) // 1000)

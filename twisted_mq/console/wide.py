"""Reads the state of topics with very many queues: a page asks only for the queues that it shows, one by one.

A broker answers for a whole topic at once. With 65,535 queues that takes seconds, and 12 MB at each visit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.groups import group_route
from twisted_mq.admin.lag import QueueLag
from twisted_mq.admin.offsets import TO_THE_END, Move
from twisted_mq.admin.queues import TopicReader
from twisted_mq.console.visit import PAGE_ROWS, ListPage
from twisted_mq.protocol.bodies import MessageQueue, TopicList, TopicOffset, TopicRouteData
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    QueryTopicsByConsumerRequestHeader,
)
from twisted_mq.protocol.wire.header_codec import decode_header

MOST_COLLECTED = 1024
"""The most queues whose state is collected and added up."""


@attrs.frozen
class ManyQueues:
    """The queues of some topics. They are made when a page shows them."""

    routes: Mapping[str, TopicRouteData]
    counts: Sequence[tuple[str, str, int]]
    """Topic, broker name, queues."""

    @classmethod
    def of(cls, routes: Mapping[str, TopicRouteData], *, readable: bool = False) -> ManyQueues:
        """Count those that can be read or written, or read."""
        counts = [
            (
                topic,
                data.broker_name,
                data.read_queue_nums if readable else max(data.read_queue_nums, data.write_queue_nums),
            )
            for topic, route in sorted(routes.items())
            for data in sorted(route.queue_datas or (), key=lambda data: data.broker_name)
        ]
        return cls(routes, counts)

    @property
    def total(self) -> int:
        return sum(count for _, _, count in self.counts)

    @property
    def are_many(self) -> bool:
        """Return whether they are too many for a page to collect their figures."""
        return self.total > MOST_COLLECTED

    def page(self, number: int) -> ListPage[MessageQueue]:
        """Return the page of that number, or the last one."""
        pages = max(1, -(-self.total // PAGE_ROWS))
        number = min(max(1, number), pages)
        return ListPage([*self._between((number - 1) * PAGE_ROWS, number * PAGE_ROWS)], number, pages, self.total)

    def _between(self, first: int, end: int) -> Iterable[MessageQueue]:
        before = 0
        for topic, broker_name, count in self.counts:
            for queue_id in range(max(0, first - before), min(count, end - before)):
                yield MessageQueue(topic, broker_name, queue_id)
            before += count

    def reader(self, admin: AdminCalls, topic: str) -> TopicReader:
        """Return a reader of one of the topics."""
        return TopicReader(admin, self.routes[topic])


async def queues_of_group(admin: AdminCalls, group: str) -> ManyQueues:
    """Return the queues of all topics that a group has an offset on. Raises BrokerError if no broker knows the group."""
    topics: set[str] = set()
    for address in await group_route(admin, group):
        header = QueryTopicsByConsumerRequestHeader(group=group)
        listed = await admin.ask(address, TopicList, RequestCode.QUERY_TOPICS_BY_CONSUMER, header)
        topics.update(listed.topic_list)
    names = sorted(topics)
    found = await concurrently(lambda name: _route(admin, name), names)
    return ManyQueues.of({name: route for name, route in zip(names, found, strict=True) if route is not None})


async def _route(admin: AdminCalls, topic: str) -> TopicRouteData | None:
    try:
        return await admin.topic_route(topic)
    except BrokerError:
        return None  # it was deleted, and the group's offsets are left


async def offset_of(reader: TopicReader, queue: MessageQueue) -> TopicOffset:
    """Return first and last offset of a queue, and when its last message was stored."""
    first, end = await reader.span(queue, None, None)
    newest = (await reader.pull(queue, end - 1, 1)).messages if end > first else ()
    return TopicOffset(first, end, newest[0].store_timestamp if newest else 0)


async def committed(admin: AdminCalls, reader: TopicReader, group: str, queue: MessageQueue) -> int | None:
    """Return the offset of a group in a queue; None if it has none."""
    header = QueryConsumerOffsetRequestHeader(
        consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, set_zero_if_not_found=False
    )
    try:
        answer = await admin.invoke(reader.address(queue), RequestCode.QUERY_CONSUMER_OFFSET, header)
    except BrokerError as error:
        if error.response_code == ResponseCode.QUERY_NOT_FOUND:
            return None
        raise
    return decode_header(QueryConsumerOffsetResponseHeader, answer).offset


async def lag_of(admin: AdminCalls, queues: ManyQueues, group: str, queue: MessageQueue) -> QueueLag:
    """Return how far a group is in a queue. How much is in flight, and how old that is, a broker tells only for all queues."""
    reader = queues.reader(admin, queue.topic)
    offset, end = await committed(admin, reader, group, queue) or 0, await reader.max_offset(queue)
    return QueueLag(queue, offset, end, end - offset, 0, None)


async def move_of(admin: AdminCalls, queues: ManyQueues, group: str, queue: MessageQueue, time_ms: int) -> Move:
    """Return what a reset to a time does in a queue."""
    reader = queues.reader(admin, queue.topic)
    before = await committed(admin, reader, group, queue)
    at_end = time_ms == TO_THE_END
    after = await reader.max_offset(queue) if at_end else await reader.offset_at(queue, time_ms)
    found = () if at_end else (await reader.pull(queue, after, 1)).messages
    return Move(queue, reader.address(queue), before, after, found[0].store_timestamp if found else None)

"""Queues of a topic as a reader sees them: where they are, where they begin and end, and what stands in them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from twisted_mq.admin.calls import AdminCalls, select_address
from twisted_mq.admin.errors import AdminError
from twisted_mq.client.core.pull_result import PullResult, PullStatus, pull_result
from twisted_mq.protocol.bodies import MessageQueue, TopicRouteData
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import build_pull_sys_flag, is_readable
from twisted_mq.protocol.headers import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header

TOOLS_GROUP = "TOOLS_CONSUMER"
"""The group under which Apache's tool reads (MixAll.TOOLS_CONSUMER_GROUP); brokers know it without being told."""

PULL_TIMEOUT_SECONDS = 10.0
"""consumerPullTimeoutMillis"""
SUSPEND_MS = 20_000
"""brokerSuspendMaxTimeMillis; it counts for nothing, for these pulls do not wait."""
BATCH = 32


def readable_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues that a consumer has of a topic, in order (MQClientInstance.topicRouteData2TopicSubscribeInfo)."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas or ()
        if is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    )


def broker_address(route: TopicRouteData, broker_name: str) -> str:
    """Where a broker of a route is reached. Raises AdminError."""
    for broker in route.broker_datas or ():
        address = select_address(broker.broker_addrs)
        if broker.broker_name == broker_name and address:
            return address
    names = ", ".join(sorted(broker.broker_name for broker in route.broker_datas or ())) or "none"
    raise AdminError(f"no broker {broker_name!r} has this topic", f"these have: {names}")


class QueueReader:
    """Asks brokers of one topic for offsets and messages. `route` may be that of another topic, of a light queue's parent."""

    def __init__(self, admin: AdminCalls, route: TopicRouteData, group: str = TOOLS_GROUP) -> None:
        self._admin = admin
        self._route = route
        self._group = group

    @classmethod
    async def of(cls, admin: AdminCalls, topic: str, group: str = TOOLS_GROUP) -> QueueReader:
        """A reader of a topic's queues. Raises BrokerError for a topic without a route."""
        return cls(admin, await admin.topic_route(topic), group)

    def queues(self, topic: str) -> list[MessageQueue]:
        """All queues of the topic that can be read."""
        return readable_queues(topic, self._route)

    def address(self, queue: MessageQueue) -> str:
        """The broker of a queue. Raises AdminError."""
        return broker_address(self._route, queue.broker_name)

    async def min_offset(self, queue: MessageQueue) -> int:
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        answer = await self._admin.invoke(self.address(queue), RequestCode.GET_MIN_OFFSET, header)
        return decode_header(GetMinOffsetResponseHeader, answer).offset

    async def max_offset(self, queue: MessageQueue) -> int:
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        answer = await self._admin.invoke(self.address(queue), RequestCode.GET_MAX_OFFSET, header)
        return decode_header(GetMaxOffsetResponseHeader, answer).offset

    async def offset_at(self, queue: MessageQueue, time_ms: int) -> int:
        """The first offset stored at that time or later."""
        return await offset_at(self._admin, self.address(queue), queue, time_ms)

    async def span(self, queue: MessageQueue, begin_ms: int | None, end_ms: int | None) -> tuple[int, int]:
        """First and last offset of a queue, or of a time in it."""
        first = await self.min_offset(queue) if begin_ms is None else await self.offset_at(queue, begin_ms)
        last = await self.max_offset(queue) if end_ms is None else await self.offset_at(queue, end_ms)
        return first, last

    async def pull(self, queue: MessageQueue, offset: int, count: int = BATCH, expression: str = "*") -> PullResult:
        """What stands at an offset; does not wait for what comes."""
        return await pull_at(self._admin, self.address(queue), queue, offset, count, expression, self._group)

    async def pulls(
        self, queue: MessageQueue, first: int, last: int, expression: str = "*"
    ) -> AsyncIterator[PullResult]:
        """Pulls from `first` until `last`, which is left out; the last pull may find nothing."""
        offset = first
        while offset < last:
            result = await self.pull(queue, offset, expression=expression)
            yield result
            if result.status in (PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL):
                return
            offset = max(result.next_begin_offset, offset + 1)


async def offset_at(admin: AdminCalls, address: str, queue: MessageQueue, time_ms: int) -> int:
    """The first offset of a queue stored at that time or later; the end where there is none."""
    header = SearchOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id, timestamp=time_ms)
    answer = await admin.invoke(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return decode_header(SearchOffsetResponseHeader, answer).offset


async def pull_at(
    admin: AdminCalls,
    address: str,
    queue: MessageQueue,
    offset: int,
    count: int = BATCH,
    expression: str = "*",
    group: str = TOOLS_GROUP,
) -> PullResult:
    """What stands at an offset of a queue of that broker; does not wait for what comes."""
    header = PullMessageRequestHeader(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=count,
        sys_flag=build_pull_sys_flag(commit_offset=False, suspend=False, subscription=True),
        commit_offset=0,
        suspend_timeout_millis=SUSPEND_MS,
        subscription=expression,
        sub_version=0,
        expression_type="TAG",
    )
    request = RemotingCommand.request(RequestCode.PULL_MESSAGE, encode_header(header))
    return pull_result(await admin.client.invoke(address, request, PULL_TIMEOUT_SECONDS))

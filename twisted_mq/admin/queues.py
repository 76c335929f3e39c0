"""Reads of a topic's queues without a consumer group: their brokers, begin and end offsets, and messages."""

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
"""The group that Apache's tools read with (MixAll.TOOLS_CONSUMER_GROUP). Every broker has it."""

PULL_TIMEOUT_SECONDS = 10.0
"""The timeout of a pull (consumerPullTimeoutMillis)."""
SUSPEND_MS = 20_000
"""The wait of a long poll (brokerSuspendMaxTimeMillis). It has no effect here: these pulls do not wait."""
BATCH = 32


def readable_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Return the readable queues of a topic, sorted (MQClientInstance.topicRouteData2TopicSubscribeInfo)."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas or ()
        if is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    )


def broker_address(route: TopicRouteData, broker_name: str) -> str:
    """Return the address of a broker of a route. Raises AdminError."""
    for broker in route.broker_datas or ():
        address = select_address(broker.broker_addrs)
        if broker.broker_name == broker_name and address:
            return address
    names = ", ".join(sorted(broker.broker_name for broker in route.broker_datas or ())) or "none"
    raise AdminError(f"no broker {broker_name!r} has this topic", f"brokers that have it: {names}")


class TopicReader:
    """Reads offsets and messages of one topic. `route` may be another topic's: for a light queue, its parent's."""

    def __init__(self, admin: AdminCalls, route: TopicRouteData, group: str = TOOLS_GROUP) -> None:
        self._admin = admin
        self._route = route
        self._group = group

    @classmethod
    async def of(cls, admin: AdminCalls, topic: str, group: str = TOOLS_GROUP) -> TopicReader:
        """Make a reader of a topic's queues. Raises BrokerError for a topic without a route."""
        return cls(admin, await admin.topic_route(topic), group)

    def queues(self, topic: str) -> list[MessageQueue]:
        """Return all readable queues of the topic."""
        return readable_queues(topic, self._route)

    def address(self, queue: MessageQueue) -> str:
        """Return the address of a queue's broker. Raises AdminError."""
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
        """Return the offset of the first message stored at or after a time; the end if there is no such message."""
        return await offset_at(self._admin, self.address(queue), queue, time_ms)

    async def span(self, queue: MessageQueue, begin_ms: int | None, end_ms: int | None) -> tuple[int, int]:
        """Return the begin and end offset of a queue, or of a period in it."""
        first = await self.min_offset(queue) if begin_ms is None else await self.offset_at(queue, begin_ms)
        last = await self.max_offset(queue) if end_ms is None else await self.offset_at(queue, end_ms)
        return first, last

    async def pull(self, queue: MessageQueue, offset: int, count: int = BATCH, expression: str = "*") -> PullResult:
        """Pull messages from an offset. Does not wait for new ones."""
        return await pull_at(self._admin, self.address(queue), queue, offset, count, expression, self._group)

    async def pulls(
        self, queue: MessageQueue, first: int, last: int, expression: str = "*"
    ) -> AsyncIterator[PullResult]:
        """Yield pulls from `first` to before `last`. The last pull may have no message."""
        offset = first
        while offset < last:
            result = await self.pull(queue, offset, expression=expression)
            yield result
            if result.status in (PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL):
                return
            offset = max(result.next_begin_offset, offset + 1)


async def offset_at(admin: AdminCalls, address: str, queue: MessageQueue, time_ms: int) -> int:
    """Return the offset of a queue's first message stored at or after a time; the end if there is no such message."""
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
    """Pull messages from an offset of a queue at the broker. Does not wait for new ones."""
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

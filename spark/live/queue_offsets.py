"""Offsets of many queues from brokers: first, next, by time, of a consumer group; and commits of a group's offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict

from attrs import AttrsInstance

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import RequestRefused

Offsets = dict[MessageQueue, int]


def first_offsets(cluster: Cluster, queues: Sequence[MessageQueue]) -> Offsets:
    """Return the offset of each queue's first stored message."""
    found = _ask(cluster, queues, RequestCode.GET_MIN_OFFSET, lambda queue: GetMinOffsetRequestHeader(**_fields(queue)))
    return {queue: decode_header(GetMinOffsetResponseHeader, answer).offset for queue, answer in found}


def next_offsets(cluster: Cluster, queues: Sequence[MessageQueue]) -> Offsets:
    """Return the offset of each queue's next message."""
    found = _ask(cluster, queues, RequestCode.GET_MAX_OFFSET, lambda queue: GetMaxOffsetRequestHeader(**_fields(queue)))
    return {queue: decode_header(GetMaxOffsetResponseHeader, answer).offset for queue, answer in found}


def offsets_at(cluster: Cluster, queues: Sequence[MessageQueue], timestamp_ms: int) -> Offsets:
    """Return the offset of each queue's first message stored at that time or later; its end without one."""

    def header(queue: MessageQueue) -> AttrsInstance:
        return SearchOffsetRequestHeader(timestamp=timestamp_ms, **_fields(queue))

    found = _ask(cluster, queues, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return {queue: decode_header(SearchOffsetResponseHeader, answer).offset for queue, answer in found}


def group_offsets(cluster: Cluster, queues: Sequence[MessageQueue], group: str) -> Offsets:
    """Return the next offsets of the group; queues without a committed offset are left out."""

    def header(queue: MessageQueue) -> AttrsInstance:
        return QueryConsumerOffsetRequestHeader(consumer_group=group, set_zero_if_not_found=False, **_fields(queue))

    found = _ask(cluster, queues, RequestCode.QUERY_CONSUMER_OFFSET, header, absent=ResponseCode.QUERY_NOT_FOUND)
    return {queue: decode_header(QueryConsumerOffsetResponseHeader, answer).offset for queue, answer in found}


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[MessageQueue, int]) -> None:
    """Commit the next offsets of the group: the last consumed plus one. The broker confirms that they are stored.

    Apache's broker does not know a group that never pulled from it; it has no offsets of it to store.
    """

    def header(queue: MessageQueue) -> AttrsInstance:
        return UpdateConsumerOffsetRequestHeader(consumer_group=group, commit_offset=offsets[queue], **_fields(queue))

    code, unknown = RequestCode.UPDATE_CONSUMER_OFFSET, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    for _ in _ask(cluster, list(offsets), code, header, absent=unknown, at_master=True):
        pass


def _ask(
    cluster: Cluster,
    queues: Sequence[MessageQueue],
    code: RequestCode,
    header: Callable[[MessageQueue], AttrsInstance],
    *,
    absent: int | None = None,
    at_master: bool = False,
) -> Iterable[tuple[MessageQueue, RemotingCommand]]:
    """Return successful answers; those with the code `absent` are left out. Raises Refused for others."""

    def request(queue: MessageQueue) -> RemotingCommand:
        return RemotingCommand.request(code, encode_header(header(queue)))

    for queue, answer, address in cluster.ask_about(queues, request, at_master=at_master):
        if answer.code == ResponseCode.SUCCESS:
            yield queue, answer
        elif answer.code != absent:
            what = f"{code.name} for queue {queue.queue_id} of {queue.topic}"
            raise RequestRefused(address, what, answer.code, answer.remark or "", cluster.host)


class _QueueFields(TypedDict):
    topic: str
    queue_id: int
    bname: str


def _fields(queue: MessageQueue) -> _QueueFields:
    return {"topic": queue.topic, "queue_id": queue.queue_id, "bname": queue.broker_name}

"""Requests of a client to a broker, one method a request (Apache: MQClientAPIImpl). Knows no routes and no retries.

Every method is a coroutine that raises RemotingError (no answer) or BrokerError (the broker refuses).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import attrs
from attrs import AttrsInstance

from twisted_mq.client.core.pop_result import PopResult, pop_result
from twisted_mq.client.core.pull_result import PullResult, pull_result
from twisted_mq.config.properties import parse_properties
from twisted_mq.protocol.bodies import (
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SubscriptionData,
    UnlockBatchRequestBody,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ConsumerSendMsgBackRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    PopMessageRequestHeader,
    PullMessageRequestHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    RecallMessageRequestHeader,
    RecallMessageResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.client import RemotingClient

SUPPORTS_VERSION_2, SUBSCRIPTIONS_CHANGED = "IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE"
"""MixAll.IS_SUPPORT_HEART_BEAT_V2, IS_SUB_CHANGE: fields of the answer to a heartbeat."""


class BrokerCalls:
    """Requests to brokers by address. `timeout_seconds` is mqClientApiTimeout."""

    def __init__(self, remoting: RemotingClient, timeout_seconds: float = 3.0) -> None:
        self._remoting = remoting
        self._timeout_seconds = timeout_seconds

    async def heartbeat(self, address: str, data: HeartbeatData) -> HeartbeatAnswer:
        """Send a heartbeat with the members of a client."""
        answer = await self._call(address, RequestCode.HEART_BEAT, body=encode_body(data))
        fields = answer.ext_fields or {}
        return HeartbeatAnswer(fields.get(SUPPORTS_VERSION_2) == "true", fields.get(SUBSCRIPTIONS_CHANGED) == "true")

    async def unregister(
        self, address: str, client_id: str, *, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """Unregister a member of a group that stops."""
        header = UnregisterClientRequestHeader(
            client_id=client_id, producer_group=producer_group, consumer_group=consumer_group
        )
        await self._call(address, RequestCode.UNREGISTER_CLIENT, header)

    async def check_client(self, address: str, client_id: str, group: str, subscription: SubscriptionData) -> None:
        """Check a subscription. Raises BrokerError if the broker cannot filter by it."""
        body = CheckClientRequestBody(client_id=client_id, group=group, subscription_data=subscription)
        await self._call(address, RequestCode.CHECK_CLIENT_CONFIG, body=encode_body(body))

    async def recall(self, address: str, group: str, broker_name: str, topic: str, handle: str) -> str:
        """Recall a message that waits for its delivery time. Return its unique key."""
        header = RecallMessageRequestHeader(producer_group=group, topic=topic, recall_handle=handle, bname=broker_name)
        answer = await self._call(address, RequestCode.RECALL_MESSAGE, header)
        return decode_header(RecallMessageResponseHeader, answer).msg_id

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """Return the client ids of a group's members. Raises BrokerError for a group that the broker does not know."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=group)
        answer = await self._call(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        return list(decode_body(GetConsumerListByGroupResponseBody, answer.body).consumer_id_list)

    async def consumer_offset(self, address: str, group: str, queue: MessageQueue) -> int | None:
        """Return the offset that a group has committed; None if it has none yet."""
        header = QueryConsumerOffsetRequestHeader(consumer_group=group, **_queue_fields(queue))
        try:
            answer = await self._call(address, RequestCode.QUERY_CONSUMER_OFFSET, header)
        except BrokerError as error:
            if error.response_code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return decode_header(QueryConsumerOffsetResponseHeader, answer).offset

    async def update_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, offset: int, more: Mapping[str, str] | None = None
    ) -> None:
        """Commit, one-way as Apache's client does: the next commit repairs a lost one. `more` are further fields."""
        header = UpdateConsumerOffsetRequestHeader(consumer_group=group, commit_offset=offset, **_queue_fields(queue))
        request = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, {**encode_header(header), **(more or {})})
        await self._remoting.invoke_one_way(address, request)

    async def max_offset(self, address: str, queue: MessageQueue) -> int:
        """Return the offset that the queue's next message will have."""
        answer = await self._call(
            address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(**_queue_fields(queue))
        )
        return decode_header(GetMaxOffsetResponseHeader, answer).offset

    async def min_offset(self, address: str, queue: MessageQueue) -> int:
        """Return the offset of the queue's first message that is still kept."""
        answer = await self._call(
            address, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(**_queue_fields(queue))
        )
        return decode_header(GetMinOffsetResponseHeader, answer).offset

    async def search_offset(self, address: str, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at that time or later."""
        header = SearchOffsetRequestHeader(timestamp=timestamp_ms, **_queue_fields(queue))
        answer = await self._call(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return decode_header(SearchOffsetResponseHeader, answer).offset

    async def send_back(
        self, address: str, group: str, queue: MessageQueue, message: MessageExt, *, delay_level: int, max_tries: int
    ) -> None:
        """Have the broker deliver a message again later, or make it a dead letter after `max_tries`."""
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.physical_offset,
            group=group,
            delay_level=delay_level,
            origin_msg_id=message.unique_key or message.msg_id,
            origin_topic=message.topic,
            max_reconsume_times=max_tries,
            bname=queue.broker_name,
        )
        await self._call(address, RequestCode.CONSUMER_SEND_MSG_BACK, header, timeout_seconds=5.0)

    async def lock_queues(
        self, address: str, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> set[MessageQueue]:
        """Lock queues for the client. Return the queues that it holds alone from now on."""
        body = LockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=list(queues))
        answer = await self._call(address, RequestCode.LOCK_BATCH_MQ, body=encode_body(body))
        return set(decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set)

    async def unlock_queues(self, address: str, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        """Unlock queues, so that other clients can lock them."""
        body = UnlockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=list(queues))
        await self._call(address, RequestCode.UNLOCK_BATCH_MQ, body=encode_body(body))

    async def broker_config(self, address: str) -> dict[str, str]:
        """Return the settings of a broker by key, as it shows them to administrators."""
        answer = await self._call(address, RequestCode.GET_BROKER_CONFIG)
        return {entry.key: entry.value for entry in parse_properties(answer.body)}

    async def query_assignment(
        self, address: str, topic: str, group: str, client_id: str, strategy: str
    ) -> list[MessageQueueAssignment] | None:
        """Return the queues that the broker assigns to a member; None if it assigns nothing."""
        body = QueryAssignmentRequestBody(topic, group, client_id, strategy, "CLUSTERING")
        answer = await self._call(address, RequestCode.QUERY_ASSIGNMENT, body=encode_body(body))
        return decode_body(QueryAssignmentResponseBody, answer.body).message_queue_assignments

    async def pop(self, address: str, header: PopMessageRequestHeader, timeout_seconds: float) -> PopResult:
        """Pop messages, which are invisible to others for a while. Waits for messages within the header's poll time."""
        request = RemotingCommand.request(RequestCode.POP_MESSAGE, encode_header(header))
        answer = await self._remoting.invoke(address, request, timeout_seconds)
        return pop_result(answer, header.topic, header.bname or "")

    async def acknowledge(self, address: str, group: str, topic: str, receipt: Receipt) -> None:
        """Acknowledge a popped message: it was consumed."""
        header = AckMessageRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=receipt.queue_id,
            extra_info=receipt.encode(),
            offset=receipt.queue_offset,
            bname=receipt.broker_name,
        )
        await self._call(address, RequestCode.ACK_MESSAGE, header)

    async def change_invisible_time(
        self, address: str, group: str, topic: str, receipt: Receipt, invisible_ms: int
    ) -> None:
        """Change when a popped message becomes visible again."""
        header = ChangeInvisibleTimeRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=receipt.queue_id,
            extra_info=receipt.encode(),
            offset=receipt.queue_offset,
            invisible_time=invisible_ms,
            bname=receipt.broker_name,
        )
        await self._call(address, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)

    async def pull(
        self, address: str, header: PullMessageRequestHeader, timeout_seconds: float, *, lite: bool = False
    ) -> PullResult:
        """Pull messages. Waits for messages within the header's suspend time."""
        code = RequestCode.LITE_PULL_MESSAGE if lite else RequestCode.PULL_MESSAGE
        request = RemotingCommand.request(code, encode_header(header))
        return pull_result(await self._remoting.invoke(address, request, timeout_seconds))

    async def _call(
        self,
        address: str,
        code: RequestCode,
        header: AttrsInstance | None = None,
        body: bytes = b"",
        timeout_seconds: float | None = None,
    ) -> RemotingCommand:
        fields = {} if header is None else encode_header(header)
        request = RemotingCommand.request(code, fields, body)
        answer = await self._remoting.invoke(address, request, timeout_seconds or self._timeout_seconds)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        return answer


@attrs.frozen
class HeartbeatAnswer:
    """A broker's answer to a heartbeat, as far as heartbeats of version 2 need it."""

    knows_version_2: bool
    subscriptions_changed: bool


class _QueueFields(TypedDict):
    topic: str
    queue_id: int
    bname: str


def _queue_fields(queue: MessageQueue) -> _QueueFields:
    return {"topic": queue.topic, "queue_id": queue.queue_id, "bname": queue.broker_name}

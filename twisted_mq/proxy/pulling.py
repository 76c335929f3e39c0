"""The calls of pull consumers: PullMessage, UpdateOffset, GetOffset, QueryOffset. Apache's proxy 5.3.3 does not serve them."""

from __future__ import annotations

from typing import Any

from twisted_mq.client.core.pull_result import PullStatus, pull_result
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PullSysFlag
from twisted_mq.protocol.headers import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.messages.subscription import selects
from twisted_mq.protocol.text.properties import PROPERTY_TAGS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.proxy.brokers import CALL_SECONDS
from twisted_mq.proxy.checks import checked_group, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.conversion import hand_out
from twisted_mq.proxy.filters import subscription_of
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.messages import (
    GetOffsetResponse,
    PullMessageResponse,
    QueryOffsetPolicy,
    QueryOffsetResponse,
    UpdateOffsetResponse,
)
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.requests import make_request, succeeded
from twisted_mq.proxy.statuses import ProxyError, ok, status
from twisted_mq.proxy.times import milliseconds

MOST_MESSAGES = 32
BEGINNING, END = QueryOffsetPolicy.Value("BEGINNING"), QueryOffsetPolicy.Value("END")
NOT_FOUND = {
    PullStatus.NO_NEW_MSG: status("MESSAGE_NOT_FOUND", "no new message"),
    PullStatus.NO_MATCHED_MSG: status("MESSAGE_NOT_FOUND", "no message that the filter selects"),
    PullStatus.OFFSET_ILLEGAL: status("ILLEGAL_OFFSET", "the queue has no message with this offset"),
}
"""The status of a pull without messages. `next_offset` follows it."""


class Pulling:
    """Handles the calls of consumers that keep offsets."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._brokers = parts.brokers

    async def pull(self, client: GrpcClient, call: Call, request: Any) -> Any:
        """Stream the status, the messages, and the offset of the next pull. Returns the status."""
        topic, broker_name, queue_id = await self._queue(request.message_queue)
        group = checked_group(request.group)
        subscription = subscription_of(topic, request.filter_expression)
        if request.offset < 0:
            raise ProxyError("ILLEGAL_OFFSET", f"offset {request.offset} is negative")
        poll_ms = self._poll_ms(call, request)
        header = PullMessageRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=request.offset,
            max_msg_nums=min(max(request.batch_size, 1), MOST_MESSAGES),
            sys_flag=PullSysFlag.FLAG_SUBSCRIPTION | (PullSysFlag.FLAG_SUSPEND if poll_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=poll_ms,
            subscription=subscription.sub_string,
            sub_version=0,
            expression_type=subscription.expression_type,
        )
        command = make_request(RequestCode.PULL_MESSAGE, header)
        result = pull_result(await self._brokers.ask(client, broker_name, command, poll_ms / 1000 + CALL_SECONDS))
        chosen = [one for one in result.messages if selects(subscription, one.properties.get(PROPERTY_TAGS))]
        found = ok() if chosen else NOT_FOUND.get(result.status, NOT_FOUND[PullStatus.NO_MATCHED_MSG])
        await call.send(PullMessageResponse(status=found))
        for message in chosen:
            response = PullMessageResponse()
            hand_out(response.message, message, topic)
            await call.send(response)
        await call.send(PullMessageResponse(next_offset=result.next_begin_offset))
        return found

    def _poll_ms(self, call: Call, request: Any) -> int:
        """Return the ms that the pull may wait, as asked and within the deadline."""
        asked = milliseconds(request.long_polling_timeout)
        poll_ms = min(max(asked, 0), self._parts.options.grpc_client_consumer_max_long_polling_timeout_millis)
        remaining = call.remaining_seconds()
        return poll_ms if remaining is None else min(poll_ms, max(0, int(remaining * 1000) - 100))

    async def update_offset(self, client: GrpcClient, request: Any) -> Any:
        """Commit a group's offset in a queue."""
        topic, broker_name, queue_id = await self._queue(request.message_queue)
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=checked_group(request.group), topic=topic, queue_id=queue_id, commit_offset=request.offset
        )
        if request.offset < 0:
            raise ProxyError("ILLEGAL_OFFSET", f"offset {request.offset} is negative")
        command = make_request(RequestCode.UPDATE_CONSUMER_OFFSET, header)
        succeeded(await self._brokers.ask(client, broker_name, command))
        return UpdateOffsetResponse(status=ok())

    async def get_offset(self, client: GrpcClient, request: Any) -> Any:
        """Return a group's committed offset in a queue."""
        topic, broker_name, queue_id = await self._queue(request.message_queue)
        group = checked_group(request.group)
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=False
        )
        answer = await self._found(client, broker_name, make_request(RequestCode.QUERY_CONSUMER_OFFSET, header))
        if answer is None:
            raise ProxyError("OFFSET_NOT_FOUND", f"group {group} has no offset in queue {queue_id} of topic {topic}")
        return GetOffsetResponse(status=ok(), offset=decode_header(QueryConsumerOffsetResponseHeader, answer).offset)

    async def _found(self, client: GrpcClient, broker_name: str, command: RemotingCommand) -> RemotingCommand | None:
        """Return the broker's answer; None if the group has no offset. A broker in this process raises its refusals."""
        try:
            answer = await self._brokers.ask(client, broker_name, command)
            if answer.code != ResponseCode.QUERY_NOT_FOUND:
                succeeded(answer)
                return answer
        except BrokerError as error:
            if error.response_code != ResponseCode.QUERY_NOT_FOUND:
                raise
        return None

    async def query_offset(self, client: GrpcClient, request: Any) -> Any:
        """Return the first or last offset of a queue, or that of a time."""
        topic, broker_name, queue_id = await self._queue(request.message_queue)
        policy = request.query_offset_policy
        header: Any
        answer_class: type[Any]
        if policy == BEGINNING:
            code, answer_class = RequestCode.GET_MIN_OFFSET, GetMinOffsetResponseHeader
            header = GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id)
        elif policy == END:
            code, answer_class = RequestCode.GET_MAX_OFFSET, GetMaxOffsetResponseHeader
            header = GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)
        else:
            if not request.HasField("timestamp"):
                raise ProxyError("BAD_REQUEST", "timestamp is required with query_offset_policy TIMESTAMP")
            code, answer_class = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetResponseHeader
            header = SearchOffsetRequestHeader(
                topic=topic, queue_id=queue_id, timestamp=milliseconds(request.timestamp)
            )
        answer = await self._brokers.ask(client, broker_name, make_request(code, header))
        succeeded(answer)
        return QueryOffsetResponse(status=ok(), offset=decode_header(answer_class, answer).offset)

    async def _queue(self, queue: Any) -> tuple[str, str, int]:
        """Return topic, broker name and queue id of a MessageQueue. Raises ProxyError for one that the route does not have."""
        topic, broker_name = checked_topic(queue.topic), str(queue.broker.name)
        for one in (await self._brokers.route(topic)).queue_datas:
            if one.broker_name == broker_name and 0 <= queue.id < one.read_queue_nums:
                return topic, broker_name, queue.id
        raise ProxyError(
            "BAD_REQUEST", f"message_queue: topic {topic} has no queue {queue.id} at broker {broker_name!r} to read"
        )

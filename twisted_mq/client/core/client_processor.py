"""Handles requests from servers: group notices and administrators' requests (Apache: ClientRemotingProcessor)."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet import defer

from twisted_mq.client.core.group_members import ConsumerMember, Member, TransactionMember
from twisted_mq.client.core.request_and_reply import PendingRequests, pushed_reply
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import GetConsumerStatusBody, ResetOffsetBody, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    CheckTransactionStateRequestHeader,
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    ResetOffsetRequestHeader,
)
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.text.properties import PROPERTY_PRODUCER_GROUP
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel, Processor


class ClientProcessor:
    """Finds the member of this client that a request is for."""

    log = Logger()

    def __init__(
        self, consumers: Mapping[str, ConsumerMember], producers: Mapping[str, Member], requests: PendingRequests
    ) -> None:
        self._consumers = consumers
        self._producers = producers
        self._requests = requests

    def table(self) -> dict[int, Processor]:
        """Return the processor of each request code."""
        return {
            RequestCode.CHECK_TRANSACTION_STATE: self.check_transaction_state,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self.notify_consumer_ids_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self.reset_offset,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self.consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self.push_reply,
        }

    def notify_consumer_ids_changed(self, channel: Channel, request: RemotingCommand) -> None:
        consumer = self._consumers.get(decode_header(NotifyConsumerIdsChangedRequestHeader, request).consumer_group)
        if consumer is not None:
            consumer.members_changed()

    def check_transaction_state(self, channel: Channel, request: RemotingCommand) -> Answer:
        """Have the group's producer answer with a request of its own, on the same connection."""
        header = decode_header(CheckTransactionStateRequestHeader, request)
        message = decode_message(request.body)
        producer = self._producers.get(message.properties.get(PROPERTY_PRODUCER_GROUP, ""))
        if not isinstance(producer, TransactionMember):
            self.log.warn(
                "broker asks about a transaction of an unknown producer: topic={topic} key={key}",
                topic=message.topic, key=message.unique_key,
            )  # fmt: skip
            return None

        async def check() -> None:
            channel.send_one_way(await producer.check_transaction(header, message))

        return defer.Deferred.fromCoroutine(check())

    def reset_offset(self, channel: Channel, request: RemotingCommand) -> Answer:
        header = decode_header(ResetOffsetRequestHeader, request)
        consumer = self._consumers.get(header.group)
        if consumer is not None and request.body:
            offsets = decode_body(ResetOffsetBody, request.body).offset_table
            return defer.Deferred.fromCoroutine(consumer.reset_offsets(header.topic, offsets))
        return None

    def consumer_status(self, channel: Channel, request: RemotingCommand) -> Answer:
        header = decode_header(GetConsumerStatusRequestHeader, request)
        consumer = self._consumers.get(header.group)
        offsets = {} if consumer is None else consumer.consumed_offsets(header.topic)
        return request.answer(body=encode_body(GetConsumerStatusBody(message_queue_table=offsets)))

    def running_info(self, channel: Channel, request: RemotingCommand) -> Answer:
        consumer = self._consumer(decode_header(GetConsumerRunningInfoRequestHeader, request).consumer_group)
        return request.answer(body=encode_body(consumer.running_info()))

    def consume_directly(self, channel: Channel, request: RemotingCommand) -> Answer:
        header = decode_header(ConsumeMessageDirectlyResultRequestHeader, request)
        consumer = self._consumer(header.consumer_group)
        message = decode_message(request.body)

        async def consume() -> RemotingCommand:
            result = await consumer.consume_directly(message, header.broker_name)
            return request.answer(body=encode_body(result))

        return defer.Deferred.fromCoroutine(consume())

    def push_reply(self, channel: Channel, request: RemotingCommand) -> Answer:
        """Accept a reply to one of this client's requests, even if the request has ended."""
        self._requests.arrived(pushed_reply(request, self._requests.wall_ms()))
        return request.answer()

    def _consumer(self, group: str) -> ConsumerMember:
        consumer = self._consumers.get(group)
        if consumer is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{group}> not exist in this consumer")
        return consumer

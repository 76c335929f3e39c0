"""Recalls messages that wait for their time (370). Apache: RecallMessageProcessor.

A recall is stored as a message for the same tick that names the message to recall; the timer then drops both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.postpone import Postponement
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.clocks import ClockSteps
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_WRITE
from twisted_mq.protocol.headers import RecallMessageRequestHeader, RecallMessageResponseHeader
from twisted_mq.protocol.names.recall_handle import RecallHandle
from twisted_mq.protocol.text.java import parse_int, tags_code, utf8
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutStatus

RECALL_TAG = "_RECALL_TAG_"
_BODY = b"0"
_NOT_AVAILABLE = "recall failed, broker service not available"


class RecallParts(Protocol):
    """The parts of a broker that holds waiting messages."""

    options: BrokerOptions
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    steps: ClockSteps
    store: IMessageStore
    topics: TopicConfigManager
    postponement: Postponement
    durability: Durability


class RecallMessageProcessor:
    """Recalls a message by the handle from the answer to its send."""

    def __init__(self, broker: RecallParts) -> None:
        self._broker = broker
        self.processors = {RequestCode.RECALL_MESSAGE: self.recall}

    def recall(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Recall a message and answer with its unique key. Like Apache, do not check that the message still waits."""
        header = decode_header(RecallMessageRequestHeader, command)
        region = {"MSG_REGION": self._broker.options.region_id}
        try:
            self._check_broker()
            handle = self._handle(header)
            self._put(self._message(channel, header, handle))
        except BrokerError as error:
            raise error.with_fields(region) from error
        fields = region | encode_header(RecallMessageResponseHeader(msg_id=handle.unique_key))
        return self._broker.durability.acknowledged(command.answer(ext_fields=fields))

    def _check_broker(self) -> None:
        options = self._broker.options
        if not options.recall_message_enable:
            raise BrokerError(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
        if options.is_slave:
            raise BrokerError(ResponseCode.SLAVE_NOT_AVAILABLE, _NOT_AVAILABLE)
        writable = options.broker_permission & PERM_WRITE or options.allow_recall_when_broker_not_writeable
        if not writable or self._broker.wall_ms() < options.start_accept_send_request_time_stamp:
            raise BrokerError(ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_AVAILABLE)

    def _handle(self, header: RecallMessageRequestHeader) -> RecallHandle:
        """Return the handle if it belongs to this topic, this broker and a time to come. Raises BrokerError."""
        broker = self._broker
        if broker.topics.get(header.topic) is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{header.topic}] not exist")
        try:
            handle = RecallHandle.decode(header.recall_handle)
        except ValueError as error:
            raise BrokerError(ResponseCode.ILLEGAL_OPERATION, str(error)) from error
        if handle.topic != header.topic:
            raise BrokerError(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
        if handle.broker_name != broker.options.broker_name:
            raise BrokerError(ResponseCode.ILLEGAL_OPERATION, _NOT_AVAILABLE)
        left_ms = (parse_int(handle.timestamp, 64) or -1) - broker.now_ms()
        if not 0 < left_ms < broker.options.timer_max_delay_sec * 1000:
            raise BrokerError(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
        return handle

    def _message(self, channel: Channel, header: RecallMessageRequestHeader, handle: RecallHandle) -> InnerMessage:
        now = self._broker.wall_ms()
        deliver_ms = int(handle.timestamp) + self._broker.steps.ms()
        properties = {
            "TAGS": RECALL_TAG,
            "TIMER_DEL_UNIQKEY": f"{handle.topic}+{handle.unique_key}",
            "UNIQ_KEY": handle.unique_key,
            "TIMER_DELIVER_MS": str(deliver_ms),
            "BORN_TIMESTAMP": str(now),
            **({"PGROUP": header.producer_group} if header.producer_group else {}),
        }
        text = utf8(encode_properties(properties))
        return InnerMessage(
            handle.topic, 0, _BODY, text, properties, tags_code(RECALL_TAG),
            born_timestamp=now, born_host=channel.packed_address,
        )  # fmt: skip

    def _put(self, message: InnerMessage) -> None:
        failed = BrokerError(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
        try:
            self._broker.postponement.apply(message)
        except BrokerError as error:
            raise failed from error
        if self._broker.store.put_message(message).status is not PutStatus.PUT_OK:
            raise failed

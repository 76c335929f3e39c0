"""The result of a pop: messages, each with the receipt that acknowledges it."""

from __future__ import annotations

import enum

import attrs

from twisted_mq.client.core.pull_result import readable_messages
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import PopMessageResponseHeader
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.pop_receipt import Receipt, ReceiptError, parse_message_offsets, parse_start_offsets
from twisted_mq.protocol.names.pop_topics import retry_mark
from twisted_mq.protocol.text.properties import PROPERTY_FIRST_POP_TIME, PROPERTY_POP_CK
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header


class PopStatus(enum.Enum):
    """The outcome of a pop (Apache: PopStatus)."""

    FOUND = ResponseCode.SUCCESS
    POLLING_FULL = ResponseCode.POLLING_FULL
    POLLING_NOT_FOUND = ResponseCode.POLLING_TIMEOUT


_STATUS_BY_CODE = {int(status.value): status for status in PopStatus} | {
    int(ResponseCode.PULL_NOT_FOUND): PopStatus.POLLING_NOT_FOUND
}


@attrs.frozen
class PopResult:
    """The messages, retried ones too, under the topic that was popped."""

    status: PopStatus
    messages: tuple[MessageExt, ...] = ()


def pop_result(answer: RemotingCommand, topic: str, broker_name: str) -> PopResult:
    """Return the pop result of an answer (MQClientAPIImpl.processPopResponse).

    Raises BrokerError for any code that is not a result's, ReceiptError or RecordError for damage. A message whose body
    cannot be read is skipped with a log line, and comes again when it is visible.
    """
    status = _STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark or "")
    if status is not PopStatus.FOUND:
        return PopResult(status)
    header = decode_header(PopMessageResponseHeader, answer)
    receipts = _Receipts(header, broker_name)
    messages = []
    for message in readable_messages(answer.body):
        if PROPERTY_POP_CK not in message.properties:  # brokers set it on messages from a retry topic
            message.properties[PROPERTY_POP_CK] = receipts.of(message)
        message.properties.setdefault(PROPERTY_FIRST_POP_TIME, str(header.pop_time))
        messages.append(message if message.topic == topic else attrs.evolve(message, topic=topic))
    return PopResult(status, tuple(messages))


class _Receipts:
    """Makes the receipts of one answer's messages."""

    def __init__(self, header: PopMessageResponseHeader, broker_name: str) -> None:
        self._header = header
        self._broker_name = broker_name
        self._starts = parse_start_offsets(header.start_offset_info)
        self._offsets = parse_message_offsets(header.msg_offset_info)

    def of(self, message: MessageExt) -> str:
        header = self._header
        place = retry_mark(message.topic), message.queue_id
        if place not in self._starts or message.queue_offset not in self._offsets.get(place, ()):
            raise ReceiptError(
                f"the answer to a pop does not name queue offset {message.queue_offset} of queue {message.queue_id}"
            )
        return Receipt(
            self._starts[place], header.pop_time, header.invisible_time, header.revive_qid, place[0],
            self._broker_name, message.queue_id, message.queue_offset,
        ).encode()  # fmt: skip

"""Decodes the answer to a send (Apache: MQClientAPIImpl.processSendResponse)."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs
from attrs import field

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.headers.fields import text
from twisted_mq.protocol.messages.trace import DEFAULT_REGION
from twisted_mq.protocol.text.properties import PROPERTY_MSG_REGION, PROPERTY_TRACE_SWITCH
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.protocol.wire.sent_answers import SentRow, read_sent
from twisted_mq.protocol.wire.shapes import Streak


class SendStatus(enum.Enum):
    """The safety with which a message is stored when its send is answered.

    Only SEND_OK is as safe as the settings of the broker promise.
    """

    SEND_OK = ResponseCode.SUCCESS
    FLUSH_DISK_TIMEOUT = ResponseCode.FLUSH_DISK_TIMEOUT
    FLUSH_SLAVE_TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT
    SLAVE_NOT_AVAILABLE = ResponseCode.SLAVE_NOT_AVAILABLE


@attrs.frozen(kw_only=True)
class _SendAnswer(SendMessageResponseHeader):
    """The header with the two fields that brokers add to each answer to a send."""

    region_id: str | None = field(default=None, metadata=text(PROPERTY_MSG_REGION))
    trace_on: str | None = field(default=None, metadata=text(PROPERTY_TRACE_SWITCH))


_send_answer = fast_header(_SendAnswer)
_STATUS_BY_CODE = {int(status.value): status for status in SendStatus}


@attrs.frozen(slots=False)  # made for each send, and slots double the time that takes
class SendResult:
    """The result of a send. `msg_id` is the unique key; for a batch, the keys of its messages, joined by commas."""

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    """The id of its place in the store; for a batch, the ids of its messages, joined by commas."""
    queue: MessageQueue
    queue_offset: int
    """The queue offset of the (first) message."""
    transaction_id: str | None = None
    recall_handle: str | None = None
    region_id: str = DEFAULT_REGION
    """Region of the broker (MSG_REGION)."""
    trace_on: bool = True
    """The broker accepts traces (TRACE_ON)."""


def send_result(unique_key: str, queue: MessageQueue, answer: RemotingCommand) -> SendResult:
    """Return the result in a broker's answer to the message of that key. Raises BrokerError if the broker did not accept it."""
    status = _STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark or "")
    header = _send_answer(answer)
    return SendResult(
        status,
        header.batch_uniq_id or unique_key,
        header.msg_id,
        queue if header.queue_id == queue.queue_id else attrs.evolve(queue, queue_id=header.queue_id),
        header.queue_offset,
        header.transaction_id,
        header.recall_handle,
        header.region_id or DEFAULT_REGION,
        header.trace_on != "false",
    )


@attrs.frozen
class SentTogether:
    """Answers of one shape: a header with the values that are the same in all, and a row for each."""

    header: _SendAnswer
    rows: list[SentRow]


def read_together(streak: Streak) -> SentTogether | None:
    """Return what answers of one shape say; None if they have to be read one by one."""
    rows = read_sent(streak)
    if rows is None:
        return None
    header: _SendAnswer | None = streak.family.kept
    if header is None:
        try:
            header = streak.family.kept = _send_answer(streak.plain(0))
        except ProtocolError:
            return None
    return None if header.batch_uniq_id else SentTogether(header, rows)


def results(read: SentTogether, unique_keys: Iterable[str], queues: Iterable[MessageQueue]) -> list[SendResult]:
    """Return the results that `send_result` makes of the same answers, for the messages of those keys and queues."""
    header = read.header
    region, trace_on = header.region_id or DEFAULT_REGION, header.trace_on != "false"
    return [
        SendResult(
            SendStatus.SEND_OK,
            key,
            message_id,
            queue if queue_id == queue.queue_id else attrs.evolve(queue, queue_id=queue_id),
            queue_offset,
            transaction_id,
            header.recall_handle,
            region,
            trace_on,
        )
        for (message_id, queue_id, queue_offset, transaction_id), key, queue in zip(read.rows, unique_keys, queues)  # noqa: B905
    ]

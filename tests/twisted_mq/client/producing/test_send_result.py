"""Results of answers to sends."""

from __future__ import annotations

from typing import Any

import pytest

from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.message_checks import SendLimits
from twisted_mq.client.producing.outgoing import outgoing
from twisted_mq.client.producing.send_result import SendResult, SendStatus, send_result
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand

LIMITS = SendLimits()
QUEUE = MessageQueue("T", "broker-a", 3)


def message(body: Any = b"body", topic: str = "T", **rest: Any) -> Message:
    return Message(topic, body, **rest)


@pytest.mark.parametrize("status", SendStatus)
def test_answer_becomes_a_result(status: SendStatus) -> None:
    fields = {"msgId": "OFFSET", "queueId": "1", "queueOffset": "42", "transactionId": "X"}
    answer = RemotingCommand(int(status.value), ext_fields=fields)
    assert send_result(outgoing(message(), "K", LIMITS), QUEUE, answer) == SendResult(
        status=status,
        msg_id="K",
        offset_msg_id="OFFSET",
        queue=MessageQueue("T", "broker-a", 1),
        queue_offset=42,
        transaction_id="X",
    )


def test_refusal_becomes_an_error() -> None:
    answer = RemotingCommand(int(ResponseCode.NO_PERMISSION), remark="not allowed")
    with pytest.raises(BrokerError, match="not allowed") as caught:
        send_result(outgoing(message(), "K", LIMITS), QUEUE, answer)
    assert caught.value.response_code == ResponseCode.NO_PERMISSION

"""Results of answers to sends."""

from __future__ import annotations

import pytest

from twisted_mq.client.producing.send_result import SendResult, SendStatus, send_result
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand

QUEUE = MessageQueue("T", "broker-a", 3)


@pytest.mark.parametrize("status", SendStatus)
def test_answer_becomes_a_result(status: SendStatus) -> None:
    fields = {"msgId": "OFFSET", "queueId": "1", "queueOffset": "42", "transactionId": "X"}
    answer = RemotingCommand(int(status.value), ext_fields=fields)
    assert send_result("K", QUEUE, answer) == SendResult(
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
        send_result("K", QUEUE, answer)
    assert caught.value.response_code == ResponseCode.NO_PERMISSION

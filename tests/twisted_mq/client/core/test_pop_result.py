"""Results of answers to pops."""

from __future__ import annotations

import pytest

from twisted_mq.client.core.pop_result import PopResult, PopStatus, pop_result
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import PopMessageResponseHeader
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.names.pop_receipt import Receipt, ReceiptError
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header

HOST = pack_host("127.0.0.1", 10911)
RETRIED = Receipt(4, 900, 5000, 2, "1", "broker-a", 0, 4).encode()


def record(topic: str, queue: int, offset: int, sys_flag: int = 0, **properties: str) -> bytes:
    held = encode_properties(properties).encode()
    return encode_record(topic.encode(), b"x", held, queue, offset, 0, 1, HOST, 2, HOST, sys_flag=sys_flag)


def popped(*records: bytes, starts: str = "0 1 5", offsets: str = "0 1 5,7") -> PopResult:
    header = PopMessageResponseHeader(
        pop_time=900, invisible_time=5000, revive_qid=2, rest_num=0, start_offset_info=starts, msg_offset_info=offsets
    )
    answer = RemotingCommand(ResponseCode.SUCCESS, ext_fields=encode_header(header), body=b"".join(records))
    return pop_result(answer, "T", "broker-a")


def test_receipts_are_put_together_from_the_answer() -> None:
    messages = popped(record("T", 1, 5), record("T", 1, 7)).messages
    assert [one.properties for one in messages] == [
        {"POP_CK": f"5 900 5000 2 0 broker-a 1 {offset}", "1ST_POP_TIME": "900"} for offset in (5, 7)
    ]


def test_retried_message_has_its_receipt_with_it_and_comes_under_its_topic() -> None:
    """Brokers send it under the topic of its origin, or as it lies in the retry topic."""
    (message,) = popped(
        record("T", 0, 4, POP_CK=RETRIED, **{"1ST_POP_TIME": "3"}), starts="1 0 4", offsets="1 0 4"
    ).messages
    assert (message.topic, message.properties) == ("T", {"POP_CK": RETRIED, "1ST_POP_TIME": "3"})
    (message,) = popped(record("%RETRY%g_T", 0, 4), starts="1 0 4", offsets="1 0 4").messages
    assert (message.topic, message.properties["POP_CK"]) == ("T", RETRIED)


def test_message_that_the_answer_does_not_name_is_an_error() -> None:
    with pytest.raises(ReceiptError, match="does not name queue offset 6 of queue 1"):
        popped(record("T", 1, 6))


def test_body_that_cannot_be_read_is_passed_by() -> None:
    assert [one.queue_offset for one in popped(record("T", 1, 5, sys_flag=1), record("T", 1, 7)).messages] == [7]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.POLLING_FULL, PopStatus.POLLING_FULL),
        (ResponseCode.POLLING_TIMEOUT, PopStatus.POLLING_NOT_FOUND),
        (ResponseCode.PULL_NOT_FOUND, PopStatus.POLLING_NOT_FOUND),
    ],
)
def test_answers_without_messages(code: ResponseCode, status: PopStatus) -> None:
    assert pop_result(RemotingCommand(code), "T", "broker-a") == PopResult(status)


def test_other_answers_are_refusals() -> None:
    with pytest.raises(BrokerError, match="no"):
        pop_result(RemotingCommand(ResponseCode.SYSTEM_ERROR, remark="no"), "T", "broker-a")

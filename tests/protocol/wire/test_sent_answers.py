"""Answers to many sends equal those that are made one by one."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.layouts.message_id import offset_message_id_pattern
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.sent_answers import SentAnswers

HOST = b"\x7f\x00\x00\x02\x00\x00\x51\xaf"
ALWAYS = {"MSG_REGION": "Default%sRegion", "TRACE_ON": "true"}


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("code", [0, 10])
@pytest.mark.parametrize(
    "queue_offsets",
    [[7, 8, 9], [9, 10, 2**62], [10, 9, 11], [37]],
    ids=["one length", "three lengths", "other between", "percent"],
)
@pytest.mark.parametrize("alike", [True, False])
def test_they_equal_answers_made_one_by_one(
    serialize_type: int, code: int, queue_offsets: list[int], alike: bool
) -> None:
    encode = answer_encoder(SendMessageResponseHeader, ALWAYS)
    count = len(queue_offsets)
    opaques, places = [99_997 + index for index in range(count)], [0, 4711, 2**40, 2**41][: count + 1]
    keys, queues = [b"C0A8%d" % index for index in range(count)], [b"37", b"10", b"99"][:count]
    if not alike:
        opaques, queues = [opaque + 2 for opaque in opaques], [b"37", b"9", b"100"][:count]
    pattern = offset_message_id_pattern(HOST)
    expected = [
        encode(
            RemotingCommand(310, opaque, serialize_type=serialize_type), code, None, 0,
            msg_id=pattern % place, queue_id=int(queue), queue_offset=offset, transaction_id=key.decode(),
        )
        for opaque, place, offset, key, queue in zip(opaques, places, queue_offsets, keys, queues, strict=False)
    ]  # fmt: skip
    written = [opaque.to_bytes(4, "big") if serialize_type else b"%d" % opaque for opaque in opaques]
    answers = SentAnswers(HOST, ALWAYS, serialize_type)
    assert answers.encode(code, written, places, queues, queue_offsets, keys, alike=alike) == b"".join(expected)

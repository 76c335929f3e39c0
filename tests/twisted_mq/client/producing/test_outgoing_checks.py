"""Messages that are refused before the send."""

from __future__ import annotations

from typing import Any

import pytest

from twisted_mq.client.core.errors import MessageIllegal
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.outgoing import check_batch, check_message
from twisted_mq.client.producing.producer_options import SendLimits

LIMITS = SendLimits()


def message(body: Any = b"body", topic: str = "T", **rest: Any) -> Message:
    return Message(topic, body, **rest)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (message(topic=""), "blank"),
        (message(topic="../x"), "illegal characters"),
        (message(topic="a b"), "illegal characters"),
        (message(topic="x" * 128), "longer than"),
        (message(topic="SCHEDULE_TOPIC_XXXX"), "is a system topic"),
        (message(body=b""), "the body is empty"),
        (message(body="text"), "must be bytes, got str"),
        (message(body=None), "must be bytes, got NoneType"),
        (message(body=b"x" * (4 * 1024 * 1024 + 1)), "max_message_size is 4194304"),
        (message(properties={"a": "b\x01"}), r"must not contain the characters U\+0001"),
        (message(properties={"a\x02": "b"}), r"must not contain the characters U\+0001"),
        (message(properties={"a": 1}), "names and values must be str"),
        (message(properties={"": "1"}), "names not empty"),
        (message(properties={"a": "x" * 32767}), "the limit is 32767"),
    ],
)
def test_message_no_broker_would_take_is_refused_with_the_reason(bad: Message, reason: str) -> None:
    with pytest.raises(MessageIllegal, match=reason):
        check_message(bad, LIMITS)


def test_good_message_passes() -> None:
    check_message(message(topic="%RETRY%g", tags="A", keys="k"), LIMITS)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([], "needs at least one message"),
        ([message(), message(topic="U")], "a batch must have one topic"),
        ([message(), message(delay_time_level=1)], "delayed"),
        ([message(topic="%RETRY%g")], "retry topic"),
        ([message(), message(properties={"WAIT": "false"})], "WAIT"),
        ([message(), message(body=b"")], "empty"),
    ],
)
def test_batch_no_broker_would_take_is_refused(batch: list[Message], reason: str) -> None:
    with pytest.raises(MessageIllegal, match=reason):
        check_batch(batch, LIMITS)

"""Changes of a topic's attributes: what they do, and Apache's words for those that are refused."""

from __future__ import annotations

import pytest

from twisted_mq.broker.topics.topic_attributes import altered, parse_changes
from twisted_mq.protocol.errors import BrokerError


def test_changes_are_parsed_with_their_signs() -> None:
    assert parse_changes("+message.type=FIFO,-reserve.time") == {"+message.type": "FIFO", "-reserve.time": ""}
    assert parse_changes("") == {}


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("message.type=FIFO", "add/alter attribute format is wrong: message.type"),
        ("message.type", "delete attribute format is wrong: message.type"),
        ("+a=1,+a=2", "key duplication: +a"),
        (",", "delete attribute format is wrong: "),
    ],
)
def test_unreadable_changes_are_refused(text: str, remark: str) -> None:
    with pytest.raises(BrokerError) as caught:
        parse_changes(text)
    assert (caught.value.response_code, caught.value.remark) == (1, remark)


@pytest.mark.parametrize(
    ("current", "changes", "after"),
    [
        (None, {}, {}),
        (
            None,
            {"+message.type": "FIFO", "+queue.type": "SimpleCQ"},
            {"message.type": "FIFO", "queue.type": "SimpleCQ"},
        ),
        ({"message.type": "FIFO"}, {}, {"message.type": "FIFO"}),
        ({"message.type": "FIFO"}, {"+message.type": "DELAY"}, {"message.type": "DELAY"}),
        ({"message.type": "FIFO"}, {"+reserve.time": "-1"}, {"message.type": "FIFO", "reserve.time": "-1"}),
        ({"message.type": "FIFO"}, {"-message.type": ""}, {}),
    ],
)
def test_changes_apply_to_what_there_is(
    current: dict[str, str] | None, changes: dict[str, str], after: dict[str, str]
) -> None:
    assert altered(current, changes) == after


@pytest.mark.parametrize(
    ("current", "changes", "remark"),
    [
        (None, {"-message.type": ""}, "only add attribute is supported while creating topic. key: message.type"),
        ({}, {"message.type": ""}, "wrong format key: essage.type"),
        ({}, {"-message.type": ""}, "attempt to delete a nonexistent key: message.type"),
        (None, {"+colour": "red"}, "unsupported key: colour"),
        ({}, {"+queue.type": "SimpleCQ"}, "attempt to update an unchangeable attribute. key: queue.type"),
        (None, {"+reserve.time": "soon"}, 'For input string: "soon"'),
        (None, {"+reserve.time": "-2"}, "value is not in range(-1, 9223372036854775807)"),
        (None, {"+queue.type": "X"}, "value is not in set: [BatchCQ, SimpleCQ]"),
        (None, {"+": "1"}, "kv string format wrong."),
        (None, {"+a-b": "1"}, "kv string format wrong."),
        ({"message.type": "FIFO"}, {"+message.type": "DELAY", "-message.type": ""},
         "alter duplication key. key: message.type"),
    ],
)  # fmt: skip
def test_changes_that_cannot_be_made_are_refused(
    current: dict[str, str] | None, changes: dict[str, str], remark: str
) -> None:
    with pytest.raises(BrokerError) as caught:
        altered(current, changes)
    assert (caught.value.response_code, caught.value.remark) == (1, remark)

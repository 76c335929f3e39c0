"""Message types by properties: which one counts where several apply, and what a priority is."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.messages.message_type import message_type, priority_of

PRIORITY = "_SYS_MSG_PRIORITY_"


@pytest.mark.parametrize(
    ("properties", "type_"),
    [
        ({}, "NORMAL"),
        ({"TRAN_MSG": "false"}, "NORMAL"),
        ({PRIORITY: "3"}, "PRIORITY"),
        ({PRIORITY: "3", "__SHARDINGKEY": "a"}, "FIFO"),
        ({PRIORITY: "3", "__SHARDINGKEY": "a", "TIMER_DELAY_MS": "5"}, "DELAY"),
        ({PRIORITY: "3", "DELAY": "1", "TRAN_MSG": "true"}, "TRANSACTION"),
    ],
)
def test_the_first_type_that_applies_counts(properties: dict[str, str], type_: str) -> None:
    assert message_type(properties) == type_


@pytest.mark.parametrize(
    ("text", "priority"), [("0", 0), ("7", 7), ("-1", None), ("x", None), ("", None), (str(1 << 31), None)]
)
def test_a_priority_is_a_number_from_0_on(text: str, priority: int | None) -> None:
    assert priority_of({PRIORITY: text}) == priority
    assert priority_of({}) is None

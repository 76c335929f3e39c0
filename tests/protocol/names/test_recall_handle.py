from __future__ import annotations

import pytest

from twisted_mq.protocol.names.recall_handle import RecallHandle, handle_of

RECORDED = "djEgQ2FwRGVsYXkgYnJva2VyLWNhcCAxNzk1MjE3OTA3MDAxIEMwMDAwMjAyNUE2MDRFMEUyRjJBNjZFQjZDMUYwMDA0"
"""Printed by Apache's client in the scenario timer_message."""
MEANING = RecallHandle("CapDelay", "broker-cap", "1795217907001", "C00002025A604E0E2F2A66EB6C1F0004")
WAITING = {"TIMER_OUT_MS": "1795217907000", "REAL_TOPIC": "CapDelay", "UNIQ_KEY": MEANING.unique_key}


def test_recorded_handle_is_read_and_written() -> None:
    assert RecallHandle.decode(RECORDED) == MEANING
    assert MEANING.encode() == RECORDED
    assert handle_of(WAITING, "broker-cap") == RECORDED


def test_padding_may_be_missing_as_in_java() -> None:
    padded = RecallHandle("T", "b", "1", "K").encode()
    assert padded.endswith("=")
    assert RecallHandle.decode(padded.rstrip("=")) == RecallHandle("T", "b", "1", "K")


@pytest.mark.parametrize("text", ["", "?", "djE=", "djIgYSBiIGMgZA==", "a+/a", "é"])
def test_what_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="recall handle is invalid"):
        RecallHandle.decode(text)


@pytest.mark.parametrize(
    "change",
    [{"TIMER_OUT_MS": "x"}, {"REAL_TOPIC": "%RETRY%G"}],
)
def test_messages_that_do_not_wait_for_a_time_have_no_handle(change: dict[str, str]) -> None:
    assert handle_of({**WAITING, **change}, "broker-cap") is None
    assert handle_of({}, "broker-cap") is None

"""Sends with odd properties, names and times: each is stored or refused, none stops the broker or another's message."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.validation import topic_fault

FIELDS = {"a": "P", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "j": "0"}
MANY = 100_000


def send(broker: BrokerInMemory, topic: str, properties: str) -> int:
    peer = broker.connect()
    peer.ask_later(RequestCode.SEND_MESSAGE_V2, {**FIELDS, "b": topic, "i": properties}, b"x")
    for _ in range(100):
        broker.clock.advance(0)
        for answer in peer.received():
            return answer.code
    raise AssertionError("no answer")


@pytest.mark.parametrize(
    "properties",
    [
        "".join(f"k{number}\x01v\x02" for number in range(MANY)),
        "\x01" * MANY,
        "\x02" * MANY,
        "\x01\x02" * MANY,
        "k\x01" * MANY,
        "KEYS\x01" + "a " * MANY + "\x02",
        "TAGS\x01" + "\u00e9" * MANY + "\x02",
        "\x00" * 1000,
        "TAGS\x01a\x02" * 5000,
    ],
    ids=["keys", "ones", "twos", "pairs", "open", "index keys", "a long tag", "zeros", "one name"],
)
def test_odd_properties_are_stored_or_refused(properties: str) -> None:
    broker = BrokerInMemory()
    code = send(broker, "T", properties)
    assert send(broker, "T", "KEYS\x01k\x02") == 0
    stored = broker.store.get_message("T", 0, 0, 32, 1 << 24, None).records
    assert len(stored) == 1 + (code == 0)


NAMES = (
    "\u00e4", "\u0442\u0435\u043c\u0430", "\u4e3b\u9898", "a\u0301", "\U0001f600", "\ufeffT", "T\u200b", "\u202eT",
    "T\n", "T/..", "..", "T\x00", "%RETRY%\u4e3b", "\ud800", "T" * 128, "", " ", "CON", "T ", "t\u0130",
)  # fmt: skip


@pytest.mark.parametrize("topic", NAMES, ids=ascii)
def test_names_in_every_kind_of_letter_make_no_topic_that_is_not_allowed(topic: str) -> None:
    broker = BrokerInMemory()
    try:
        code = send(broker, topic, "")
    except UnicodeEncodeError:
        pytest.skip("no frame has this text")
    assert (code == 0) == (topic_fault(topic) is None)
    assert send(broker, "T2", "") == 0


TIMES = (
    "0", "-1", "1", str(2**31), str(2**63 - 1), str(2**63), str(-(2**63)), "9" * 400, "1e9", "0x10", "\u0661", "", " 1", "soon",
    "253402300800000", "951782400000", "4107542400000",
)  # fmt: skip
"""Numbers that are none, of many digits, and ms of 10000-01-01, 2000-02-29 and 2100-02-28."""


@pytest.mark.parametrize("name", ["TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC", "DELAY"])
@pytest.mark.parametrize("value", TIMES, ids=ascii)
def test_timers_at_odd_dates_are_answered_and_delay_nobody_else(name: str, value: str) -> None:
    broker = BrokerInMemory(timer_wheel_enable=True)
    send(broker, "T", f"{name}\x01{value}\x02")
    assert send(broker, "T", "KEYS\x01after\x02") == 0
    broker.clock.advance(1)
    stored = broker.store.get_message("T", 0, 0, 32, 1 << 20, None).records
    assert any(b"after" in bytes(one) for one in stored)

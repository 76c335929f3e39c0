"""Topics of messages with a later delivery."""

from __future__ import annotations

import random

import pytest

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.postpone import Postponement, PostponeRefused, last_tick_before
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.text.properties import decode_properties, encode_properties
from twisted_mq.storage.interfaces import InnerMessage

NOW = 1_795_217_904_671


def postponement(crowd: int = 0, **options: object) -> Postponement:
    return Postponement(
        BrokerOptions(broker_name="b", **options), lambda: NOW, random.Random(1), lambda deliver_ms: crowd
    )


def message(*, sys_flag: int = 0, topic: str = "T", **properties: str) -> InnerMessage:
    text = encode_properties(properties).encode()
    return InnerMessage(topic, 3, b"x", text, dict(properties), 0, sys_flag=sys_flag)


def applied(one: InnerMessage, **options: object) -> tuple[str, int, dict[str, str]]:
    """Return the topic and the properties of a message; both forms of its properties agree."""
    postponement(**options).apply(one)
    assert decode_properties(one.properties.decode()) == one.property_map
    return one.topic, one.queue_id, one.property_map


def test_delay_level_waits_in_the_queue_below_its_number() -> None:
    real = {"REAL_TOPIC": "T", "REAL_QID": "3"}
    assert applied(message(DELAY="1", KEYS="k")) == ("SCHEDULE_TOPIC_XXXX", 0, {"DELAY": "1", "KEYS": "k", **real})
    assert applied(message(DELAY="18")) == ("SCHEDULE_TOPIC_XXXX", 17, {"DELAY": "18", **real})


def test_level_past_the_last_one_counts_as_the_last() -> None:
    assert applied(message(DELAY="99"))[1:] == (17, {"DELAY": "18", "REAL_TOPIC": "T", "REAL_QID": "3"})
    assert applied(message(DELAY="5"), message_delay_level="1s 2s")[1] == 1


@pytest.mark.parametrize("level", ["0", "-1"])
def test_no_level_is_no_delay(level: str) -> None:
    assert applied(message(DELAY=level)) == ("T", 3, {"DELAY": level})


def test_claimed_real_topic_is_replaced() -> None:
    found = applied(message(DELAY="1", REAL_TOPIC="Other", REAL_QID="9"))
    assert found[2] == {"DELAY": "1", "REAL_TOPIC": "T", "REAL_QID": "3"}


def test_level_that_is_no_number_is_refused() -> None:
    with pytest.raises(BrokerError, match="property DELAY: must be a level of at least 1, got 'soon'"):
        applied(message(DELAY="soon"))


@pytest.mark.parametrize(
    ("name", "value", "out_ms"),
    [
        ("TIMER_DELAY_MS", "3000", 1_795_217_907_000),
        ("TIMER_DELIVER_MS", "1795217908673", 1_795_217_908_000),
        ("TIMER_DELAY_SEC", "2", 1_795_217_906_000),
        ("TIMER_DELIVER_MS", "1795217908000", 1_795_217_907_000),
        ("TIMER_DELAY_SEC", "259200", 1_795_477_104_000),
    ],
)
def test_time_waits_in_the_timer_topic_for_its_second(name: str, value: str, out_ms: int) -> None:
    """The first three as recorded in the scenario timer_message; the fourth: a whole second is the tick before."""
    real = {"TIMER_OUT_MS": str(out_ms), "REAL_TOPIC": "T", "REAL_QID": "3"}
    assert applied(message(**{name: value})) == ("rmq_sys_wheel_timer", 0, {name: value, **real})


def test_first_of_several_times_counts() -> None:
    found = applied(message(TIMER_DELIVER_MS="1795217999000", TIMER_DELAY_MS="60000", TIMER_DELAY_SEC="2"))
    assert found[2]["TIMER_OUT_MS"] == "1795217906000"


@pytest.mark.parametrize("value", ["1795217904671", "0", "-5"])
def test_time_that_is_over_is_no_delay(value: str) -> None:
    assert applied(message(TIMER_DELIVER_MS=value)) == ("T", 3, {"TIMER_DELIVER_MS": value})


def test_level_wins_over_times() -> None:
    found = applied(message(DELAY="2", TIMER_DELIVER_MS="1795217999000", TIMER_DELAY_SEC="x"))
    assert found == ("SCHEDULE_TOPIC_XXXX", 1, {"DELAY": "2", "REAL_TOPIC": "T", "REAL_QID": "3"})


def test_message_that_waited_for_its_time_does_not_wait_again() -> None:
    properties = {"TIMER_DELAY_SEC": "5", "TIMER_OUT_MS": "1795217900000"}
    assert applied(message(**properties)) == ("T", 3, properties)


@pytest.mark.parametrize("sys_flag", [0x4, 0xC])
def test_half_messages_and_rollbacks_do_not_wait(sys_flag: int) -> None:
    assert applied(message(sys_flag=sys_flag, DELAY="1")) == ("T", 3, {"DELAY": "1"})


def test_committed_message_waits() -> None:
    assert applied(message(sys_flag=0x8, DELAY="1"))[0] == "SCHEDULE_TOPIC_XXXX"


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "259201"},
        {"TIMER_DELAY_MS": "soon"},
        {"TIMER_DELIVER_MS": "1795217904000", "TIMER_DEL_UNIQKEY": "T+K"},
    ],
    ids=["past the limit", "no number", "recall of the past"],
)
def test_illegal_time_is_refused_with_apaches_words(properties: dict[str, str]) -> None:
    with pytest.raises(PostponeRefused) as refused:
        applied(message(**properties))
    assert (refused.value.status, refused.value.response_code) == ("WHEEL_TIMER_MSG_ILLEGAL", 13)
    assert refused.value.remark == (
        "timer message illegal, the delay time should not be bigger than the max delay 259200000ms;"
        " or if set del msg, the delay time should be bigger than the current time"
    )


def test_without_the_wheel_times_are_refused() -> None:
    with pytest.raises(PostponeRefused, match="accurate timer message is not enabled, timerWheelEnable is false"):
        applied(message(TIMER_DELAY_SEC="1"), timer_wheel_enable=False)


def test_crowded_second_is_refused_always_from_twice_the_limit_on_and_sometimes_before() -> None:
    def taken(crowd: int) -> int:
        rule = postponement(crowd, timer_congest_num_each_slot=100)
        count = 0
        for _ in range(200):
            try:
                rule.apply(message(TIMER_DELAY_SEC="9"))
                count += 1
            except PostponeRefused as refused:
                assert refused.status == "WHEEL_TIMER_FLOW_CONTROL"
        return count

    assert (taken(100), taken(200)) == (200, 0)
    assert 0 < taken(190) < taken(110) < 200


@pytest.mark.parametrize(("deliver", "tick"), [(5000, 4000), (5001, 5000), (5999, 5000), (4001, 4000)])
def test_tick_ends_at_or_behind_its_time(deliver: int, tick: int) -> None:
    assert last_tick_before(deliver, 1000) == tick

from __future__ import annotations

from twisted_mq.protocol.layouts.timer import (
    LOG_BLANK_BYTES,
    LOG_UNIT,
    TIMER_LOG_BLANK,
    TIMER_LOG_UNIT,
    TIMER_WHEEL_SLOT,
    WHEEL_SLOT,
    LogUnit,
    encode_log_blank,
)


def test_a_log_unit_names_its_fields_in_apache_s_order() -> None:
    values = (52, -1, 1, 1795216734000, 5000, 240, 300, -7, 0)
    parsed = TIMER_LOG_UNIT.parse(LOG_UNIT.pack(*values))
    assert {name: parsed[name] for name in ("size", "previous_position", "delay_time", "topic_hash")} == {
        "size": 52,
        "previous_position": -1,
        "delay_time": 5000,
        "topic_hash": -7,
    }


def test_a_unit_s_names_are_the_layout_s() -> None:
    assert LogUnit._fields == tuple(subcon.name for subcon in TIMER_LOG_UNIT.subcons)


def test_a_blank_is_as_the_layout_builds_it() -> None:
    assert (
        encode_log_blank(88) == TIMER_LOG_BLANK.build({"size": 88}) == bytes.fromhex("00000058" + 16 * "0" + "cbd43194")
    )
    assert len(encode_log_blank(88)) == LOG_BLANK_BYTES == 16


def test_a_wheel_slot_names_its_fields_in_apache_s_order() -> None:
    parsed = TIMER_WHEEL_SLOT.parse(WHEEL_SLOT.pack(1795216734, 0, 52, 2, 0))
    assert (parsed.time, parsed.first_position, parsed.last_position, parsed.count) == (1795216734, 0, 52, 2)

from __future__ import annotations

import pytest

from twisted_mq.protocol.messages.delay_levels import DEFAULT_DELAY_TABLE, delivery_time, parse_delay_levels


def test_the_default_levels_are_apache_s() -> None:
    assert len(DEFAULT_DELAY_TABLE) == 18
    assert [DEFAULT_DELAY_TABLE[level] for level in (1, 5, 9, 18)] == [1000, 60_000, 300_000, 7_200_000]


def test_units_are_seconds_minutes_hours_days() -> None:
    assert parse_delay_levels("2s 3m 4h  5d") == {1: 2000, 2: 180_000, 3: 14_400_000, 4: 432_000_000}


@pytest.mark.parametrize("text", ["5", "s", "5x", "-1s", "1.5s"])
def test_a_part_without_number_or_unit_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="delay level 2"):
        parse_delay_levels(f"1s {text}")


def test_delivery_is_the_store_time_and_the_level_s_delay() -> None:
    assert delivery_time(2, 1_000_000) == 1_005_000


def test_a_level_past_the_last_counts_as_the_last() -> None:
    assert delivery_time(99, 0) == 7_200_000


def test_without_any_level_a_second_passes() -> None:
    assert delivery_time(1, 0, {}) == 1000

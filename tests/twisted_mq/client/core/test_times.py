"""Times of users: moments and lengths, and those that can't be meant."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from twisted_mq.client import ClientOptionIllegal, ConsumerOptions, Message
from twisted_mq.client.core.times import length_ms, moment_ms


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1_795_217_217.25, 1_795_217_217_250),
        (1_795_217_217, 1_795_217_217_000),
        (1_795_217_217.29, 1_795_217_217_290),
        (datetime(2026, 11, 22, 8, 0, tzinfo=UTC), 1_795_334_400_000),
        (datetime(2026, 11, 22, 9, 0, tzinfo=timezone(timedelta(hours=1))), 1_795_334_400_000),
        (datetime.fromtimestamp(1_795_217_217.5, UTC).astimezone().replace(tzinfo=None), 1_795_217_217_500),
    ],
)
def test_a_moment_is_a_datetime_or_seconds(given: Any, expected: int) -> None:
    assert moment_ms(given, "time") == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (1_795_217_217_000, "it looks like milliseconds; use seconds, like time.time()"),
        (0, "use a datetime, or seconds since 1970"),
        (-1.0, "use a datetime, or seconds since 1970"),
        (math.inf, "use a datetime, or seconds since 1970"),
        (datetime(1999, 1, 1, tzinfo=UTC), "is outside of the years 2000 to 2100"),
        (math.nan, "must be a datetime or seconds since 1970"),
        ("2026-11-22", "must be a datetime or seconds since 1970"),
        (True, "must be a datetime or seconds since 1970"),
    ],
)
def test_a_moment_that_cannot_be_meant_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ClientOptionIllegal) as refused:
        moment_ms(given, "time")
    assert str(refused.value).startswith("time: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "expected"), [(0, 0), (0.9, 900), (3, 3000), (0.0004, 0), (timedelta(minutes=1, milliseconds=5), 60_005)]
)
def test_a_length_is_a_timedelta_or_seconds(given: Any, expected: int) -> None:
    assert length_ms(given, "delay") == expected


@pytest.mark.parametrize(
    "given", [-1, math.nan, "3", 1_795_217_217.0, timedelta(days=400), timedelta(seconds=-1), True]
)
def test_a_length_that_cannot_be_meant_is_refused(given: Any) -> None:
    with pytest.raises(ClientOptionIllegal, match=r"^delay: "):
        length_ms(given, "delay")


def test_messages_and_options_name_the_argument() -> None:
    with pytest.raises(ClientOptionIllegal, match=r"^delay_time_seconds: -1 "):
        Message("T", b"x", delay_time_seconds=-1)
    with pytest.raises(ClientOptionIllegal, match=r"^deliver_time: 1795217217000 .*milliseconds"):
        Message("T", b"x", deliver_time=1_795_217_217_000)
    with pytest.raises(ClientOptionIllegal, match=r"^ConsumerOptions\.consume_timestamp: 5 "):
        ConsumerOptions(consume_timestamp=5)

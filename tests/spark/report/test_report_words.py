"""Figures as people read them."""

from __future__ import annotations

import pytest

from twisted_mq.spark.jobs.latency import STEPS_MS
from twisted_mq.spark.report.report_words import (
    bytes_text,
    count_or_dash,
    count_text,
    duration_text,
    offsets_text,
    step_texts,
    time_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count_text(1234567), "1,234,567"),
        (count_or_dash(0), "-"),
        (count_or_dash(1000), "1,000"),
        (bytes_text(0), "0 B"),
        (bytes_text(1023), "1023 B"),
        (bytes_text(1536), "1.5 KiB"),
        (bytes_text(5 << 60), "5120.0 PiB"),
        (duration_text(None), "-"),
        (duration_text(999), "999 ms"),
        (duration_text(-1500), "-1.5 s"),
        (duration_text(90_000), "1.5 min"),
        (duration_text(7_200_000), "2.0 h"),
        (time_text(None), "-"),
        (time_text(1_795_216_734_968), "2026-11-20 23:18:54 UTC"),
        (offsets_text(3, 3), "3"),
        (offsets_text(0, 99), "0..99"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert text == expected


def test_each_step_has_a_name() -> None:
    names = step_texts()
    assert len(names) == len(STEPS_MS) + 1
    assert names[:4] == ["below 0", "0-1 ms", "1-2 ms", "2-5 ms"]
    assert names[10:] == ["500 ms-1 s", "1-2 s", "2-5 s", "5-10 s", "10 s-1 min", "1-10 min", "10 min-1 h", "over 1 h"]

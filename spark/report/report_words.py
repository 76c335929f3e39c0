"""Readable forms of numbers, the same in the terminal and on the page."""

from __future__ import annotations

import datetime
import itertools

from twisted_mq.spark.jobs.latency import STEPS_MS

NOTHING = "-"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS


def count_text(count: int) -> str:
    """12345 is 12,345."""
    return f"{count:,}"


def count_or_dash(count: int) -> str:
    """Return a dash for 0, so that other numbers are visible."""
    return count_text(count) if count else NOTHING


def bytes_text(size: int) -> str:
    """1536 is 1.5 KiB."""
    value = float(size)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def duration_text(ms: int | None) -> str:
    """Return a duration: 12 ms, 1.5 s, 2.0 min, 3.1 h; a dash for None."""
    if ms is None:
        return NOTHING
    for unit_ms, unit in ((_HOUR_MS, "h"), (_MINUTE_MS, "min"), (_SECOND_MS, "s")):
        if abs(ms) >= unit_ms:
            return f"{ms / unit_ms:.1f} {unit}"
    return f"{ms} ms"


def time_text(ms: int | None) -> str:
    """Return a time in UTC, to the second; a dash for None."""
    if ms is None:
        return NOTHING
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def offsets_text(first: int, last: int) -> str:
    """Return 0..99, or 7 for a single offset."""
    return str(first) if first == last else f"{first}..{last}"


def step_texts() -> list[str]:
    """Return the names of the steps of a latency histogram: below 0, 0-1 ms, 1-2 ms, ..., over 1.0 h."""
    names = ["below 0"]
    for step, following in itertools.pairwise(STEPS_MS):
        low, high = duration_text(step).split(), duration_text(following).split()
        number = low[0].removesuffix(".0"), high[0].removesuffix(".0")
        same = low[1] == high[1] or step == 0
        names.append(f"{number[0]}-{number[1]} {high[1]}" if same else f"{number[0]} {low[1]}-{number[1]} {high[1]}")
    return [*names, "over " + duration_text(STEPS_MS[-1]).replace(".0", "")]

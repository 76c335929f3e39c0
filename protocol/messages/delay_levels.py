"""Delay levels: the configuration's text, and when a delayed message is due (Apache: ScheduleMessageService)."""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""Apache: MessageStoreConfig.messageDelayLevel; levels count from 1."""

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile(r"([0-9]{1,10})([smhd])")
_UNKNOWN_LEVEL_MS = 1000


def parse_delay_levels(text: str) -> dict[int, int]:
    """Return level to delay in ms. Raises ValueError, which names the part that is not a number with s, m, h or d."""
    table: dict[int, int] = {}
    for level, part in enumerate(text.split(), start=1):
        match = _LEVEL.fullmatch(part)
        if match is None:
            raise ValueError(f"delay level {level} is {part!r}, a number with s, m, h or d is needed")
        table[level] = int(match[1]) * _UNIT_MS[match[2]]
    return table


DEFAULT_DELAY_TABLE: Mapping[int, int] = parse_delay_levels(DEFAULT_DELAY_LEVELS)


def delivery_time(level: int, store_timestamp: int, table: Mapping[int, int] = DEFAULT_DELAY_TABLE) -> int:
    """Return when a message of that level is due, in ms; a level past the last one counts as the last."""
    return store_timestamp + table.get(min(level, max(table, default=0)), _UNKNOWN_LEVEL_MS)

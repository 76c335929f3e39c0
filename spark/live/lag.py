"""Lag of a stream behind the ends of its queues, from the progress that Spark reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted_mq.spark.live.offset_maps import OffsetMap, flat, nested


def lag(progress: Mapping[str, Any]) -> OffsetMap:
    """Return unread messages by queue: `lag(query.lastProgress)`. Other sources are skipped."""
    found: dict[Any, int] = {}
    for source in progress["sources"]:
        ends, read = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if ends is not None and read is not None:
            found.update((queue, end - read.get(queue, end)) for queue, end in ends.items())
    return nested(found)


def total_lag(progress: Mapping[str, Any]) -> int:
    """Return the lag of all queues together."""
    return sum(flat(lag(progress)).values())


def _offsets(text: Any) -> dict[Any, int] | None:
    """Return the offsets of a live source; None for other sources."""
    try:
        tree = json.loads(text) if isinstance(text, str) else text
        return flat(tree)
    except (ValueError, AttributeError, KeyError):
        return None

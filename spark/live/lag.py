"""How far a stream is behind the ends of its queues, from the progress that Spark reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted_mq.spark.live.offset_maps import OffsetMap, flat, nested


def lag(progress: Mapping[str, Any]) -> OffsetMap:
    """Messages not read yet, by queue: `lag(query.lastProgress)`. Of other sources nothing is in it."""
    found: dict[Any, int] = {}
    for source in progress["sources"]:
        ends, read = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if ends is not None and read is not None:
            found.update((queue, end - read.get(queue, end)) for queue, end in ends.items())
    return nested(found)


def total_lag(progress: Mapping[str, Any]) -> int:
    """Of all queues together."""
    return sum(flat(lag(progress)).values())


def _offsets(text: Any) -> dict[Any, int] | None:
    """Those of a live source; None of others."""
    try:
        tree = json.loads(text) if isinstance(text, str) else text
        return flat(tree)
    except (ValueError, AttributeError):
        return None

"""How a broker tells operators of messages that a full disk deleted before they were consumed: a row of its runtime info."""

from __future__ import annotations

import json
from collections.abc import Mapping

DELETED_UNCONSUMED = "orderedMessagesDeletedUnconsumed"
"""The row's key; it is there where there is something to tell since the broker's start."""


def deleted_text(counts: Mapping[tuple[str, int], int]) -> str:
    """Counts by topic and queue, as in {"Orders/0": 685}."""
    return json.dumps({f"{topic}/{queue_id}": count for (topic, queue_id), count in sorted(counts.items())})


def deleted_of_topic(text: str, topic: str) -> dict[int, int]:
    """Counts by queue of one topic. Raises ValueError for a text that is none of deleted_text."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{DELETED_UNCONSUMED} is {text!r}, an object is needed")
    rows = [(*place.rpartition("/"), count) for place, count in found.items()]
    return {int(queue_id): int(count) for name, _, queue_id, count in rows if name == topic}

"""Reports messages that a full disk deleted before they were consumed, as a row of the broker's runtime info."""

from __future__ import annotations

import json
from collections.abc import Mapping

DELETED_UNCONSUMED = "orderedMessagesDeletedUnconsumed"
"""The row's key; the row exists if messages were deleted since the broker's start."""


def deleted_text(counts: Mapping[tuple[str, int], int]) -> str:
    """Return counts by topic and queue, as in {"Orders/0": 685}."""
    return json.dumps({f"{topic}/{queue_id}": count for (topic, queue_id), count in sorted(counts.items())})


def deleted_of_topic(text: str, topic: str) -> dict[int, int]:
    """Return counts by queue of one topic. Raises ValueError for a text that deleted_text did not make."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{DELETED_UNCONSUMED} must be a JSON object, got {text!r}")
    rows = [(*place.rpartition("/"), count) for place, count in found.items()]
    return {int(queue_id): int(count) for name, _, queue_id, count in rows if name == topic}

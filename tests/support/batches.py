"""Batches for a store, made of messages."""

from __future__ import annotations

from collections.abc import Sequence

from storage.interfaces import InnerBatch, InnerMessage


def batched(messages: Sequence[InnerMessage]) -> InnerBatch:
    """These as a batch; what its messages share is the first one's."""
    shared = messages[0] if messages else InnerMessage("TopicA", 0, b"", b"", {}, 0)
    entries = [(one.flag, one.body, one.properties) for one in messages]
    return InnerBatch(shared, entries, [one.tags_code for one in messages])

"""Batches for a store, made of messages."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.storage.interfaces import InnerBatch, InnerMessage


def batched(messages: Sequence[InnerMessage]) -> InnerBatch:
    """These as a batch; what its messages share is the first one's."""
    shared = messages[0] if messages else InnerMessage("TopicA", 0, b"", b"", {}, 0)
    columns = [[getattr(one, name) for one in messages] for name in ("flag", "body", "properties", "tags_code")]
    return InnerBatch(shared, *columns)

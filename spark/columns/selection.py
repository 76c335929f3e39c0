"""Selection of messages by topic, queue, tags and store time, applied as soon as these columns are known."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twisted_mq.protocol.columns import Mask
from twisted_mq.storage.columns.record_columns import RecordColumns


@attrs.frozen
class MessageConditions:
    """Conditions for messages; an empty one or None selects all. Times are store times in ms; the end is exclusive."""

    topics: tuple[str, ...] = ()
    topic_pattern: re.Pattern[str] | None = None
    queue_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    start_time_ms: int | None = None
    end_time_ms: int | None = None

    @property
    def names_topics(self) -> bool:
        """Return True if some topics are not selected."""
        return bool(self.topics) or self.topic_pattern is not None

    def wants_topic(self, topic: str) -> bool:
        """Return True if messages of a topic may be selected."""
        if self.topics and topic not in self.topics:
            return False
        return self.topic_pattern is None or self.topic_pattern.fullmatch(topic) is not None

    def by_numbers(self, records: RecordColumns) -> Mask:
        """Select records by queues and times."""
        left: Mask = np.ones(len(records), np.bool_)
        if self.queue_ids:
            left &= np.isin(records.queue_id, self.queue_ids)
        if self.start_time_ms is not None:
            left &= records.store_timestamp >= self.start_time_ms
        if self.end_time_ms is not None:
            left &= records.store_timestamp < self.end_time_ms
        return left

    def by_topics(self, topics: pa.StringArray) -> Mask:
        """Select records by their topics."""
        if not self.names_topics:
            return np.ones(len(topics), np.bool_)
        return _among(topics, [topic for topic in topics.unique().to_pylist() if self.wants_topic(topic)])

    def by_tags(self, tags: pa.StringArray) -> Mask:
        """Select messages by their tags."""
        return _among(tags, self.tags)


EVERYTHING = MessageConditions()


def _among(texts: pa.StringArray, wanted: Sequence[str]) -> Mask:
    found: Mask = np.array(pc.is_in(texts, pa.array(wanted, pa.string())))
    return found

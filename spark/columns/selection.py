"""Which messages are wanted: by topic, queue, tags and store time, told as early as their columns are there."""

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
class Selection:
    """What is empty or None selects all. Times are store times in ms; the end is the first that is not wanted."""

    topics: tuple[str, ...] = ()
    topic_pattern: re.Pattern[str] | None = None
    queue_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    start_time_ms: int | None = None
    end_time_ms: int | None = None

    @property
    def names_topics(self) -> bool:
        """Whether not all topics are wanted."""
        return bool(self.topics) or self.topic_pattern is not None

    def wants_topic(self, topic: str) -> bool:
        """Whether messages of a topic may be wanted."""
        if self.topics and topic not in self.topics:
            return False
        return self.topic_pattern is None or self.topic_pattern.fullmatch(topic) is not None

    def by_numbers(self, records: RecordColumns) -> Mask:
        """What queues and times leave of records."""
        left: Mask = np.ones(len(records), np.bool_)
        if self.queue_ids:
            left &= np.isin(records.queue_id, self.queue_ids)
        if self.start_time_ms is not None:
            left &= records.store_timestamp >= self.start_time_ms
        if self.end_time_ms is not None:
            left &= records.store_timestamp < self.end_time_ms
        return left

    def by_topics(self, topics: pa.StringArray) -> Mask:
        """What their topics leave of records."""
        if not self.names_topics:
            return np.ones(len(topics), np.bool_)
        return _among(topics, [topic for topic in topics.unique().to_pylist() if self.wants_topic(topic)])

    def by_tags(self, tags: pa.StringArray) -> Mask:
        """What their tags leave of messages."""
        return _among(tags, self.tags)


EVERYTHING = Selection()


def _among(texts: pa.StringArray, wanted: Sequence[str]) -> Mask:
    found: Mask = np.array(pc.is_in(texts, pa.array(wanted, pa.string())))
    return found

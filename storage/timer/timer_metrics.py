"""config/timermetrics: the number of each topic's messages that wait for their time (Apache: TimerMetrics).

{"dataVersion":{"counter":2,...},"timingCount":{"TopicA":{"count":1,"timeStamp":1795217904671}}}
"""

from __future__ import annotations

from twisted_mq.protocol.bodies import DataVersion, TimerMetric, TimerMetricsSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body, encode_body
from twisted_mq.storage.files.json_file import JsonFile


class TimerMetrics:
    """Counters by topic. A topic whose last message is gone keeps its 0, as in Apache's file."""

    def __init__(self, path: str) -> None:
        self.counts: dict[str, TimerMetric] = {}
        self.data_version = DataVersion()
        self._file = JsonFile(path, lambda data: decode_body(TimerMetricsSerializeWrapper, data))

    def load(self) -> None:
        """Read the file or its backup. Raises OSError."""
        body, _ = self._file.load()
        if body is not None:
            self.counts, self.data_version = dict(body.timing_count), body.data_version

    def add(self, topic: str, number: int, now_ms: int) -> None:
        """Add a number, negative for messages that left, to the counter of a topic."""
        before = self.counts.get(topic)
        self.counts[topic] = TimerMetric((before.count if before else 0) + number, now_ms)
        self.data_version = self.data_version.next_version(now_ms)

    def body(self) -> TimerMetricsSerializeWrapper:
        """Return all counters as they are now."""
        return TimerMetricsSerializeWrapper(dict(self.counts), self.data_version)

    def save(self, body: TimerMetricsSerializeWrapper) -> bool:
        """Write counters if the file would differ. Raises OSError."""
        return self._file.save(encode_body(body))

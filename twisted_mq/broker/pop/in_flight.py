"""Counts the popped messages that are not acknowledged yet, by topic, group and queue (Apache: PopInflightMessageCounter)."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class InFlightMessages:
    """Counts popped messages since `started_ms`. Messages that were popped before are not counted, neither out nor back in."""

    started_ms: int
    _counts: dict[tuple[str, str], dict[int, int]] = attrs.field(factory=dict)

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Return how many messages of a queue a group holds; `topic` is the retry topic for retried messages."""
        return self._counts.get((topic, group), {}).get(queue_id, 0)

    def handed_out(self, topic: str, group: str, queue_id: int, pop_time: int, messages: int) -> None:
        """Count the messages of a pop."""
        self.started_ms = min(self.started_ms, pop_time)  # otherwise nothing could be settled after a clock is set back
        queues = self._counts.setdefault((topic, group), {})
        queues[queue_id] = queues.get(queue_id, 0) + messages

    def settled(self, topic: str, group: str, queue_id: int, pop_time: int, messages: int) -> None:
        """Count messages of that pop time that were acknowledged or came back."""
        queues = self._counts.get((topic, group), {})
        if pop_time >= self.started_ms and queue_id in queues:
            queues[queue_id] -= messages
            if queues[queue_id] <= 0:
                del queues[queue_id]

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Forget the counts of a group that starts again on a queue."""
        self._counts.get((topic, group), {}).pop(queue_id, None)

    def forget_topic(self, topic: str) -> None:
        """Forget a deleted topic."""
        self._counts = {key: queues for key, queues in self._counts.items() if key[0] != topic}

    def forget_group(self, group: str) -> None:
        """Forget a deleted group."""
        self._counts = {key: queues for key, queues in self._counts.items() if key[1] != group}

"""How many popped messages are not acknowledged yet, by topic, group and queue (Apache: PopInflightMessageCounter)."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class InFlightMessages:
    """Counts since `started_ms`: what was popped before is not counted, neither out nor back in."""

    started_ms: int
    _counts: dict[tuple[str, str], dict[int, int]] = attrs.field(factory=dict)

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Messages of a queue that a group holds; `topic` is the retry topic where they were retried."""
        return self._counts.get((topic, group), {}).get(queue_id, 0)

    def handed_out(self, topic: str, group: str, queue_id: int, pop_time: int, messages: int) -> None:
        """Count what a pop took."""
        self.started_ms = min(self.started_ms, pop_time)  # else a clock that is set back lets nothing be settled
        queues = self._counts.setdefault((topic, group), {})
        queues[queue_id] = queues.get(queue_id, 0) + messages

    def settled(self, topic: str, group: str, queue_id: int, pop_time: int, messages: int) -> None:
        """Messages that were popped at that time were acknowledged or came back."""
        queues = self._counts.get((topic, group), {})
        if pop_time >= self.started_ms and queue_id in queues:
            queues[queue_id] -= messages
            if queues[queue_id] <= 0:
                del queues[queue_id]

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """The group begins anew on a queue."""
        self._counts.get((topic, group), {}).pop(queue_id, None)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted."""
        self._counts = {key: queues for key, queues in self._counts.items() if key[0] != topic}

    def forget_group(self, group: str) -> None:
        """A group was deleted."""
        self._counts = {key: queues for key, queues in self._counts.items() if key[1] != group}

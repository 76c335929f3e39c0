"""Keeps the committed offset of each group on each queue (Apache: ConsumerOffsetManager). Saved on the broker's schedule
and at its stop.

No offset is past the end of its queue. A log can lose its end, and the lost queue offsets are then used again: an offset
that outlived them would skip the messages that get them. So every offset that is loaded, committed, reset, cloned or
copied from a master is bounded by the queue's end (Apache bounds none of these).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR, ConsumerOffsetTable

KEYS_OF_SLICE = 8192

Offsets = dict[str, dict[int, int]]


class ConsumerOffsetManager:
    """Offsets by "topic@group" and queue id, in the table that keeps them on disk."""

    log = Logger()

    def __init__(
        self, table: ConsumerOffsetTable, save: Callable[[], object], end_of: Callable[[str, int], int]
    ) -> None:
        """Load offsets. `save` writes the table, at once or soon; `end_of` is the offset after the last message of a
        topic's queue.

        Offsets past the end of their queue are lowered, and the table is on disk before anything can be appended:
        afterwards such an offset cannot be told from a good one. Raises OSError.
        """
        self._table = table
        self._write = save
        self._end_of = end_of
        self._dirty = False
        self._pulled: dict[str, dict[int, int]] = {}
        self.resets: dict[str, dict[int, int]] = {}
        lowered = self._bounded(self.offsets)
        if lowered:
            self.offsets.update(lowered)
            table.save_with_backup()

    @property
    def offsets(self) -> dict[str, dict[int, int]]:
        """Return all offsets; callers must not change them."""
        return self._table.offsets

    @property
    def data_version(self) -> DataVersion:
        """Return the version that a slave took over; a master's stays as it was created, as in Apache."""
        return self._table.data_version

    def _bounded(self, offsets: Mapping[str, Mapping[int, int]]) -> Offsets:
        """Return the rows in which an offset was lowered."""
        lowered: Offsets = {}
        for key, queues in offsets.items():
            topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
            row = {queue_id: self._reached(group, topic, queue_id, offset) for queue_id, offset in queues.items()}
            if row != queues:
                lowered[key] = row
        return lowered

    def _reached(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Return the offset, or the queue's end if that is lower."""
        end = self._end_of(topic, queue_id)
        if offset <= end:
            return offset
        if self.query(group, topic, queue_id) != end:
            self.log.warn(
                "consumer offset lowered to the end of its queue: group={g} topic={t} queue={q} from={b} to={o}",
                g=group, t=topic, q=queue_id, b=offset, o=end,
            )  # fmt: skip
        return end

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit an offset. A lower offset than before is allowed (a reset) and logged."""
        queues = self.offsets.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})
        before = queues.get(queue_id)
        if before == offset:  # most commits take this path
            return
        offset = self._reached(group, topic, queue_id, offset)
        if before == offset:
            return
        if before is not None and offset < before:
            self.log.warn(
                "consumer offset moves back: group={g} topic={t} queue={q} from={b} to={o}",
                g=group, t=topic, q=queue_id, b=before, o=offset,
            )  # fmt: skip
        queues[queue_id] = offset
        self._dirty = True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the committed offset, or the one from a reset; None if the group has none on that queue."""
        return self.offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue_id)

    def queue_count(self, group: str, topic: str) -> int:
        """Return the number of queues on which the group has an offset."""
        return len(self.offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", ()))

    def clone(self, source: str, target: str, topic: str) -> None:
        """Replace a group's offsets on a topic by those of another group."""
        offsets = self.offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{source}")
        if offsets is not None:
            self.offsets[f"{topic}{TOPIC_GROUP_SEPARATOR}{target}"] = dict(offsets)
            self._dirty = True

    # resets that the broker hands out itself (Apache: assignResetOffset); lost with the process, while the offsets are not

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set a group's offset. Until its next pull of the queue, its commits there are ignored."""
        self.commit(group, topic, queue_id, offset)
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        self.resets.setdefault(key, {})[queue_id] = self.offsets[key][queue_id]

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Return True if the group has not received its reset yet."""
        return queue_id in self.resets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", ())

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return, once, the offset that the next pull is sent to; None without a reset."""
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        queues = self.resets.get(key)
        offset = queues.pop(queue_id, None) if queues else None
        if queues is not None and not queues:
            del self.resets[key]
        return offset

    # what was handed out (Apache: pullOffsetTable)

    def note_pulled(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """Record that a group received everything of a queue before this offset."""
        self._pulled.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})[queue_id] = next_offset

    def pulled(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the offset up to which a group received a queue since the broker's start."""
        return self._pulled.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue_id)

    def groups_of(self, topic: str) -> list[str]:
        """Return the groups that have an offset on a topic, sorted."""
        prefix = topic + TOPIC_GROUP_SEPARATOR
        return sorted(key[len(prefix) :] for key in self.offsets if key.startswith(prefix))

    def topics_of(self, group: str) -> list[str]:
        """Return the topics on which a group has an offset, sorted."""
        suffix = TOPIC_GROUP_SEPARATOR + group
        return sorted(key[: -len(suffix)] for key in self.offsets if key.endswith(suffix))

    def topics_by_group(self) -> Generator[None, None, dict[str, list[str]]]:
        """Return the topics that each group has an offset on, worked out in slices."""
        found: dict[str, list[str]] = {}
        for number, key in enumerate(list(self.offsets), 1):
            topic, _, group = key.rpartition(TOPIC_GROUP_SEPARATOR)
            found.setdefault(group, []).append(topic)
            if number % KEYS_OF_SLICE == 0:
                yield None
        return found

    def remove_topic(self, topic: str) -> None:
        """Forget all groups' offsets on a topic."""
        prefix = topic + TOPIC_GROUP_SEPARATOR
        for table in self._tables:
            self._remove(table, [key for key in table if key.startswith(prefix)])

    def remove_group(self, group: str) -> None:
        """Forget a group's offsets on all topics."""
        suffix = TOPIC_GROUP_SEPARATOR + group
        for table in self._tables:
            self._remove(table, [key for key in table if key.endswith(suffix)])

    def merge(self, offsets: Mapping[str, Mapping[int, int]], version: DataVersion | None) -> bool:
        """Copy another broker's offsets, group by group, and save them; groups that it does not have stay.

        Returns whether all offsets were copied unchanged: the log here may be shorter than the other broker's.
        """
        lowered = self._bounded(offsets)
        self.offsets.update({key: lowered.get(key) or dict(queues) for key, queues in offsets.items()})
        self._table.data_version = version or self._table.data_version
        self._write()
        return not lowered

    def diverge(self, now_ms: int) -> None:
        """Take the next version: commits here count from now on, and Apache's returning master takes a table by its version."""
        self._table.data_version = self._table.data_version.next_version(now_ms)
        self._dirty = True

    def save(self) -> None:
        """Write the table if it changed since it was last written. Raises OSError; then the next call tries again."""
        if self._dirty:
            self._write()
            self._dirty = False

    @property
    def _tables(self) -> tuple[dict[str, dict[int, int]], ...]:
        return self.offsets, self.resets, self._pulled

    def _remove(self, table: dict[str, dict[int, int]], keys: Iterable[str]) -> None:
        for key in keys:
            del table[key]
            self._dirty = True

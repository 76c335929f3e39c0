"""How far each group has consumed each queue (Apache: ConsumerOffsetManager). Saved on the broker's schedule and at its stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR, ConsumerOffsetTable


class ConsumerOffsetManager:
    """Offsets by "topic@group" and queue id, over the table that keeps them on disk."""

    log = Logger()

    def __init__(self, table: ConsumerOffsetTable, save: Callable[[], object]) -> None:
        """`save` has the table written, at once or soon."""
        self._table = table
        self._write = save
        self._dirty = False
        self._pulled: dict[str, dict[int, int]] = {}
        self.resets: dict[str, dict[int, int]] = {}

    @property
    def offsets(self) -> dict[str, dict[int, int]]:
        """All offsets; not to be changed by callers."""
        return self._table.offsets

    @property
    def data_version(self) -> DataVersion:
        """The version that a slave took over; a master's stays as it was made, as in Apache."""
        return self._table.data_version

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Note an offset; going backwards is allowed (a reset) and logged."""
        queues = self.offsets.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})
        before = queues.get(queue_id)
        if before == offset:
            return
        if before is not None and offset < before:
            self.log.warn(
                "consumer offset goes back: group={g} topic={t} queue={q} from={b} to={o}",
                g=group, t=topic, q=queue_id, b=before, o=offset,
            )  # fmt: skip
        queues[queue_id] = offset
        self._dirty = True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """The committed offset, or the one a reset gave; None where the group has none on that queue."""
        return self.offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue_id)

    def queue_count(self, group: str, topic: str) -> int:
        """Of how many queues the group has an offset."""
        return len(self.offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", ()))

    def clone(self, source: str, target: str, topic: str) -> None:
        """Give a group the offsets that another has on a topic, in place of its own."""
        offsets = self.offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{source}")
        if offsets is not None:
            self.offsets[f"{topic}{TOPIC_GROUP_SEPARATOR}{target}"] = dict(offsets)
            self._dirty = True

    # resets that the broker hands out itself (Apache: assignResetOffset); lost with the process, as the offsets are not

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Give a group another offset; until its next pull of the queue nothing that it commits there counts."""
        self.commit(group, topic, queue_id, offset)
        self.resets.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})[queue_id] = offset

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Whether the group has yet to be told of a reset."""
        return queue_id in self.resets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", ())

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The offset that a puller is to be sent to, once; None where there is none."""
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        queues = self.resets.get(key)
        offset = queues.pop(queue_id, None) if queues else None
        if queues is not None and not queues:
            del self.resets[key]
        return offset

    # what was handed out (Apache: pullOffsetTable)

    def note_pulled(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """A group was handed everything of a queue before this offset."""
        self._pulled.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})[queue_id] = next_offset

    def pulled(self, group: str, topic: str, queue_id: int) -> int | None:
        """How far a group was handed a queue since the broker's start."""
        return self._pulled.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue_id)

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have an offset on a topic, sorted."""
        prefix = topic + TOPIC_GROUP_SEPARATOR
        return sorted(key[len(prefix) :] for key in self.offsets if key.startswith(prefix))

    def topics_of(self, group: str) -> list[str]:
        """The topics that a group has an offset on, sorted."""
        suffix = TOPIC_GROUP_SEPARATOR + group
        return sorted(key[: -len(suffix)] for key in self.offsets if key.endswith(suffix))

    def remove_topic(self, topic: str) -> None:
        """Forget all groups' offsets on a topic."""
        self._remove(lambda key: key.startswith(topic + TOPIC_GROUP_SEPARATOR))

    def remove_group(self, group: str) -> None:
        """Forget a group's offsets on all topics."""
        self._remove(lambda key: key.endswith(TOPIC_GROUP_SEPARATOR + group))

    def merge(self, offsets: Mapping[str, Mapping[int, int]], version: DataVersion | None) -> None:
        """Take over another broker's offsets, group by group, and save them; groups that it does not have stay."""
        self.offsets.update({key: dict(queues) for key, queues in offsets.items()})
        self._table.data_version = version or self._table.data_version
        self._write()

    def save(self) -> None:
        """Write the table if it changed since it was last written. Raises OSError; then the next call tries again."""
        if self._dirty:
            self._write()
            self._dirty = False

    def _remove(self, gone: Callable[[str], bool]) -> None:
        for table in (self.offsets, self.resets, self._pulled):
            for key in [key for key in table if gone(key)]:
                del table[key]
                self._dirty = True

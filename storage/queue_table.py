"""All consume queues of a store by topic and queue id (Apache: ConsumeQueueStore)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from storage.config import StoreConfig
from storage.consume_queue import ConsumeQueue
from storage.mapped_file import Allocate
from storage.queue_extension import Describe, ExtendedConsumeQueue, QueueExtension


class QueueTable:
    """The queues that exist. `by_key` is what the hot path looks into."""

    def __init__(
        self, config: StoreConfig, allocate: Allocate = os.posix_fallocate, describe: Describe = lambda *_: (0, None)
    ) -> None:
        self.by_key: dict[tuple[str, int], ConsumeQueue] = {}
        self._config = config
        self._paths = config.paths
        self._allocate = allocate
        self._describe = describe

    def __iter__(self) -> Iterator[ConsumeQueue]:
        """The queues at this moment; safe in any thread."""
        return iter(tuple(self.by_key.values()))

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, if there is one."""
        return self.by_key.get((topic, queue_id))

    def make(self, topic: str, queue_id: int) -> ConsumeQueue:
        """A new, empty queue; its directory is made with its first entry. Raises IllegalTopicName, ValueError.

        It has extension units where those are switched on, or where it has some from before.
        """
        config = self._config
        directory, extension = self._paths.queue(topic, queue_id), self._paths.queue_extension(topic, queue_id)
        size, step = config.mapped_file_size_consume_queue, config.consume_queue_allocation_step
        queue: ConsumeQueue
        if config.enable_consume_queue_ext or os.path.isdir(extension):
            units = QueueExtension(extension, config.mapped_file_size_consume_queue_ext, step, self._allocate)
            queue = ExtendedConsumeQueue(
                topic, queue_id, directory, size, step, self._allocate,
                extension=units, describe=self._describe, writes=config.enable_consume_queue_ext,
            )  # fmt: skip
        else:
            queue = ConsumeQueue(topic, queue_id, directory, size, step, self._allocate)
        self.by_key[topic, queue_id] = queue
        return queue

    def queue_ids(self, topic: str) -> list[int]:
        """The queues of a topic, in order."""
        return sorted(queue_id for name, queue_id in self.by_key if name == topic)

    def topics(self) -> list[str]:
        """All topics that have a queue, sorted."""
        return sorted({topic for topic, _ in self.by_key})

    def remove(self, topics: Collection[str]) -> list[ConsumeQueue]:
        """Take the queues of these topics out of the table, delete their files; returns them."""
        return self.remove_queues([key for key in self.by_key if key[0] in topics])

    def remove_queues(self, keys: Collection[tuple[str, int]]) -> list[ConsumeQueue]:
        """Take these queues out of the table, delete their files, and the directories of topics that have none left."""
        removed = [self.by_key[key] for key in keys]
        for queue in removed:
            del self.by_key[queue.topic, queue.queue_id]
            queue.destroy()
        for topic in {queue.topic for queue in removed}:
            self._remove_empty_directory(topic)
        return removed

    def _remove_empty_directory(self, topic: str) -> None:
        for parent in (self._paths.consume_queues, self._paths.queue_extensions):
            directory = os.path.join(parent, topic)
            if os.path.isdir(directory) and not os.listdir(directory):
                os.rmdir(directory)

    def release(self) -> None:
        """Give back all files."""
        for queue in self:
            queue.release()

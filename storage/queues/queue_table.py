"""All consume queues of a store by topic and queue id (Apache: ConsumeQueueStore)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator

from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.descriptors import MappedFiles, most_mapped
from twisted_mq.storage.files.system_calls import Allocate, posix_fallocate
from twisted_mq.storage.interfaces import IsBatchTopic
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.queue_extension import Describe, ExtendedConsumeQueue, QueueExtension

DELETED_AT_ONCE = 8
"""The number of queues whose files one call deletes: about a millisecond each."""


class QueueTable:
    """The queues of a store: `by_key` has the simple ones, for the hot path, `batches` the batch queues."""

    def __init__(
        self,
        config: StoreConfig,
        allocate: Allocate = posix_fallocate,
        describe: Describe = lambda *_: (0, None),
        is_batch_topic: IsBatchTopic = lambda topic: None,
        mappings: MappedFiles | None = None,
    ) -> None:
        self.by_key: dict[tuple[str, int], ConsumeQueue] = {}
        self.batches: dict[tuple[str, int], BatchConsumeQueue] = {}
        self.is_batch_topic = is_batch_topic
        self._config = config
        self._paths = config.paths
        self._allocate = allocate
        self._describe = describe
        self._mappings = mappings or MappedFiles(most_mapped())
        self._leaving: dict[str, list[ConsumeQueue]] = {}

    def __iter__(self) -> Iterator[ConsumeQueue]:
        """Yield the queues that exist at this moment; safe in any thread."""
        return iter((*tuple(self.by_key.values()), *tuple(self.batches.values())))

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return the queue; None if it does not exist."""
        key = topic, queue_id
        return self.by_key.get(key) or self.batches.get(key)

    def make(self, topic: str, queue_id: int, *, batched: bool = False) -> ConsumeQueue:
        """Return a new, empty queue; its directory is made with its first entry. Raises IllegalTopicName, ValueError, OSError.

        `batched` decides for topics that are not known. A simple queue has extension units if those are enabled, or if it
        already has some.
        """
        for left in [one for one in self._leaving.get(topic, ()) if one.queue_id == queue_id]:
            self._delete(left)
        known = self.is_batch_topic(topic)
        if batched if known is None else known:
            return self._make_batched(topic, queue_id)
        return self._make_simple(topic, queue_id)

    def _make_simple(self, topic: str, queue_id: int, extended: bool | None = None) -> ConsumeQueue:
        """Make a queue; `extended` says whether it has extension units, without a look at the disk."""
        config = self._config
        directory, extension = self._paths.queue(topic, queue_id), self._paths.queue_extension(topic, queue_id)
        extended = os.path.isdir(extension) if extended is None else extended
        size, step = config.mapped_file_size_consume_queue, config.consume_queue_allocation_step
        queue: ConsumeQueue
        if config.enable_consume_queue_ext or extended:
            units = QueueExtension(
                extension, config.mapped_file_size_consume_queue_ext, step, self._allocate, self._mappings
            )
            queue = ExtendedConsumeQueue(
                topic, queue_id, directory, size, step, self._allocate, self._mappings,
                extension=units, describe=self._describe, writes=config.enable_consume_queue_ext,
            )  # fmt: skip
        else:
            queue = ConsumeQueue(topic, queue_id, directory, size, step, self._allocate, self._mappings)
        self.by_key[topic, queue_id] = queue
        return queue

    def _make_batched(self, topic: str, queue_id: int) -> BatchConsumeQueue:
        config, directory = self._config, self._paths.batch_queue(topic, queue_id)
        size, step = config.mapper_file_size_batch_consume_queue, config.consume_queue_allocation_step
        queue = BatchConsumeQueue(topic, queue_id, directory, size, step, self._allocate, self._mappings)
        self.batches[topic, queue_id] = queue
        return queue

    def on_disk(self) -> Iterator[ConsumeQueue]:
        """Yield a new queue for each directory of entries, of the directory's kind; none is loaded yet."""
        extended = None if os.path.isdir(self._paths.queue_extensions) else False
        for topic, queue_id in self._paths.queue_directories():
            yield self._make_simple(topic, queue_id, extended)
        for topic, queue_id in self._paths.batch_queue_directories():
            yield self._make_batched(topic, queue_id)

    def batched_anew(self, queue: ConsumeQueue, stored_at: Callable[[int, int], int]) -> BatchConsumeQueue:
        """Replace a simple queue by a batch queue and return it; its records hold one message each.

        Raises StoreFull; then the simple queue stays. `stored_at` returns the store time of the record at a physical offset, of a
        size.
        """
        key = queue.topic, queue.queue_id
        batch = self._make_batched(*key)
        try:
            for offset, (physical_offset, size, tags_code) in queue.entries():
                batch.append_at(offset, physical_offset, size, tags_code, stored_at(physical_offset, size))
        except StoreFull:
            batch.destroy()
            del self.batches[key]
            raise
        del self.by_key[key]
        queue.destroy()
        return batch

    def queue_ids(self, topic: str) -> list[int]:
        """Return the queues of a topic, in order."""
        return sorted(queue_id for name, queue_id in (*self.by_key, *self.batches) if name == topic)

    def topics(self) -> list[str]:
        """Return all topics that have a queue, sorted."""
        return sorted({topic for topic, _ in (*self.by_key, *self.batches)})

    def remove(self, topics: Collection[str]) -> list[ConsumeQueue]:
        """Take the queues of these topics out of the table and return them. See `remove_queues`."""
        return self.remove_queues([key for key in (*self.by_key, *self.batches) if key[0] in topics])

    def remove_queues(self, keys: Collection[tuple[str, int]]) -> list[ConsumeQueue]:
        """Take these queues out of the table and delete the files of the first ones; `delete_more` deletes the rest."""
        found = [table.pop(key, None) for key in keys for table in (self.by_key, self.batches)]
        removed = [queue for queue in found if queue is not None]
        for queue in removed:
            self._leaving.setdefault(queue.topic, []).append(queue)
        self.delete_more()
        return removed

    def delete_more(self) -> bool:
        """Delete the files of some removed queues, and empty directories of topics; return whether more are left.

        Raises OSError; then the next call tries that queue again.
        """
        for _ in range(DELETED_AT_ONCE):
            if not self._leaving:
                break
            self._delete(next(iter(self._leaving.values()))[0])
        return bool(self._leaving)

    def delete_rest(self) -> None:
        """Delete the files of all removed queues. Raises OSError."""
        while self.delete_more():
            pass

    def _delete(self, queue: ConsumeQueue) -> None:
        """Delete the files of a removed queue."""
        queue.destroy()
        of_topic = self._leaving[queue.topic]
        of_topic.remove(queue)
        if not of_topic:
            del self._leaving[queue.topic]
            self._remove_empty_directory(queue.topic)

    def _remove_empty_directory(self, topic: str) -> None:
        paths = self._paths
        for parent in (paths.consume_queues, paths.queue_extensions, paths.batch_consume_queues):
            directory = os.path.join(parent, topic)
            if os.path.isdir(directory) and not os.listdir(directory):
                os.rmdir(directory)

    def release(self) -> None:
        """Release all files."""
        for queue in self:
            queue.release()

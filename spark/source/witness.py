"""Proof that a record begins at a place of the log: a consume queue entry points to it.

A message's body can have any bytes, even those of a record with the right physical offset. Queue entries are written only by the
broker and point to the begin of records.
"""

from __future__ import annotations

import functools

from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, unpack_entry
from twisted_mq.protocol.layouts.record import read_head, topic_of
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.source.stores import LogFile, Store, directories_in, files_in
from twisted_mq.storage.files.paths import StorePaths, is_topic_name

_QUEUES = StorePaths("").consume_queues
_QUEUES_KEPT = 256


class Witness:
    """The consume queues of one store, listed at first use. Each read is one entry of 20 bytes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files = functools.lru_cache(_QUEUES_KEPT)(self._list_files)

    @functools.cached_property
    def has_queues(self) -> bool:
        """Return True if the store has a consume queue; a log that was copied alone has none."""
        return bool(directories_in(self._store, _QUEUES))

    def names(self, record: bytes) -> bool:
        """Return True if the queue entry of this complete record has its physical offset and size.

        Returns False too if the entry is deleted, or not written yet, and for queues of topics with batches.
        """
        head, topic = read_head(record), topic_of(record)
        if topic is None or not is_topic_name(topic) or head.queue_id < 0 or head.queue_offset < 0:
            return False
        position = head.queue_offset * ENTRY_BYTES
        for file in self._files(topic, head.queue_id):
            if file.first_offset <= position <= file.end - ENTRY_BYTES:
                return self._entry(file, position - file.first_offset) == (head.physical_offset, head.size)
        return False

    def _list_files(self, topic: str, queue_id: int) -> list[LogFile]:
        _, root = locate(self._store.uri)
        return files_in(self._store, f"{root}/{_QUEUES}/{topic}/{queue_id}")

    def _entry(self, file: LogFile, position: int) -> tuple[int, int] | None:
        """Return (physical offset, size) of the entry there; None if the file is missing or shorter."""
        system, _ = locate(self._store.uri)
        try:
            with system.open_input_file(file.path) as opened:
                data = opened.read_at(ENTRY_BYTES, position)
        except FileNotFoundError:
            return None
        if len(data) < ENTRY_BYTES:
            return None
        physical_offset, size, _ = unpack_entry(data)
        return physical_offset, size

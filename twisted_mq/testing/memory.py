"""Keeps the store of a test's broker in memory."""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import IsBatchTopic
from twisted_mq.storage.memory.memory_store import MemoryMessageStore


class KeptInMemory:
    """Opens the store for each start of a broker: always the same one, so that messages survive a restart."""

    def __init__(self) -> None:
        self._store: MemoryMessageStore | None = None
        self._is_batch_topic: IsBatchTopic = lambda topic: None

    def __call__(
        self, config: StoreConfig, now_ms: Callable[[], int], is_batch_topic: IsBatchTopic
    ) -> MemoryMessageStore:
        self._is_batch_topic = is_batch_topic
        if self._store is None:
            self._store = MemoryMessageStore(config, now_ms, is_batch_topic=lambda topic: self._is_batch_topic(topic))
        self._store.configure(config)
        self._store.start()
        return self._store

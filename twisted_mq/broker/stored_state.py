"""Opens what a broker has on disk, its store and its tables, and writes the tables after changes.

The order of a start: the topics, which the store needs; the store, which recovers; then the other tables.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterTable
from twisted_mq.broker.filter.consumer_filter_manager import consumer_filters
from twisted_mq.broker.filter.message_filter import filter_bit_map
from twisted_mq.broker.runtime import BrokerRuntime
from twisted_mq.broker.store_options import store_config
from twisted_mq.broker.table_saver import InThread, TableSaver
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.tables.config_tables import (
    ConfigTable,
    ConsumerOffsetTable,
    SubscriptionGroupTable,
    TopicTable,
)
from twisted_mq.storage.tables.small_tables import TopicMappingTable

if TYPE_CHECKING:
    from twisted_mq.storage.memory.memory_store import MemoryMessageStore

Table = TypeVar("Table", bound=ConfigTable[Any])


class StoredState:
    """The open store and the loaded tables of one broker. `undo` closes them if the start fails later.

    `topics_changed` is called after changes of topics, `dispatch` in the reactor's thread after flushes, and `flushed`
    to wait until the log is on disk up to an offset.
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        undo: contextlib.ExitStack,
        store_host: bytes,
        topics_changed: Callable[[list[TopicConfig] | None], None],
        dispatch: Callable[[], object],
        flushed: Callable[[int], defer.Deferred[bool]],
    ) -> None:
        """Open the store and load the tables. Raises StoreError or OSError."""
        options, now_ms = runtime.options, runtime.now_ms
        self._runtime = runtime
        self._undo = undo
        self._dispatch = dispatch
        self._flushed = flushed
        self.folder = os.path.join(options.store_path_root_dir, "config")
        self.savers: list[TableSaver] = []
        topics, self.topics_saver = self._load(TopicTable, "topics.json")
        self.topics = TopicConfigManager(topics, now_ms, topics_changed, self.topics_saver.touch)
        self.filters = consumer_filters(options, ConsumerFilterTable(os.path.join(self.folder, "consumerFilter.json")))
        self.store = self._open_store(store_host)
        undo.callback(self.store.close)
        self.filters.load(now_ms())
        mapping, saver = self._load(TopicMappingTable, "topicQueueMapping.json")
        self.static_topics = StaticTopics(options.broker_name, now_ms, mapping, saver.touch)
        groups, saver = self._load(SubscriptionGroupTable, "subscriptionGroup.json")
        create = options.auto_create_subscription_group
        self.groups = SubscriptionGroupManager(groups, now_ms, saver.touch, auto_create=create)
        offsets, saver = self._load(ConsumerOffsetTable, "consumerOffset.json", self._behind_the_log)
        self.offsets = ConsumerOffsetManager(offsets, saver.touch, self.store.max_offset_in_queue)
        self.topics.add_startup_topics(options)
        self.groups.add_built_in_groups()

    def _load(
        self, kind: Callable[[str], Table], name: str, in_thread: InThread | None = None
    ) -> tuple[Table, TableSaver]:
        """Return a loaded table of the config folder and the saver that writes it after its changes."""
        table = kind(os.path.join(self.folder, name))
        table.load()
        saver = TableSaver(name, table, self._runtime.reactor, in_thread or self._runtime.in_thread)
        self.savers.append(saver)
        self._undo.callback(saver.abandon)
        return table, saver

    def _open_store(self, store_host: bytes) -> FileMessageStore | MemoryMessageStore:
        """Open the store, on disk or in memory. Raises StoreError."""
        runtime, options, machine = self._runtime, self._runtime.options, self._runtime.machine
        config = store_config(options, store_host)
        if machine.open_in_memory is not None:
            return machine.open_in_memory(config, runtime.wall_ms, self.topics.is_batch_topic)
        store = FileMessageStore(
            config,
            runtime.wall_ms,
            is_batch_topic=self.topics.is_batch_topic,
            bit_map_of=functools.partial(filter_bit_map, self.filters) if options.enable_calc_filter_bit_map else None,
            committed=lambda: runtime.call_from_thread(self._dispatch),
            monotonic=machine.monotonic,
            threads=machine.threads,
        )
        store.start()
        return store

    def when_saved(self) -> defer.Deferred[Any]:
        """Fire when all changes are on disk. Fails with BrokerError if that takes too long."""
        saved = [saver.when_saved() for saver in self.savers]
        return self._in_time(defer.gatherResults(saved, consumeErrors=True))

    def when_topics_saved(self) -> defer.Deferred[Any]:
        """Like `when_saved`, for topics only: a message whose topic is lost with the process reaches no consumer."""
        return self._in_time(self.topics_saver.when_saved())

    def _in_time(self, saved: defer.Deferred[Any]) -> defer.Deferred[Any]:
        saved.addTimeout(self._runtime.options.register_broker_timeout_mills / 1000, self._runtime.reactor)
        return saved.addErrback(_not_saved)

    async def _write_behind_the_log(self, write: Callable[[], object]) -> object:
        """Write, in a thread, once the log is on disk up to its present end. Raises OSError.

        Offsets say that earlier messages need nothing more, because what came of them was appended: check points of
        pops, copies of popped messages that come again, operations on half messages. A power cut must not take that and
        leave the offsets.
        """
        if not await self._flushed(self.store.max_physical_offset()):
            raise OSError(errno.EAGAIN, "the log is not on disk yet")
        return await self._runtime.in_thread(write)

    def _behind_the_log(self, write: Callable[[], object]) -> defer.Deferred[object]:
        return defer.Deferred.fromCoroutine(self._write_behind_the_log(write))


def _not_saved(reason: failure.Failure) -> None:
    raise BrokerError(ResponseCode.SYSTEM_ERROR, "changed, but not saved: the broker cannot write its table now")

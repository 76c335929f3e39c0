"""Keeps the broker's topics: each send and pull looks one up, and may create it; changes are saved and registered.

Apache: TopicConfigManager. Topics that every broker has: constants.json `broker_startup_topics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion, TopicConfig
from twisted_mq.protocol.flags import PERM_READ_WRITE, PermName
from twisted_mq.protocol.names.pop_topics import revive_topic
from twisted_mq.protocol.names.system_topics import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    HALF_TOPIC,
    OFFSET_MOVED_TOPIC,
    OP_TOPIC,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYNC_BROKER_MEMBER_PREFIX,
    TIMER_TOPIC,
    reply_topic,
)
from twisted_mq.storage.tables.config_tables import TopicTable

SCHEDULE_QUEUES = 18
MOST_QUEUES = 65535
"""The most queues of a topic that clients create or alter; Apache has no limit."""


class TopicConfigManager:
    """Topics by name. `changed(configs)` is called after topics were created or altered, `None` after a deletion.

    `save` writes the table, at once or soon.
    """

    log = Logger()

    def __init__(
        self,
        table: TopicTable,
        now_ms: Callable[[], int],
        changed: Callable[[list[TopicConfig] | None], None],
        save: Callable[[], object],
    ) -> None:
        self._table = table
        self.topics = table.topics
        """All topics by name; other parts must not change them."""
        self.get = self.topics.get
        """Returns the configuration of a topic, or None. A lookup of each request, so without a layer of its own."""
        self._now_ms = now_ms
        self._changed = changed
        self._write = save
        self.on_change: list[Callable[[], None]] = []

    @property
    def data_version(self) -> DataVersion:
        """Return the version, which counts the changes of the table, for name servers and slaves."""
        return self._table.data_version

    def has_queue(self, topic: str, queue_id: int) -> bool:
        """Return True if the topic exists with that many queues, to read or to write."""
        return 0 <= queue_id < self.queue_count(topic)

    def queue_count(self, topic: str) -> int:
        """Return the number of a topic's queues, to read or to write; 0 for a missing topic."""
        config = self.topics.get(topic)
        return 0 if config is None else max(config.read_queue_nums, config.write_queue_nums)

    def is_ordered(self, topic: str) -> bool:
        """Return True if a topic exists and is strictly ordered."""
        config = self.topics.get(topic)
        return config is not None and config.order_mode is not None

    def is_batch_topic(self, topic: str) -> bool | None:
        """Return True if a topic has batch queues; None for a missing topic."""
        config = self.topics.get(topic)
        return None if config is None else config.has_batch_queues

    def add_startup_topics(self, options: BrokerOptions) -> None:
        """Create those topics of every broker that are missing."""
        missing = [config for config in startup_topics(options) if config.topic_name not in self.topics]
        if missing:
            self._store(missing)

    def create_by_default_topic(
        self, topic: str, default_topic: str, queue_count: int, sys_flag: int, options: BrokerOptions
    ) -> TopicConfig | None:
        """Return a topic inherited from a default topic (Apache: createTopicInSendMessageMethod); None if that is not allowed."""
        default = self.get(default_topic)
        if default is None or not default.perm & PermName.PERM_INHERIT:
            return None
        if default_topic == AUTO_CREATE_TOPIC and not options.auto_create_topic_enable:
            return None
        queues = max(0, min(queue_count, default.write_queue_nums))
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=default.perm & ~PermName.PERM_INHERIT,
            topic_sys_flag=sys_flag,
        )
        self.log.info("topic created: topic={t} queues={q} by={d}", t=topic, q=queues, d=default_topic)
        self.update([config])
        return config

    def create_for_group(self, topic: str, queue_count: int, sys_flag: int = 0, order: bool = False) -> TopicConfig:
        """Return a group's retry or dead-letter topic, created if missing (Apache: createTopicInSendMessageBackMethod)."""
        config = self.for_group(topic, queue_count, sys_flag, order)
        if config is not self.get(topic):
            self.update([config])
        return config

    def for_group(self, topic: str, queue_count: int, sys_flag: int = 0, order: bool = False) -> TopicConfig:
        """Return the configuration that `create_for_group` uses: the existing topic if it fits, or else one for `update`.

        It has at most MOST_QUEUES, whatever a table from elsewhere says of its group.
        """
        queue_count = min(queue_count, MOST_QUEUES)
        config = self.get(topic)
        if config is not None:
            return config if config.order == order else attrs.evolve(config, order=order)
        return TopicConfig(
            topic_name=topic,
            read_queue_nums=queue_count,
            write_queue_nums=queue_count,
            perm=PERM_READ_WRITE,
            topic_sys_flag=sys_flag,
            order=order,
        )

    def update(self, configs: Iterable[TopicConfig]) -> None:
        """Create or alter topics, save them, and register them."""
        changed = list(configs)
        self._store(changed)
        self._changed(changed)

    def changed_as_a_whole(self) -> None:
        """Register a change that concerns all topics (the broker's permission): a new version, at once."""
        self._save()
        self._changed(None)

    def replace_all(self, configs: Mapping[str, TopicConfig], version: DataVersion) -> None:
        """Replace the table by another broker's, with its version, and register it."""
        self.topics.clear()
        self.topics.update(configs)
        self._save(version)
        self._changed(None)

    def delete(self, topic: str) -> bool:
        """Delete a topic; False if there was no such topic."""
        if self.topics.pop(topic, None) is None:
            return False
        self._save()
        self._changed(None)
        return True

    def _store(self, configs: list[TopicConfig]) -> None:
        for config in configs:
            self.topics[config.topic_name] = config
        self._save()

    def _save(self, version: DataVersion | None = None) -> None:
        self._table.data_version = version or self.data_version.next_version(
            self._now_ms(), self.data_version.state_version
        )
        self._write()
        for tell in self.on_change:
            tell()


def startup_topics(options: BrokerOptions) -> list[TopicConfig]:
    """Return the topics that a broker with these options starts with."""
    cluster, name = options.broker_cluster_name, options.broker_name
    default_queues = options.default_topic_queue_nums
    inherit = PERM_READ_WRITE | PermName.PERM_INHERIT
    rows = [
        (SELF_TEST_TOPIC, 1, PERM_READ_WRITE),
        (AUTO_CREATE_TOPIC, default_queues, inherit),
        (BENCHMARK_TOPIC, 1024, PERM_READ_WRITE),
        (cluster, 16, inherit if options.cluster_topic_enable else PermName.PERM_INHERIT),
        (name, 1, inherit if options.broker_topic_enable else PermName.PERM_INHERIT),
        (OFFSET_MOVED_TOPIC, 1, PERM_READ_WRITE),
        (SCHEDULE_TOPIC, SCHEDULE_QUEUES, PERM_READ_WRITE),
        (reply_topic(cluster), 1, PERM_READ_WRITE),
        (revive_topic(cluster), options.revive_queue_num, PERM_READ_WRITE),
        (SYNC_BROKER_MEMBER_PREFIX + name, 1, PermName.PERM_INHERIT),
        (HALF_TOPIC, 1, PERM_READ_WRITE),
        (OP_TOPIC, 1, PERM_READ_WRITE),
        (TIMER_TOPIC, 1, PERM_READ_WRITE),
    ]
    if options.trace_topic_enable:
        rows.append((options.msg_trace_topic_name, 1, PERM_READ_WRITE))
    if not options.auto_create_topic_enable:
        rows = [row for row in rows if row[0] != AUTO_CREATE_TOPIC]
    return [
        TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
        for topic, queues, perm in rows
    ]

"""Cleans on demand: codes 306, 316, 329 (Apache: AdminBrokerProcessor)."""

from __future__ import annotations

from typing import Protocol

from twisted_mq.broker.processors.admin_topics import files_deleted
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.turns import Turns, then


class AdminCleaningParts(Protocol):
    """The parts of the broker that cleanings use."""

    store: IMessageStore
    topics: TopicConfigManager
    turns: Turns


class AdminCleaningProcessor:
    """Deletes queues and files that are not needed, or cannot be read, any more."""

    log = Logger()

    def __init__(self, broker: AdminCleaningParts) -> None:
        self._store = broker.store
        self._topics = broker.topics
        self._turns = broker.turns
        self.processors = {
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.clean_expired_queues,
            RequestCode.CLEAN_UNUSED_TOPIC: self.clean_unused_topics,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.delete_expired_log,
        }

    def clean_expired_queues(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Delete queues whose records are all gone from the log."""
        count = self._store.clean_expired_queues()
        self.log.info("expired queues deleted: count={count} peer={peer}", count=count, peer=channel.address)
        return self._when_deleted(command)

    def clean_unused_topics(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Delete the queues of topics that the broker no longer has."""
        count = self._store.clean_unused_topics(self._topics.topics.keys())
        self.log.info("queues of deleted topics deleted: topics={count} peer={peer}", count=count, peer=channel.address)
        return self._when_deleted(command)

    def _when_deleted(self, command: RemotingCommand) -> Answer:
        return then(self._turns.run("files", files_deleted(self._store)), lambda _: command.answer())

    def delete_expired_log(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Delete expired log files now, at whatever hour."""
        self.log.info("expired log files are to be deleted: peer={peer}", peer=channel.address)
        self._store.delete_expired_log()
        return command.answer()

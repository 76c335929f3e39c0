"""Lists the parts of the broker that pops use."""

from __future__ import annotations

from random import Random
from typing import Protocol

from twisted.internet import defer, interfaces

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.filter.selection import FilterParts
from twisted_mq.broker.long_polling import LongPolling
from twisted_mq.broker.request_bodies import RequestBodies
from twisted_mq.broker.schedule.postpone import Postponement
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.turns import Turns


class Durable(Protocol):
    """Waits until the log is as durable as configured: `waits` is True if that takes time."""

    waits: bool

    def reached(self, offset: int) -> defer.Deferred[int]: ...


class ReadParts(FilterParts, Protocol):
    """The parts of the broker that read: topics, groups and their messages."""

    random: Random
    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    statistics: BrokerStatistics
    advertised_ip: str
    turns: Turns


class PopParts(ReadParts, Protocol):
    """The parts of the broker that pops use: those that read, and those that a pop changes."""

    clock: interfaces.IReactorTime
    postponement: Postponement
    waiting: WaitingMessages
    polling: LongPolling
    bodies: RequestBodies

    @property
    def durability(self) -> Durable: ...

    @property
    def store_host(self) -> bytes: ...

    @property
    def is_slave(self) -> bool: ...

    def dispatch(self) -> bool: ...

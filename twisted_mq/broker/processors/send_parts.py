"""Lists the parts of the broker that sends use."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from twisted_mq.broker.clients.rebalance_lock import RebalanceLockManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.ordered_topics import Ordering
from twisted_mq.broker.schedule.postpone import Postponement
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.call_times import TimedCall
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, Places, PlainMessages, PutResult
from twisted_mq.turns import Turns


class SendParts(Protocol):
    """The parts of the broker that sends use."""

    options: BrokerOptions
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    random: Random
    unique_keys: UniqueKeyMaker
    store: IMessageStore
    timed_put: TimedCall[[InnerMessage], PutResult]
    timed_plain_puts: TimedCall[[PlainMessages], Places]
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    locks: RebalanceLockManager
    statistics: BrokerStatistics
    durability: Durability
    postponement: Postponement
    transactions: TransactionService
    ordering: Ordering
    turns: Turns

    def dispatch(self) -> bool:
        """Make the stored messages visible to consumers."""

    @property
    def store_host(self) -> bytes: ...

"""Keeps which groups filter which topics by which expression (Apache: ConsumerFilterManager). Pure: `now_ms` comes in.

A group registers its filters with its heartbeats. After the group goes offline they are kept for a day, so that the bit
maps of its messages are still valid when it comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Protocol

import attrs

from twisted_mq.broker.filter.bloom_filter import BloomFilter, BloomFilterData
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterData, compile_filter
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.expression import MAX_LENGTH, is_known
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import SubscriptionData
from twisted_mq.protocol.messages.subscription import is_tag_type
from twisted_mq.remoting.budget import may_have
from twisted_mq.storage.files.json_file import LoadAction

CLEAN_AFTER_MS = 24 * 3600 * 1000
"""The time that a group's filter is kept after the group is gone (filterDataCleanTimeSpan)."""

MOST_CHARACTERS = 500_000
FILTER_CHARACTERS = 100
"""The limit of the characters of all expressions, and the characters that each filter counts in addition to its own:
compiled, a character takes up to 435 bytes.
"""

LOADED_DEAD_BEFORE_MS = 30_000
"""Groups that were online at the last save count as gone for this long when the broker starts."""


@attrs.define
class CompileRoom:
    """The characters of new expressions that a heartbeat may still bring: compiling makes all other clients wait."""

    left: int = MAX_LENGTH

    def takes(self, expression: str) -> bool:
        """Return True if this expression may be compiled now, and count it."""
        if is_known(expression) or len(expression) > MAX_LENGTH:
            return True
        if len(expression) > self.left:
            return False
        self.left -= len(expression)
        return True


class FilterTable(Protocol):
    """A table of filters: ConsumerFilterTable, or one in memory."""

    filters: dict[str, dict[str, ConsumerFilterData]]

    def load(self) -> list[LoadAction]: ...

    def save(self) -> bool: ...


class ConsumerFilterManager:
    """The filters of all groups by topic. Subscriptions by tag have no filter."""

    log = Logger()

    def __init__(self, table: FilterTable, bloom_filter: BloomFilter, clean_after_ms: int = CLEAN_AFTER_MS) -> None:
        self._table = table
        self.bloom_filter = bloom_filter
        self._clean_after_ms = clean_after_ms
        self._topics_of: dict[str, dict[str, None]] = {}
        self._made_by: Counter[str] = Counter()
        self._characters = 0

    def load(self, now_ms: int) -> list[LoadAction]:
        """Read the table; all its groups are offline. If its positions are for another bloom filter, ignore the whole table."""
        actions = self._table.load()
        stored = [data for groups in self._table.filters.values() for data in groups.values()]
        if not all(self.bloom_filter.is_valid(data.bloom_filter_data) for data in stored):
            self.log.info("stored consumer filters are of another bloom filter and ignored: count={n}", n=len(stored))
            self._table.filters = {}
            return actions
        for data in stored:
            self._note(data)
            if data.dead_time == 0:
                data.dead_time = max(now_ms - LOADED_DEAD_BEFORE_MS, data.born_time)
        return actions

    def save(self, now_ms: int) -> bool:
        """Write the filters that are not expired. False if the file already holds them. Raises OSError."""
        self.clean(now_ms)
        return self._table.save()

    def get(self, topic: str, group: str) -> ConsumerFilterData | None:
        return self._table.filters.get(topic, {}).get(group)

    def of_topic(self, topic: str) -> Collection[ConsumerFilterData]:
        """Return the filters of all groups, including offline ones."""
        return self._table.filters.get(topic, {}).values()

    def of_group(self, group: str) -> list[ConsumerFilterData]:
        return [self._table.filters[topic][group] for topic in self._topics_of.get(group, ())]

    def register(
        self,
        group: str,
        subscriptions: Iterable[SubscriptionData],
        now_ms: int,
        room: CompileRoom | None = None,
        address: str = "",
    ) -> dict[str, ExpressionError]:
        """Register a heartbeat's subscriptions; the group's filters on all other topics become dead.

        Filters beyond `room`, which all groups of a heartbeat share, are skipped: the next heartbeat brings them again.
        A new filter counts for the share of `address`, see `remoting.shares`.

        Returns the topics whose expression was refused, with the reason. Apache only logs it, and answers the group's
        pulls with FILTER_DATA_NOT_EXIST.
        """
        refused: dict[str, ExpressionError] = {}
        topics = set()
        room = room or CompileRoom()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            if self._is_new(group, subscription) and not room.takes(subscription.sub_string):
                self._told("consumer filter waits for the next heartbeat", group, subscription.topic)
                continue
            try:
                self.register_one(group, subscription, now_ms, address)
            except ExpressionError as error:
                refused[subscription.topic] = error
                self._told("consumer filter refused", group, subscription.topic, error.reason)
        for data in self.of_group(group):
            if data.topic not in topics and not data.is_dead:
                data.dead_time = now_ms
                self._told("consumer filter disabled: the topic is no longer subscribed", group, data.topic)
        return refused

    def _is_new(self, group: str, subscription: SubscriptionData) -> bool:
        if is_tag_type(subscription.expression_type):
            return False
        old = self.get(subscription.topic, group)
        return old is None or old.expression != subscription.sub_string

    def register_one(self, group: str, subscription: SubscriptionData, now_ms: int, address: str = "") -> bool:
        """Register one filter. Returns False for tags, and for a version that is not newer, unless it revives a dead filter.

        Raises ExpressionError; the group's old filter on the topic is then gone.
        """
        if is_tag_type(subscription.expression_type) or not subscription.sub_string:
            return False
        topic, version = subscription.topic, subscription.sub_version
        positions = self.bloom_filter.generate(f"{group}#{topic}")
        old = self.get(topic, group)
        if old is None or version > old.client_version:
            if old is not None and _same(old, subscription, positions):
                old.client_version = version
                self._revive(old)
            else:
                self._replace(group, subscription, positions, now_ms, address)
            return True
        if not _same(old, subscription, positions):
            self._told("consumer filter of an older version ignored", group, topic, subscription.sub_string)
        return version == old.client_version and self._revive(old)

    def unregister(self, group: str, now_ms: int) -> None:
        """Mark the filters of a group without members as dead."""
        for data in self.of_group(group):
            if not data.is_dead:
                data.dead_time = now_ms
                self._told("consumer filter disabled: the group is offline", group, data.topic)

    def clean(self, now_ms: int) -> None:
        """Forget the filters of groups that have been gone for too long."""
        for topic, groups in list(self._table.filters.items()):
            for group, data in list(groups.items()):
                if data.is_dead and now_ms - data.dead_time >= self._clean_after_ms:
                    self._forget(data)
                    self._told("consumer filter removed: disabled for too long", group, topic)

    def _replace(
        self, group: str, subscription: SubscriptionData, positions: BloomFilterData, now_ms: int, address: str
    ) -> None:
        topic, expression, kind = subscription.topic, subscription.sub_string, subscription.expression_type
        old = self.get(topic, group)
        if old is not None:
            self._forget(old)
        self._check_room(expression, address)
        compiled = compile_filter(kind, expression)
        self._note(
            ConsumerFilterData(
                group, topic, expression, kind, now_ms, subscription.sub_version, positions,
                compiled=compiled, made_by=address,
            )
        )  # fmt: skip
        self._told("consumer filter registered", group, topic, expression)

    def _check_room(self, expression: str, address: str) -> None:
        """Raise ExpressionError if the address has its share of the table, or the table is full."""
        more = len(expression) + FILTER_CHARACTERS - 1
        if not may_have(self._made_by[address] + more, self._characters + more, MOST_CHARACTERS):
            raise ExpressionError(
                expression, 0, f"the broker keeps {self._characters} characters of expressions, which is the limit"
            )

    def _note(self, data: ConsumerFilterData) -> None:
        self._table.filters.setdefault(data.topic, {})[data.consumer_group] = data
        self._topics_of.setdefault(data.consumer_group, {})[data.topic] = None
        self._count(data, 1)

    def _forget(self, data: ConsumerFilterData) -> None:
        groups, topics = self._table.filters[data.topic], self._topics_of[data.consumer_group]
        del groups[data.consumer_group], topics[data.topic]
        if not groups:
            del self._table.filters[data.topic]
        if not topics:
            del self._topics_of[data.consumer_group]
        self._count(data, -1)

    def _count(self, data: ConsumerFilterData, sign: int) -> None:
        characters = sign * (len(data.expression) + FILTER_CHARACTERS)
        self._characters += characters
        self._made_by[data.made_by] += characters
        if not self._made_by[data.made_by]:
            del self._made_by[data.made_by]

    def _revive(self, data: ConsumerFilterData) -> bool:
        if not data.is_dead:
            return False
        data.dead_time = 0
        self._told("consumer filter is enabled again", data.consumer_group, data.topic)
        return True

    def _told(self, what: str, group: str, topic: str, about: str = "") -> None:
        self.log.info("{what}: group={g} topic={t} {about}", what=what, g=group, t=topic, about=about)


def _same(old: ConsumerFilterData, subscription: SubscriptionData, positions: BloomFilterData) -> bool:
    known = (old.expression, old.expression_type, old.bloom_filter_data)
    return known == (subscription.sub_string, subscription.expression_type, positions)


def consumer_filters(options: BrokerOptions, table: FilterTable) -> ConsumerFilterManager:
    """Return the manager for a broker's options."""
    bloom_filter = BloomFilter(options.max_error_rate_of_bloom_filter, options.expect_consumer_num_use_filter)
    return ConsumerFilterManager(table, bloom_filter, options.filter_data_clean_time_span)

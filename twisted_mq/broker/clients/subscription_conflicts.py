"""Members of one group that subscribe to different things: users lose messages to that, and nothing else tells them.

The broker keeps one subscription for a group, and the queues of a topic are shared out among all members, also among
those that do not want it. Apache keeps the last heartbeat's subscriptions without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import attrs

from twisted_mq.broker.clients.producer_manager import ClientChannelInfo
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import ConsumerData, SubscriptionData
from twisted_mq.protocol.bodies.types import CLUSTERING
from twisted_mq.protocol.messages.subscription import is_tag_type, split_tags

NOT_SUBSCRIBED = "(nothing)"

Wishes = dict[str, str]
"""What one member wants, in words: topic to expression, and "(model)" to how it consumes."""

MODEL = "(model)"

MOST_WISHES = 10_000
"""The limit of the wishes of a group's members that are compared: of 3,000 members with two topics each."""
MOST_TOPICS = 200
MOST_PAIRS = 20_000
"""The limits of topics, and of topics times members, that are compared: 10 ms. The first topics by name are."""


@attrs.frozen
class SubscriptionConflict:
    """One topic of one group: what its members want of it. `wishes` is expression to the ids of its members, sorted."""

    group: str
    topic: str
    wishes: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return ", ".join(f"{wish} by {'+'.join(members)}" for wish, members in self.wishes.items())


class SubscriptionConflicts:
    """Compares the heartbeats of each group's members. `total` counts the conflicts that came up since the start.

    `on_conflict` are called with each new one, for metrics; a conflict is new again when it changes.
    """

    log = Logger()

    def __init__(self) -> None:
        self._members: dict[str, dict[str, Wishes]] = {}
        self._known: dict[str, dict[str, SubscriptionConflict]] = {}
        self._wishes: Counter[str] = Counter()
        """How many wishes the members of a group have."""
        self.total = 0
        self.on_conflict: list[Callable[[SubscriptionConflict], object]] = []

    def of_group(self, group: str) -> list[SubscriptionConflict]:
        """The conflicts there are now, by topic."""
        return [conflict for _, conflict in sorted(self._known.get(group, {}).items())]

    def heard(self, data: ConsumerData, client: ClientChannelInfo) -> None:
        """A member's heartbeat with its subscriptions."""
        members = self._members.setdefault(data.group_name, {})
        wishes = _wishes(data)
        before = members.get(client.client_id)
        if before != wishes:
            members[client.client_id] = wishes
            self._count(data.group_name, len(wishes) - len(before or ()))
            self._compare(data.group_name)

    def left(self, group: str, client: ClientChannelInfo) -> None:
        """A member is gone."""
        members = self._members.get(group, {})
        wishes = members.pop(client.client_id, None)
        if wishes is not None:
            self._count(group, -len(wishes))
            self._compare(group)
        if not members:
            self._members.pop(group, None)

    def _count(self, group: str, more: int) -> None:
        count = self._wishes[group] + more
        if count > MOST_WISHES >= count - more:
            self.log.warn("subscriptions not compared any more, there are {n}: group={group}", n=count, group=group)
        self._wishes[group] = count
        if not count:
            del self._wishes[group]

    def _compare(self, group: str) -> None:
        before = self._known.pop(group, {})
        now = _conflicts(group, self._members[group]) if self._wishes[group] <= MOST_WISHES else {}
        if now:
            self._known[group] = now
        for topic, conflict in now.items():
            if before.get(topic) != conflict:
                self._tell(conflict)
        for topic in sorted(before.keys() - now.keys()):
            self.log.info("subscription conflict is over: group={group} topic={topic}", group=group, topic=topic)

    def _tell(self, conflict: SubscriptionConflict) -> None:
        self.total += 1
        self.log.error(
            "subscription conflict, messages will be lost or not be consumed: group={group} topic={topic} {wishes}",
            group=conflict.group, topic=conflict.topic, wishes=str(conflict),
        )  # fmt: skip
        for tell in self.on_conflict:
            tell(conflict)


def _wishes(data: ConsumerData) -> Wishes:
    found = {one.topic: _wish(one) for one in data.subscription_data_set}
    return {**found, MODEL: data.message_model or CLUSTERING}


def _wish(subscription: SubscriptionData) -> str:
    """An expression that is equal for equal wishes: the order of tags means nothing."""
    expression = subscription.sub_string or "*"
    if not is_tag_type(subscription.expression_type):
        return f"{subscription.expression_type} {expression}"
    return " || ".join(sorted(split_tags(expression)))


def _conflicts(group: str, members: Mapping[str, Wishes]) -> dict[str, SubscriptionConflict]:
    found = {}
    topics = sorted({topic for wishes in members.values() for topic in wishes})
    for topic in topics[: min(MOST_TOPICS, MOST_PAIRS // max(1, len(members)))]:
        by_wish: dict[str, list[str]] = {}
        for client_id in sorted(members):
            by_wish.setdefault(members[client_id].get(topic, NOT_SUBSCRIBED), []).append(client_id)
        if len(by_wish) > 1:
            wishes = {wish: tuple(by_wish[wish]) for wish in sorted(by_wish)}
            found[topic] = SubscriptionConflict(group, topic, wishes)
    return found

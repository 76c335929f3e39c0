"""Finds members of one group with different subscriptions: they lose messages by that without any error.

The broker keeps one subscription for a group, and divides the queues of a topic among all members, also among
those that do not want it. Apache silently keeps the subscriptions of the last heartbeat.
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
"""The subscriptions of one member as text: topic to expression, and "(model)" to how it consumes."""

MODEL = "(model)"

MOST_WISHES = 10_000
"""The most wishes of a group's members that are compared, enough for 3,000 members with two topics each."""
MOST_TOPICS = 200
MOST_PAIRS = 20_000
"""The limit of topics times members that are compared, about 10 ms. The first topics by name are compared."""


@attrs.frozen
class DifferingSubscriptions:
    """The conflict about one topic in one group. `wishes` maps an expression to the ids of its members, sorted."""

    group: str
    topic: str
    wishes: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return ", ".join(f"{wish} by {'+'.join(members)}" for wish, members in self.wishes.items())


class SubscriptionConflicts:
    """Compares the heartbeats of each group's members. `total` counts the conflicts since the start.

    `on_conflict` are called with each new conflict, for metrics; a conflict that changes is new again.
    """

    log = Logger()

    def __init__(self) -> None:
        self._members: dict[str, dict[str, Wishes]] = {}
        self._known: dict[str, dict[str, DifferingSubscriptions]] = {}
        self._wishes: Counter[str] = Counter()
        """The number of wishes of each group's members."""
        self.total = 0
        self.on_conflict: list[Callable[[DifferingSubscriptions], object]] = []

    def of_group(self, group: str) -> list[DifferingSubscriptions]:
        """Return the current conflicts, by topic."""
        return [conflict for _, conflict in sorted(self._known.get(group, {}).items())]

    def heard(self, data: ConsumerData, client: ClientChannelInfo) -> None:
        """Compare a member's heartbeat with those of the others."""
        members = self._members.setdefault(data.group_name, {})
        wishes = _wishes(data)
        before = members.get(client.client_id)
        if before != wishes:
            members[client.client_id] = wishes
            self._count(data.group_name, len(wishes) - len(before or ()))
            self._compare(data.group_name)

    def left(self, group: str, client: ClientChannelInfo) -> None:
        """Forget a member that is gone."""
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
            self.log.warn("subscriptions no longer compared, there are {n}: group={group}", n=count, group=group)
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

    def _tell(self, conflict: DifferingSubscriptions) -> None:
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
    """Return an expression that is equal for equal subscriptions: the order of tags does not matter."""
    expression = subscription.sub_string or "*"
    if not is_tag_type(subscription.expression_type):
        return f"{subscription.expression_type} {expression}"
    return " || ".join(sorted(split_tags(expression)))


def _conflicts(group: str, members: Mapping[str, Wishes]) -> dict[str, DifferingSubscriptions]:
    found = {}
    topics = sorted({topic for wishes in members.values() for topic in wishes})
    for topic in topics[: min(MOST_TOPICS, MOST_PAIRS // max(1, len(members)))]:
        by_wish: dict[str, list[str]] = {}
        for client_id in sorted(members):
            by_wish.setdefault(members[client_id].get(topic, NOT_SUBSCRIBED), []).append(client_id)
        if len(by_wish) > 1:
            wishes = {wish: tuple(by_wish[wish]) for wish in sorted(by_wish)}
            found[topic] = DifferingSubscriptions(group, topic, wishes)
    return found

"""Keeps the connected consumers and their subscriptions, by group (Apache: ConsumerManager, ConsumerGroupInfo).

A change of a group's members calls `ids_changed(group)`, unless the group consumes by broadcast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import attrs

from twisted_mq.broker.clients.memberships import Memberships
from twisted_mq.broker.clients.producer_manager import CHANNEL_EXPIRED_MS, ClientChannelInfo
from twisted_mq.broker.clients.subscription_conflicts import SubscriptionConflicts
from twisted_mq.protocol.bodies import ConsumerData, SubscriptionData
from twisted_mq.protocol.bodies.types import BROADCASTING, CLUSTERING
from twisted_mq.remoting.channel import Channel


@attrs.define(eq=False)
class ConsumerGroupInfo:
    """A group: its connections, its subscriptions by topic, and how it consumes."""

    group: str
    consume_type: str | None = "CONSUME_PASSIVELY"
    message_model: str | None = CLUSTERING
    consume_from_where: str | None = "CONSUME_FROM_LAST_OFFSET"
    clients: dict[Channel, ClientChannelInfo] = attrs.field(factory=dict)
    subscriptions: dict[str, SubscriptionData] = attrs.field(factory=dict)
    _connections: Counter[str] = attrs.field(factory=Counter)
    """The number of connections of each client id."""

    def client_ids(self) -> list[str]:
        """Return the members, in the order in which they came. A member that reconnected counts once while its old
        connection ends.
        """
        return list(dict.fromkeys(client.client_id for client in self.clients.values()))

    def has_client(self, client_id: str) -> bool:
        """Return True if a member with that id is connected."""
        return client_id in self._connections

    def update_client(self, client: ClientChannelInfo) -> bool:
        """Record a heartbeat; True if the connection is new, or belongs to another client now."""
        known = self.clients.get(client.channel)
        self.clients[client.channel] = client
        self._connections[client.client_id] += 1
        if known is not None:
            self._forget_id(known)
        return known is None or known.client_id != client.client_id

    def drop_client(self, channel: Channel) -> ClientChannelInfo | None:
        """Forget a connection; None if it is not a member's."""
        client = self.clients.pop(channel, None)
        if client is not None:
            self._forget_id(client)
        return client

    def _forget_id(self, client: ClientChannelInfo) -> None:
        self._connections[client.client_id] -= 1
        if not self._connections[client.client_id]:
            del self._connections[client.client_id]

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Store the newest subscriptions; True if topics were added or removed."""
        told = {one.topic: one for one in subscriptions}
        changed = told.keys() != self.subscriptions.keys()
        for topic, old in self.subscriptions.items():
            if topic in told and told[topic].sub_version <= old.sub_version:
                told[topic] = old
        self.subscriptions = told
        return changed


class ConsumerManager:
    """All groups that have a consumer connected."""

    def __init__(self, ids_changed: Callable[[str], None], expired_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._ids_changed = ids_changed
        self._expired_ms = expired_ms
        self.groups: dict[str, ConsumerGroupInfo] = {}
        self._memberships = Memberships()
        self.conflicts = SubscriptionConflicts()
        self.on_group_gone: list[Callable[[str], object]] = []

    def register(
        self, data: ConsumerData, client: ClientChannelInfo, *, notify: bool = True, without_sub: bool = False
    ) -> bool:
        """Record a consumer's heartbeat; True if the group changed. `without_sub` leaves subscriptions as they are."""
        info = self.groups.get(data.group_name)
        if info is None:
            info = self.groups[data.group_name] = ConsumerGroupInfo(data.group_name)
        info.consume_type, info.message_model = data.consume_type, data.message_model
        info.consume_from_where = data.consume_from_where
        before = info.clients.get(client.channel)
        changed = info.update_client(client)
        self._memberships.add(client.channel, data.group_name)
        if before is not None and not info.has_client(before.client_id):
            self.conflicts.left(info.group, before)
        if not without_sub:
            changed |= info.update_subscriptions(data.subscription_data_set)
            self.conflicts.heard(data, client)
        if changed:
            self._tell(info, notify)
        return changed

    def unregister(self, group: str, channel: Channel, *, notify: bool = True) -> None:
        """Remove a consumer that leaves its group."""
        info = self.groups.get(group)
        client = info.drop_client(channel) if info is not None else None
        if info is None or client is None:
            return
        self._memberships.discard(channel, group)
        self._left(info, client, notify)

    def leave(self, channel: Channel) -> Iterator[None]:
        """Drop a connection from its groups and notify the remaining members, one group at each step."""
        return self._memberships.leave(channel, self.unregister)

    def expired(self, now_ms: int) -> list[Channel]:
        """Return the channels whose last heartbeat is too old. The caller closes them and calls `leave` for each."""
        return self._memberships.expired(
            now_ms - self._expired_ms, lambda group, channel: self.groups[group].clients[channel].last_update_ms
        )

    def channels_of(self, group: str) -> Iterable[Channel]:
        """Return the connections of a group's members."""
        info = self.groups.get(group)
        return () if info is None else info.clients

    def subscription(self, group: str, topic: str) -> SubscriptionData | None:
        """Return a group's subscription to a topic."""
        info = self.groups.get(group)
        return info.subscriptions.get(topic) if info is not None else None

    def _left(self, info: ConsumerGroupInfo, client: ClientChannelInfo, notify: bool) -> None:
        if not info.has_client(client.client_id):
            self.conflicts.left(info.group, client)
        if not info.clients:
            del self.groups[info.group]
            for tell in self.on_group_gone:
                tell(info.group)
        self._tell(info, notify)

    def _tell(self, info: ConsumerGroupInfo, notify: bool) -> None:
        if notify and info.message_model != BROADCASTING and info.clients:
            self._ids_changed(info.group)

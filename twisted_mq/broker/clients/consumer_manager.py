"""Which consumers are connected and what they subscribe to, by group (Apache: ConsumerManager, ConsumerGroupInfo).

A change of a group's members is told to `ids_changed(group, channels)`, unless the group consumes by broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from twisted_mq.broker.clients.producer_manager import CHANNEL_EXPIRED_MS, ClientChannelInfo
from twisted_mq.broker.clients.subscription_conflicts import SubscriptionConflicts
from twisted_mq.protocol.bodies import ConsumerData, SubscriptionData
from twisted_mq.protocol.bodies.types import BROADCASTING, CLUSTERING
from twisted_mq.remoting.channel import Channel


@attrs.define(eq=False)
class ConsumerGroupInfo:
    """One group: its connections, its subscriptions by topic, and how it consumes."""

    group: str
    consume_type: str | None = "CONSUME_PASSIVELY"
    message_model: str | None = CLUSTERING
    consume_from_where: str | None = "CONSUME_FROM_LAST_OFFSET"
    clients: dict[Channel, ClientChannelInfo] = attrs.field(factory=dict)
    subscriptions: dict[str, SubscriptionData] = attrs.field(factory=dict)

    def client_ids(self) -> list[str]:
        """The members, in the order they came; one that came back counts once while its old connection dies slowly."""
        return list(dict.fromkeys(client.client_id for client in self.clients.values()))

    def update_client(self, client: ClientChannelInfo) -> bool:
        """Note a heartbeat; True for a connection that is new, or is another client's now."""
        known = self.clients.get(client.channel)
        self.clients[client.channel] = client
        return known is None or known.client_id != client.client_id

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Take over the newest subscriptions; True when topics came or went."""
        told = {one.topic: one for one in subscriptions}
        changed = told.keys() != self.subscriptions.keys()
        for topic, old in self.subscriptions.items():
            if topic in told and told[topic].sub_version <= old.sub_version:
                told[topic] = old
        self.subscriptions = told
        return changed


class ConsumerManager:
    """All groups that have a consumer connected."""

    def __init__(self, ids_changed: Callable[[str, list[Channel]], None], expired_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._ids_changed = ids_changed
        self._expired_ms = expired_ms
        self.groups: dict[str, ConsumerGroupInfo] = {}
        self.conflicts = SubscriptionConflicts()
        self.on_group_gone: list[Callable[[str], object]] = []

    def register(
        self, data: ConsumerData, client: ClientChannelInfo, *, notify: bool = True, without_sub: bool = False
    ) -> bool:
        """Note a consumer's heartbeat; True when the group changed. `without_sub` leaves subscriptions as they are."""
        info = self.groups.get(data.group_name)
        if info is None:
            info = self.groups[data.group_name] = ConsumerGroupInfo(data.group_name)
        info.consume_type, info.message_model = data.consume_type, data.message_model
        info.consume_from_where = data.consume_from_where
        before = info.clients.get(client.channel)
        changed = info.update_client(client)
        if before is not None and before.client_id not in info.client_ids():
            self.conflicts.left(info.group, before)
        if not without_sub:
            changed |= info.update_subscriptions(data.subscription_data_set)
            self.conflicts.heard(data, client)
        if changed:
            self._tell(info, notify)
        return changed

    def unregister(self, group: str, channel: Channel, *, notify: bool = True) -> None:
        """A consumer says goodbye."""
        info = self.groups.get(group)
        client = info.clients.pop(channel, None) if info is not None else None
        if info is not None and client is not None:
            self._left(info, client, notify)

    def channel_lost(self, channel: Channel) -> None:
        """Drop the connection from all groups and tell those that are left."""
        for info in [one for one in self.groups.values() if channel in one.clients]:
            self._left(info, info.clients.pop(channel), True)

    def expired(self, now_ms: int) -> list[Channel]:
        """Channels whose last heartbeat is too old; they are dropped here, closing them is the caller's."""
        oldest = now_ms - self._expired_ms
        late = [client.channel for info in self.groups.values() for client in info.clients.values()
                if client.last_update_ms < oldest]  # fmt: skip
        for channel in late:
            self.channel_lost(channel)
        return late

    def subscription(self, group: str, topic: str) -> SubscriptionData | None:
        """What a group subscribed to on a topic."""
        info = self.groups.get(group)
        return info.subscriptions.get(topic) if info is not None else None

    def _left(self, info: ConsumerGroupInfo, client: ClientChannelInfo, notify: bool) -> None:
        if client.client_id not in info.client_ids():
            self.conflicts.left(info.group, client)
        if not info.clients:
            del self.groups[info.group]
            for tell in self.on_group_gone:
                tell(info.group)
        self._tell(info, notify)

    def _tell(self, info: ConsumerGroupInfo, notify: bool) -> None:
        if notify and info.message_model != BROADCASTING and info.clients:
            self._ids_changed(info.group, list(info.clients))

"""Which producers are connected, by group (Apache: ProducerManager)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import attrs

from twisted_mq.remoting.channel import Channel

CHANNEL_EXPIRED_MS = 120_000
"""A client without a heartbeat for this long is dropped (Apache: CHANNEL_EXPIRED_TIMEOUT)."""


@attrs.define(eq=False)
class ClientChannelInfo:
    """One client of a group on one connection."""

    channel: Channel
    client_id: str
    language: str
    version: int
    last_update_ms: int
    account: str | None = None
    """Whose signature the last heartbeat had."""


class ProducerManager:
    """Groups of producers; a group without a connection is forgotten."""

    def __init__(self, expired_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._expired_ms = expired_ms
        self.groups: dict[str, dict[Channel, ClientChannelInfo]] = {}
        self._by_client_id: dict[str, Channel] = {}
        self._asked = 0

    def register(self, group: str, client: ClientChannelInfo) -> None:
        """Note a producer's heartbeat."""
        clients = self.groups.setdefault(group, {})
        before = clients.get(client.channel)
        clients[client.channel] = client
        self._by_client_id[client.client_id] = client.channel
        if before is not None and before.client_id != client.client_id:
            self._forget_id(before)

    def unregister(self, group: str, channel: Channel) -> None:
        """A producer says goodbye."""
        self._drop(group, channel)

    def channel_lost(self, channel: Channel) -> None:
        """Drop the connection from all groups."""
        for group in [name for name, clients in self.groups.items() if channel in clients]:
            self._drop(group, channel)

    def expired(self, now_ms: int) -> list[Channel]:
        """Channels whose last heartbeat is too old; they are dropped here, closing them is the caller's."""
        oldest = now_ms - self._expired_ms
        late = [client.channel for clients in self.groups.values() for client in clients.values()
                if client.last_update_ms < oldest]  # fmt: skip
        for channel in late:
            self.channel_lost(channel)
        return late

    def find_channel(self, client_id: str) -> Channel | None:
        """The connection of a client's producers (Apache: findChannel)."""
        return self._by_client_id.get(client_id)

    def is_member(self, group: str, channel: Channel) -> bool:
        """Whether a connection is registered as a producer of the group."""
        return channel in self.groups.get(group, ())

    def available_channel(
        self, group: str, may: Callable[[ClientChannelInfo], bool] = lambda client: True
    ) -> Channel | None:
        """A connection of the group that may be asked, each time the next one (Apache: getAvailableChannel)."""
        clients = [client for client in self.groups.get(group, {}).values() if client.channel.connected_now]
        self._asked += 1
        first = self._asked % len(clients) if clients else 0
        in_turn = itertools.chain(clients[first:], clients[:first])
        return next((client.channel for client in in_turn if may(client)), None)

    def _drop(self, group: str, channel: Channel) -> None:
        clients = self.groups.get(group)
        client = clients.pop(channel, None) if clients is not None else None
        if client is None:
            return
        if not clients:
            del self.groups[group]
        self._forget_id(client)

    def _forget_id(self, client: ClientChannelInfo) -> None:
        """Forget a client's connection, unless the client uses it for another group."""
        elsewhere = (clients.get(client.channel) for clients in self.groups.values())
        used = any(other is not None and other.client_id == client.client_id for other in elsewhere)
        if not used and self._by_client_id.get(client.client_id) is client.channel:
            del self._by_client_id[client.client_id]

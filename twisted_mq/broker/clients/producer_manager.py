"""The connected producers, by group (Apache: ProducerManager)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator

import attrs

from twisted_mq.broker.clients.memberships import Memberships
from twisted_mq.remoting.channel import Channel

CHANNEL_EXPIRED_MS = 120_000
"""A client without a heartbeat for this long is dropped (Apache: CHANNEL_EXPIRED_TIMEOUT)."""

GROUPS_OF_SLICE = 100
"""The limit of a client's groups that are registered or left in one turn: about 10 ms if all are new. Clients have a few."""
SLICE_MS = 10
"""The limit of the time of such a turn: one group takes up to 10 ms, if its members differ in many subscriptions."""


def client_lane(channel: Channel) -> Hashable:
    """Return the lane of one client, in which the work of its heartbeats and of its departure runs one after the other."""
    return "client", channel


@attrs.define(eq=False)
class ClientChannelInfo:
    """A client of a group on one connection."""

    channel: Channel
    client_id: str
    language: str
    version: int
    last_update_ms: int
    account: str | None = None
    """The account that signed the last heartbeat."""


class ProducerManager:
    """The groups of producers. A group without a connection is forgotten. The cost of a call grows with its own groups only."""

    def __init__(self, expired_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._expired_ms = expired_ms
        self.groups: dict[str, dict[Channel, ClientChannelInfo]] = {}
        self._memberships = Memberships()
        self._by_client_id: dict[str, ClientChannelInfo] = {}
        self._uses: Counter[tuple[str, Channel]] = Counter()
        """The number of groups in which a client id uses a connection."""

    def register(self, group: str, client: ClientChannelInfo) -> None:
        """Record a producer's heartbeat. The id of a connected client stays with its account."""
        clients = self.groups.setdefault(group, {})
        before = clients.get(client.channel)
        clients[client.channel] = client
        self._memberships.add(client.channel, group)
        holder = self._by_client_id.get(client.client_id)
        if holder is None or holder.account == client.account or not holder.channel.connected_now:
            self._by_client_id[client.client_id] = client
        self._uses[client.client_id, client.channel] += 1
        if before is not None:
            self._forget_use(before)

    def unregister(self, group: str, channel: Channel) -> None:
        """Remove a producer that leaves its group."""
        clients = self.groups.get(group)
        client = clients.pop(channel, None) if clients is not None else None
        if client is None:
            return
        if not clients:
            del self.groups[group]
        self._memberships.discard(channel, group)
        self._forget_use(client)

    def leave(self, channel: Channel) -> Iterator[None]:
        """Drop a connection from its groups, one group at each step."""
        return self._memberships.leave(channel, self.unregister)

    def expired(self, now_ms: int) -> list[Channel]:
        """Return the channels whose last heartbeat is too old. The caller closes them and calls `leave` for each."""
        return self._memberships.expired(
            now_ms - self._expired_ms, lambda group, channel: self.groups[group][channel].last_update_ms
        )

    def find_channel(self, client_id: str) -> Channel | None:
        """Return the connection of a client's producers (Apache: findChannel)."""
        holder = self._by_client_id.get(client_id)
        return None if holder is None else holder.channel

    def is_member(self, group: str, channel: Channel) -> bool:
        """Return whether a connection is registered as a producer of the group."""
        return channel in self.groups.get(group, ())

    def available_channel(
        self, group: str, may: Callable[[ClientChannelInfo], bool] = lambda client: True
    ) -> Channel | None:
        """Return a connection of the group that takes requests and may be asked; each call returns the next one.

        (Apache: getAvailableChannel.)
        """
        clients = self.groups.get(group, {})
        for channel in tuple(clients):
            client = clients[channel] = clients.pop(channel)  # last in line, as it was looked at
            if channel.takes_requests and may(client):
                return channel
        return None

    def _forget_use(self, client: ClientChannelInfo) -> None:
        """Forget a client's connection, unless the client uses it for another group."""
        use = client.client_id, client.channel
        self._uses[use] -= 1
        if self._uses[use]:
            return
        del self._uses[use]
        if self.find_channel(client.client_id) is client.channel:
            del self._by_client_id[client.client_id]

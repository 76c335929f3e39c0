"""Keeps the groups of each connection, so that a client that leaves costs only as much as its own groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from twisted_mq.remoting.channel import Channel


@attrs.define(eq=False)
class Memberships:
    """The groups of connections. A connection without a group is not kept."""

    _groups_of: dict[Channel, dict[str, None]] = attrs.field(factory=dict)

    def add(self, channel: Channel, group: str) -> None:
        """Record that the connection is a member of the group."""
        self._groups_of.setdefault(channel, {})[group] = None

    def discard(self, channel: Channel, group: str) -> None:
        """Record that the connection is not a member of the group any more."""
        groups = self._groups_of[channel]
        del groups[group]
        if not groups:
            del self._groups_of[channel]

    def leave(self, channel: Channel, unregister: Callable[[str, Channel], None]) -> Iterator[None]:
        """Unregister a connection from all its groups, one group at each step."""
        for group in tuple(self._groups_of.get(channel, ())):
            unregister(group, channel)
            yield

    def expired(self, oldest_ms: int, last_update_ms: Callable[[str, Channel], int]) -> list[Channel]:
        """Return the connections whose last heartbeat for one of their groups is too old."""
        return [
            channel
            for channel, groups in self._groups_of.items()
            if any(last_update_ms(group, channel) < oldest_ms for group in groups)
        ]

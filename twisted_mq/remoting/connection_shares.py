"""Shares out the connections of one server, for remoting, gRPC and HTTP: past the limit, one of the largest share gives way.

A connection that the server cannot take is refused, with one log line for all until a connection is taken again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from twisted.internet import interfaces

from twisted_mq.logs import Logger
from twisted_mq.remoting.shares import Served, Shares, address_of

RESERVE = 16
"""Connections of an address that was served before which do not give way to others."""


class ClosableConnection(Hashable, Protocol):
    """A connection that can be closed to make room."""

    @property
    def share_address(self) -> str:
        """Return the address whose share it is part of."""

    def cut(self, reason: str) -> None:
        """Close it at once."""


C = TypeVar("C", bound=ClosableConnection)


class ConnectionShares(Generic[C]):
    """At most `most` connections; those that are connected, the oldest first."""

    log = Logger()

    def __init__(self, clock: interfaces.IReactorTime, most: int, reserve: int = RESERVE) -> None:
        self._most = most
        self._all: dict[C, None] = {}
        self._busy: set[C] = set()
        self._served = Served(clock)
        self._shares: Shares[C] = Shares(self._served.is_proven, reserve, earned=True)
        self._refused = 0

    def __iter__(self) -> Iterator[C]:
        return iter(tuple(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, connection: object) -> bool:
        return connection in self._all

    def has_room(self, host: str | None, *, its_oldest: bool = False) -> bool:
        """Return True if one more connection of a host is accepted; past the limit a connection is cut for it.

        That is the oldest of the largest share, if that share is larger. With `its_oldest` it may be the oldest of this
        host itself.
        """
        if len(self._all) < self._most or self._make_room(host, its_oldest):
            self._refused = 0
            return True
        if not self._refused:
            self.log.warn(
                "connection refused, {n} are open: peer={peer}. Raise the limit of open files (ulimit -n)",
                n=len(self._all),
                peer=host,
            )
        self._refused += 1
        return False

    def _make_room(self, host: str | None, its_oldest: bool) -> bool:
        if host is None:
            return False
        address = address_of(host)
        connection = self._shares.gives_way(address, host)
        if connection is None and its_oldest:
            connection = self._shares.oldest(address) or self._shares.oldest() or next(iter(self._all), None)
        if connection is None:
            return False
        count = len(self._all)
        self.discard(connection)
        connection.cut(f"{count} are open and its address has the most; closed for {host}")
        return True

    def add(self, connection: C) -> None:
        """Add a connection."""
        self._all[connection] = None
        self._served.note(connection.share_address)
        self._shares.add(connection.share_address, connection, connection)

    def discard(self, connection: C) -> None:
        """Remove a connection. Harmless if it is not there."""
        self._all.pop(connection, None)
        self._busy.discard(connection)
        self._shares.discard(connection.share_address, connection, connection)

    def moved(self, connection: C, before: str) -> None:
        """Update a connection whose share has changed."""
        if connection in self._all and connection not in self._busy:
            self._shares.discard(before, connection, connection)
            self._served.note(connection.share_address)
            self._shares.add(connection.share_address, connection, connection)

    def set_busy(self, connection: C, *, busy: bool) -> None:
        """Mark a connection as busy: it is not cut, unless all are busy."""
        if connection not in self._all:
            return
        if busy:
            self._busy.add(connection)
            self._shares.discard(connection.share_address, connection, connection)
        else:
            self._busy.discard(connection)
            self._shares.add(connection.share_address, connection, connection)

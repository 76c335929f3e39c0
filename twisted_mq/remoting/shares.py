"""Shares out what a server has only so many of: places for waiting pulls, links of slaves, connections.

A share belongs to an address, and within that to a connection. If requests are signed, it belongs to the account of the
first allowed signed request of the connection, as if the account were an address. While there is room, all peers are
served. After that, the largest share gives way to a smaller one, as long as that leaves it no smaller than the other. An
address that has proven itself has a reserve: a part of its share that does not count.

An address proves itself by being served for a while, which a patient stranger can do from many addresses. So reserves
that are earned in this way are at most half of the total. If accounts are known, only accounts earn them.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import attrs
from twisted.internet import interfaces

Thing = TypeVar("Thing", bound=Hashable)

PROOF_SECONDS = 60.0
"""The time after which an address that was served has proven itself."""
MOST_KNOWN = 10_000
IPV6_NETWORK_BITS = 64
"""The host part of an IPv6 address is the peer's own choice."""


@functools.lru_cache(maxsize=4096)
def address_of(host: str) -> str:
    """Return the address that a peer's share belongs to: an IPv4 address, or the network of an IPv6 one."""
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, IPV6_NETWORK_BITS), strict=False))


ACCOUNT = "account "


def share_of_account(account: str) -> str:
    """Return whose share the connections of an account use, in place of an address."""
    return ACCOUNT + account


def nobody(address: str) -> bool:
    """Return False: no address has proven itself."""
    return False


class Served:
    """The addresses that were served, and since when. Past a limit, the newest one is forgotten.

    Once an account was served, addresses without one prove nothing.
    """

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self._seconds = clock.seconds
        self._since: dict[str, float] = {}
        self._knows_accounts = False

    def note(self, address: str) -> None:
        """Record that an address is served."""
        if address not in self._since:
            if address.startswith(ACCOUNT) and not self._knows_accounts:
                self._knows_accounts = True
                self._since.clear()
            if len(self._since) >= MOST_KNOWN:
                self._since.popitem()
            self._since[address] = self._seconds()

    def is_proven(self, address: str) -> bool:
        """Return True if the address was served long enough before."""
        if self._knows_accounts and not address.startswith(ACCOUNT):
            return False
        since = self._since.get(address)
        return since is not None and self._seconds() - since >= PROOF_SECONDS


@attrs.define(eq=False)
class Shares(Generic[Thing]):
    """The shares of addresses, by connection, the oldest thing first.

    `reserve` is the part of a proven address's share that does not count. All reserves `earned` by patience are at most
    half of the total.
    """

    is_proven: Callable[[str], bool] = nobody
    reserve: int = 1
    earned: bool = False
    _total: int = 0
    _of: dict[str, dict[Hashable, dict[Thing, None]]] = attrs.field(factory=dict)
    _counts: dict[str, int] = attrs.field(factory=dict)

    def add(self, address: str, connection: Hashable, thing: Thing) -> None:
        """Add a thing to a connection of an address."""
        connections = self._of.get(address)
        if connections is None:
            connections = self._of[address] = {}
            self._counts[address] = 0
        things = connections.get(connection)
        if things is None:
            things = connections[connection] = {}
        if thing not in things:
            things[thing] = None
            self._counts[address] += 1
            self._total += 1

    def discard(self, address: str, connection: Hashable, thing: Thing) -> None:
        """Remove a thing. Harmless if the connection did not have it."""
        connections = self._of.get(address, {})
        things = connections.get(connection, {})
        if thing not in things:
            return
        del things[thing]
        self._counts[address] -= 1
        self._total -= 1
        if not things:
            del connections[connection]
        if not connections:
            del self._of[address], self._counts[address]

    def by_connection(self) -> Iterable[Iterable[Thing]]:
        """Yield the things of each connection that has some."""
        for connections in self._of.values():
            yield from connections.values()

    def gives_way(self, address: str, connection: Hashable) -> Thing | None:
        """Return what gives way to one more of a connection: the oldest of the largest share. None if no share is larger."""
        largest = max(self._counts, key=self._counted, default=None)
        if largest is None:
            return None
        connections = self._of[largest]
        biggest = max(connections, key=lambda one: len(connections[one]))
        if largest != address:
            is_larger = self._counted(largest) > self._counted(address, 1)
        else:
            is_larger = len(connections[biggest]) > len(connections.get(connection, ())) + 1
        return next(iter(connections[biggest])) if is_larger else None

    def oldest(self, address: str | None = None) -> Thing | None:
        """Return the oldest thing of an address's oldest connection, by default of the largest share. None if it has none."""
        if address is None:
            address = max(self._counts, key=self._counted, default="")
        for things in self._of.get(address, {}).values():
            return next(iter(things))
        return None

    def _counted(self, address: str, more: int = 0) -> int:
        count = self._counts.get(address, 0) + more
        return max(0, count - self._reserve) if self.is_proven(address) else count

    @property
    def _reserve(self) -> int:
        return min(self.reserve, self._total // (2 * max(1, len(self._of)))) if self.earned else self.reserve

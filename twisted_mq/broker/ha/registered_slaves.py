"""Finds the hosts that are registered as slaves: their links do not give way to others.

If no secret tells slaves from strangers, only their copies count.

A registered address counts by its host alone, because a slave's link has a port of its own. The master's own host
and loopback are the same host. A name server that does not know the master yet (it was just started) changes nothing, nor
does one that is away. A link that counted once counts until it ends.
"""

from __future__ import annotations

import ipaddress
import socket

from twisted.internet import defer

from twisted_mq.broker.ha.accept_service import AcceptSocketService
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.logs import Logger
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.reactor_threads import InThread


class RegisteredSlaves:
    """Keeps `accept` informed of the registered slaves. `look` asks the name servers; `own_ip` is the master's registered
    address.
    """

    log = Logger()

    def __init__(self, accept: AcceptSocketService, group: MemberGroup, own_ip: str, in_thread: InThread) -> None:
        self._accept = accept
        self._group = group
        self._own_ip = own_ip
        self._in_thread = in_thread
        self._hosts: frozenset[str] | None = None
        self._said = False

    def look(self) -> defer.Deferred[None]:
        """Fire when it is known whose copies count."""
        return defer.ensureDeferred(self._look())

    async def _look(self) -> None:
        members = await self._group.addresses()
        if members is not None and MASTER_ID in members:
            names = {address.rpartition(":")[0] for number, address in members.items() if number != MASTER_ID}
            found = [await self._resolved(name) for name in names]
            self._hosts = frozenset(self._same(host) for hosts in found for host in hosts)
        if self._hosts is not None:
            self._accept.count(self._is_slave)
        elif not self._said and self._accept.options.counts_registered_slaves:
            self._said = True
            self.log.warn("no name server reports the registered slaves: no copy of a slave counts until one does")

    def _is_slave(self, host: str) -> bool:
        return self._hosts is not None and self._same(host) in self._hosts

    def _same(self, host: str) -> str:
        """Return one text for each host: IPv4 as such, this machine by the address that others know."""
        try:
            ip = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return host
        ip = getattr(ip, "ipv4_mapped", None) or ip
        return self._own_ip if ip.is_loopback else str(ip)

    async def _resolved(self, name: str) -> set[str]:
        """Return the host itself and, for a name, its addresses."""
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return {name, *await self._in_thread(addresses_of, name)}
        return {name}


def addresses_of(name: str) -> set[str]:
    """Return the addresses that the system's resolver knows for a host name; empty if it knows none. Blocks."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()

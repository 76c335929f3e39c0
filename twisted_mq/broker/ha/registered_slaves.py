"""Finds the hosts that are registered as slaves: their links do not give way to others.

If no secret tells slaves from strangers, only their copies count, and the links of other hosts share a limit of bytes a second.

A registered address counts by its host alone, because a slave's link has a port of its own. The master's own host
and loopback are the same host. A name server that does not know the master yet (it was just started) changes nothing, nor
does one that is away. A link that counted once counts until it ends.
"""

from __future__ import annotations

from twisted.internet import defer

from twisted_mq.broker.ha.accept_service import AcceptSocketService
from twisted_mq.broker.ha.host_names import HostNames
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
        self._names = HostNames(own_ip, in_thread)
        self._hosts: frozenset[str] | None = None
        self._said = False

    def look(self) -> defer.Deferred[None]:
        """Fire when it is known whose copies count."""
        return defer.ensureDeferred(self._look())

    def look_at_strangers(self) -> defer.Deferred[None]:
        """Look if links are limited: a slave that has just registered is sent all it can take from then on."""
        limited = any(connection.is_limited for connection in self._accept.connections)
        return self.look() if limited else defer.succeed(None)

    async def _look(self) -> None:
        members = await self._group.addresses()
        if members is not None and MASTER_ID in members:
            slaves = {address for number, address in members.items() if number != MASTER_ID}
            found = [await self._names.hosts_of(address) for address in slaves]
            self._hosts = frozenset[str]().union(*found)
        if self._hosts is not None:
            self._accept.count(self._is_slave)
        elif not self._said and self._accept.options.counts_registered_slaves:
            self._said = True
            self.log.warn("no name server reports the registered slaves: no copy of a slave counts until one does")

    def _is_slave(self, host: str) -> bool:
        return self._hosts is not None and self._names.same(host) in self._hosts

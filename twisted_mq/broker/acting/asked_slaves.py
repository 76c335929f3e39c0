"""Decides which registered slaves a returning master asks what they did in its place.

A name server without registrationSharedSecret takes every host for a slave, and what a slave answers moves consumer
offsets and skips delayed messages. So the first rule that applies decides.

With haAllowedSlaves, its hosts are asked and no others. With registrationSharedSecret, all are asked: only brokers that
have it are registered. With haSharedSecret, a slave is asked once a link from its host has proven the secret. Under
access control without these keys, none is asked. Without access control, all are asked: there every client can commit
any offset, as at Apache's broker.

Slaves of the first two rules are waited for. The others are waited for UNPROVEN_SECONDS at most, else a stranger that does not
answer could keep the master away. Without a slave's answer messages are delivered again; none is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs
from twisted.internet import interfaces

from twisted_mq.broker.ha.accept_service import MAX_SLAVES
from twisted_mq.broker.ha.host_names import HostNames
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger

UNPROVEN_SECONDS = 60.0
"""A slave that is gone leaves the name servers' tables sooner."""


@attrs.frozen
class Slave:
    """A registered slave. `is_ready` is False while it has to prove haSharedSecret first."""

    number: int
    address: str
    is_proven: bool
    is_ready: bool = True

    def __str__(self) -> str:
        return f"slave {self.number} at {self.address}"


@attrs.define(eq=False)
class AskedSlaves:
    """The slaves of one master. `proven_hosts` returns the hosts that have proven haSharedSecret."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    names: HostNames
    proven_hosts: Callable[[], Iterable[str]]
    _ends: float | None = None
    _told: set[str] = attrs.field(factory=set)
    log = Logger()

    def __attrs_post_init__(self) -> None:
        options = self.options
        if not options.needs_rights and not options.tells_slaves_apart and not options.registration_shared_secret:
            self.log.warn(
                "enableSlaveActingMaster without registrationSharedSecret, haSharedSecret and haAllowedSlaves: every host can "
                "register as a slave of this master, hold its registration back for {s:.0f} s, and move consumer offsets. "
                "Set one of them, or skipPreOnline=true",
                s=UNPROVEN_SECONDS,
            )

    async def of(self, members: Mapping[int, str]) -> list[Slave]:
        """Return the slaves to ask now, the proven ones first. One line in the log names those that are left out."""
        if self._ends is None:
            self._ends = self.clock.seconds() + UNPROVEN_SECONDS
        found = [
            await self._slave(number, address)
            for number, address in sorted(members.items())
            if number != self.options.broker_id
        ]
        slaves = sorted((one for one in found if one is not None), key=lambda one: not one.is_proven)
        return self._within(slaves)

    async def _slave(self, number: int, address: str) -> Slave | None:
        options = self.options
        if options.allowed_slaves:
            if await self._is_at(address, options.allowed_slaves):
                return Slave(number, address, is_proven=True)
            self._left_out(number, address, "haAllowedSlaves does not name its host")
        elif options.registration_shared_secret:
            return Slave(number, address, is_proven=True)
        elif options.ha_shared_secret:
            proven = await self._is_at(address, self.proven_hosts())
            return Slave(number, address, is_proven=proven, is_ready=proven)
        elif options.needs_rights:
            self._left_out(
                number, address,
                "under access control that needs registrationSharedSecret, haSharedSecret or haAllowedSlaves",
            )  # fmt: skip
        else:
            return Slave(number, address, is_proven=False)
        return None

    async def _is_at(self, address: str, hosts: Iterable[str]) -> bool:
        return not {self.names.same(host) for host in hosts}.isdisjoint(await self.names.hosts_of(address))

    def _within(self, slaves: list[Slave]) -> list[Slave]:
        """Return the slaves that are waited for still."""
        kept = slaves[:MAX_SLAVES]
        for one in slaves[MAX_SLAVES:]:
            self._left_out(one.number, one.address, f"more than {MAX_SLAVES} are registered")
        if self._ends is not None and self.clock.seconds() >= self._ends:
            for one in kept:
                if not one.is_proven:
                    self._left_out(one.number, one.address, "it is not proven and had its time")
            kept = [one for one in kept if one.is_proven]
        return kept

    def _left_out(self, number: int, address: str, why: str) -> None:
        if address not in self._told and len(self._told) < MAX_SLAVES:
            self._told.add(address)
            self.log.warn(
                "slave not asked what it did in this master's place, messages may be delivered again: slave={n} at {a}: {w}. "
                "If it is one, add its host to haAllowedSlaves",
                n=number, a=address, w=why,
            )  # fmt: skip

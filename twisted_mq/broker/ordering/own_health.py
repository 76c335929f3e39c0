"""Checks a broker's own group: that both brokers hold the same, and that this one holds everything that counts.

A broker that (re)started may lack messages that were acknowledged, if they were in its memory only. It is complete again
once it was in sync with its partner. Until then it hands out what it has, and never reports that all is consumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.ha.service import HAService
from twisted_mq.protocol.bodies import HARuntimeInfo, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.layouts.ha import ConnectionState
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.storage.interfaces import IMessageStore

KEEP_UP_SECONDS = 1.0
"""The time that a slave may take to acknowledge what was appended."""

ASK_SECONDS = 1.0


class HealthParts(Protocol):
    """The parts of the broker whose health is checked."""

    store: IMessageStore
    ha: HAService


class MasterHealth:
    """The health of a master, by its slave's acknowledgements. `confirmed` is the offset up to which both brokers hold the log.

    The log at the start of the process counts as confirmed, so that a master without its slave hands it out. After that
    only what a slave acknowledges in this master's session counts: a slave may have told meanwhile that all is consumed.
    """

    def __init__(self, broker: HealthParts, monotonic: Callable[[], float]) -> None:
        self._store = broker.store
        self._ha = broker.ha
        self._accept = broker.ha.accept
        self._monotonic = monotonic
        self.confirmed = broker.store.max_physical_offset()
        self.complete = False
        self._noted = self.confirmed
        self._caught_up = False
        self._awaited = (self.confirmed, monotonic())

    def note(self) -> None:
        """Note what the slave acknowledged in this session. Sends are answered for it, also if the slave is gone later."""
        self._noted = max([self._noted, *self._ha.confirmed_offsets()])

    def acknowledged(self) -> bool:
        """Confirm what was noted so far and what the slave reports now. Returns True if more is confirmed than before."""
        self.note()
        before, self.confirmed = self.confirmed, self._noted
        return self.confirmed > before

    def look(self) -> str | None:
        """Return why the group must not take sends, as far as this broker sees; call it a few times a second."""
        known = [one for one in self._accept.connections if one.is_known]
        slaves = [one for one in known if one.counts]
        if len(slaves) != 1:
            self._await_anew()
            if known and not slaves:
                return (
                    "its slave's copy does not count: register the slave with the name servers, or set haSharedSecret or"
                    " haAllowedSlaves"
                )
            if self._accept.ahead is not None and not slaves:
                return self._accept.ahead
            return f"{len(slaves) or 'no'} slaves replicate from it; it needs exactly one"
        if slaves[0].reader.session != self._ha.master_session():
            self._await_anew()
            return "its slave has not confirmed its session with the coordinator; slaves of earlier versions never do"
        return None if self._keeps_up(slaves[0].slave_ack_offset) else self._lags()

    def _keeps_up(self, held: int) -> bool:
        """Return True if the slave acknowledged the log's end of a while ago; if it has just connected, the present end."""
        now, end = self._monotonic(), self._store.max_physical_offset()
        if held >= self._awaited[0]:
            self.complete = self._caught_up = True
            self._awaited = (end, now)
        return self._caught_up and now - self._awaited[1] <= KEEP_UP_SECONDS

    def _await_anew(self) -> None:
        self._awaited = (self._store.max_physical_offset(), self._monotonic())
        self._caught_up = False

    def _lags(self) -> str:
        return (
            "its slave does not keep up" if self.complete else "it restarted, and its slave is not in sync with it yet"
        )


class SlaveHealth:
    """The health of a slave, by its master's reports of its log's end. `master_address` is None while no master is known."""

    def __init__(self, broker: HealthParts, invoke: Invoke, master_address: Callable[[], str | None]) -> None:
        self._broker = broker
        self._invoke = invoke
        self._master_address = master_address
        self._asks = False
        self._awaited: int | None = None
        self.complete = False

    def look(self) -> str | None:
        """Return why the group must not take sends; ask the master while this slave is not complete."""
        if self._awaited is not None and self._follows() and self._broker.store.max_physical_offset() >= self._awaited:
            self.complete = True
        if not self.complete and not self._asks:
            self._asks = True
            defer.ensureDeferred(self._ask())
        if self.complete and not self._follows():
            return "its slave has no link to its master"
        return None if self.complete else "its slave restarted, and is not in sync with its master yet"

    async def _ask(self) -> None:
        try:
            self._awaited = await self._end_of_master()
        finally:
            self._asks = False

    def _follows(self) -> bool:
        client = self._broker.ha.client
        return client is not None and client.state is ConnectionState.TRANSFER

    async def _end_of_master(self) -> int | None:
        address = self._master_address()
        if address is None or not self._follows():
            return None
        try:
            answer = await self._invoke(address, RemotingCommand.request(RequestCode.GET_BROKER_HA_STATUS), ASK_SECONDS)
            info = decode_body(HARuntimeInfo, answer.body) if answer.code == 0 else None
        except (RemotingError, ProtocolError):
            return None
        return info.master_commit_log_max_offset if info is not None and info.master else None

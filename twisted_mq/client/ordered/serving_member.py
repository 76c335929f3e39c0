"""Finds a group's broker that serves consumers: the master, or the slave while the master is gone or cannot be reached."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.core.errors import BrokerGone
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.logs import Logger
from twisted_mq.ordering.paths import members_path
from twisted_mq.protocol.names.routes import MASTER_ID

LONGEST_AVOIDED_SESSIONS = 16


class ServingMember:
    """The serving broker of one group. `changed` is called when another broker serves.

    Addresses are those of the name servers' routes. A broker that could not be reached is avoided for the time of a session,
    and twice as long each time after that, while another one is there.
    """

    log = Logger()

    def __init__(
        self, client: MQClient, coordinator: ICoordinator, topic: str, group: str, changed: Callable[[], object]
    ) -> None:
        self.group = group
        self._client = client
        self._coordinator = coordinator
        self._topic = topic
        self._changed = changed
        self._broker_id = MASTER_ID
        self._avoided: tuple[int, float] | None = None
        """The id of an avoided broker, and until when it is avoided."""
        self._avoided_sessions = 1
        self._end = coordinator.watch(members_path(group), self._look)

    def stop(self) -> None:
        """Call nothing back any more."""
        self._end()

    async def address(self) -> str:
        """Return the address of the serving broker. Raises NoRoute, RemotingError or BrokerError."""
        addresses = self._addresses()
        if self._broker_id not in addresses:
            await self._client.routes.update(self._topic)
            addresses = self._addresses()
        if not addresses:
            raise BrokerGone(self.group, self._client.name_servers.addresses)
        others = {one: address for one, address in addresses.items() if not self._is_avoided(one)}
        return others.get(self._broker_id) or others[min(others)] if others else addresses[min(addresses)]

    def _is_avoided(self, broker_id: int) -> bool:
        avoided = self._avoided
        return avoided is not None and broker_id == avoided[0] and self._client.reactor.seconds() < avoided[1]

    def unreached(self, address: str) -> None:
        """Note that the broker does not answer: another one of the group is asked for a while."""
        known = self._addresses()
        broker_id = next((one for one, other in known.items() if other == address), None)
        if broker_id is None or len(known) < 2:
            return
        if self._avoided is not None and self._avoided[0] == broker_id:
            self._avoided_sessions = min(2 * self._avoided_sessions, LONGEST_AVOIDED_SESSIONS)
        else:
            self._avoided_sessions = 1
        seconds = self._avoided_sessions * self._coordinator.session_seconds
        self._avoided = broker_id, self._client.reactor.seconds() + seconds
        self.log.warn(
            "broker not reached, consuming from another one of its group: group={g} address={a} seconds={s}",
            g=self.group, a=address, s=seconds,
        )  # fmt: skip

    def _addresses(self) -> dict[int, str]:
        broker = self._client.routes.broker(self.group)
        return {} if broker is None else dict(broker.broker_addrs)

    def _look(self) -> None:
        defer.Deferred.fromCoroutine(self._read()).addErrback(self._failed)

    async def _read(self) -> None:
        try:
            names = await self._coordinator.children(members_path(self.group))
        except CoordinationError:
            return  # the member that served last continues
        ids = sorted(int(name) for name in names if name.isdecimal())
        if ids and ids[0] != self._broker_id:
            self._broker_id = ids[0]
            self._changed()

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("serving broker not found: group={group}", reason, group=self.group)

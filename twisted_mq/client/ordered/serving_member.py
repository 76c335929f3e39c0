"""Which broker of a group serves consumers: the master, or the slave while the master is not in touch with the coordinator."""

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


class ServingMember:
    """Of one group. `changed` is called when another broker serves. Addresses are those of the name servers' routes."""

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
        self._end = coordinator.watch(members_path(group), self._look)

    def stop(self) -> None:
        """Calls nothing back any more."""
        self._end()

    async def address(self) -> str:
        """Raises NoRoute, RemotingError or BrokerError."""
        addresses = self._addresses()
        if self._broker_id not in addresses:
            await self._client.routes.update(self._topic)
            addresses = self._addresses()
        if not addresses:
            raise BrokerGone(self.group, self._client.name_servers.addresses)
        return addresses.get(self._broker_id) or addresses[min(addresses)]

    def _addresses(self) -> dict[int, str]:
        broker = self._client.routes.broker(self.group)
        return {} if broker is None else dict(broker.broker_addrs)

    def _look(self) -> None:
        defer.Deferred.fromCoroutine(self._read()).addErrback(self._failed)

    async def _read(self) -> None:
        try:
            names = await self._coordinator.children(members_path(self.group))
        except CoordinationError:
            return  # the one that served last goes on
        ids = sorted(int(name) for name in names if name.isdecimal())
        if ids and ids[0] != self._broker_id:
            self._broker_id = ids[0]
            self._changed()

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("serving broker not found: group={group}", reason, group=self.group)

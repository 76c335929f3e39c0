"""Shows the members of a client to brokers, and takes leave of them for members that end."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.client.core.broker_calls import BrokerCalls
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.core.group_members import ConsumerMember, Member
from twisted_mq.client.core.together import together
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import HeartbeatData, ProducerData
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.routing.route_cache import BrokerAddress, RouteCache


class Heartbeats:
    """Heartbeats of one client while it is open. The members are its tables by group, which change."""

    log = Logger()

    def __init__(
        self,
        client_id: str,
        calls: BrokerCalls,
        routes: RouteCache,
        producers: Mapping[str, Member],
        consumers: Mapping[str, ConsumerMember],
    ) -> None:
        self._client_id = client_id
        self._calls = calls
        self._routes = routes
        self._producers = producers
        self._consumers = consumers
        self._greeted: set[str] = set()  # addresses that a heartbeat was sent to
        self._was_connected: set[str] = set()

    async def send(self) -> None:
        """Show all members to all known brokers; producers alone only to the masters."""
        if not self._producers and not self._consumers:
            return
        brokers = [one for one in self._routes.brokers() if self._consumers or one.broker_id == MASTER_ID]
        self._greeted |= {one.address for one in brokers}
        await together(self.send_to(broker) for broker in brokers)

    async def send_to(self, broker: BrokerAddress) -> None:
        """Show all members to one broker; a failure is logged."""
        data = HeartbeatData(
            client_id=self._client_id,
            producer_data_set=[ProducerData(group_name=group) for group in sorted(self._producers)],
            consumer_data_set=[self._consumers[group].consumer_data() for group in sorted(self._consumers)],
        )
        try:
            await self._calls.heartbeat(broker.address, data)
        except EXPECTED_ERRORS as error:
            self.log.warn("heartbeat failed: broker={broker} {error}", broker=broker.broker_name, error=error)

    async def unregister(self, *, producer_group: str | None = None, consumer_group: str | None = None) -> None:
        """Tell all known brokers that a group has no member here any more; a failure is logged."""
        await together(
            self._unregister_from(broker, producer_group, consumer_group) for broker in self._routes.brokers()
        )

    async def _unregister_from(
        self, broker: BrokerAddress, producer_group: str | None, consumer_group: str | None
    ) -> None:
        try:
            await self._calls.unregister(
                broker.address, self._client_id, producer_group=producer_group, consumer_group=consumer_group
            )
        except EXPECTED_ERRORS as error:
            self.log.info("not unregistered: broker={broker} {error}", broker=broker.broker_name, error=error)

    def are_due(self) -> bool:
        """Whether the routes name a broker that was sent none yet."""
        return bool({one.address for one in self._routes.brokers()} - self._greeted)

    def connected(self, address: str) -> list[BrokerAddress]:
        """Note a new connection; returns the brokers that forgot us with the one they had before."""
        if address not in self._was_connected:
            self._was_connected.add(address)
            return []
        return [broker for broker in self._routes.brokers() if broker.address == address]

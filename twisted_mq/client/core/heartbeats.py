"""Sends heartbeats for the members of a client, and unregisters members that end."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.client.core.broker_calls import BrokerCalls
from twisted_mq.client.core.errors import EXPECTED_ERRORS, level_of
from twisted_mq.client.core.group_members import ConsumerMember, Member
from twisted_mq.client.core.together import together
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import HeartbeatData, ProducerData, encode_body
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.routing.route_cache import RouteCache, RoutedBroker


class Heartbeats:
    """Heartbeats of one client while it is open. Its members are in tables by group, which change."""

    log = Logger()

    def __init__(
        self,
        client_id: str,
        calls: BrokerCalls,
        routes: RouteCache,
        producers: Mapping[str, Member],
        consumers: Mapping[str, ConsumerMember],
        *,
        version_2: bool = False,
    ) -> None:
        """Create the heartbeats. With `version_2`, brokers that support it get subscriptions only if these are new to them."""
        self._client_id = client_id
        self._calls = calls
        self._routes = routes
        self._producers = producers
        self._consumers = consumers
        self._greeted: set[str] = set()  # addresses that a heartbeat was sent to
        self._was_connected: set[str] = set()
        self._version_2 = version_2
        self._shown: dict[str, int] = {}  # address to the fingerprint that its broker knows

    async def send(self, *, anew: bool = False) -> None:
        """Send all members to all known brokers. Producers without consumers go only to the masters.

        Set `anew` for subscriptions of a new version: brokers that know them by fingerprint get them again.
        """
        if anew:
            self._shown.clear()
        if not self._producers and not self._consumers:
            return
        brokers = [one for one in self._routes.brokers() if self._consumers or one.broker_id == MASTER_ID]
        self._greeted |= {one.address for one in brokers}
        await together(self.send_to(broker) for broker in brokers)

    async def send_to(self, broker: RoutedBroker) -> bool:
        """Send all members to one broker; log a failure. Return whether the broker accepted it."""
        data = HeartbeatData(
            client_id=self._client_id,
            producer_data_set=[ProducerData(group_name=group) for group in sorted(self._producers)],
            consumer_data_set=[self._consumers[group].consumer_data() for group in sorted(self._consumers)],
        )
        try:
            if self._version_2:
                await self._send_version_2(broker.address, data)
            else:
                await self._calls.heartbeat(broker.address, data)
            return True
        except EXPECTED_ERRORS as error:
            self.log.emit(
                level_of(error), "heartbeat failed: broker={broker} {error}", broker=broker.broker_name, error=error
            )
            return False

    async def _send_version_2(self, address: str, data: HeartbeatData) -> None:
        """Leave out subscriptions that the broker already has (MQClientInstance.sendHeartbeatToBrokerV2)."""
        shown = fingerprint(data)
        known = self._shown.pop(address, None) == shown
        answer = await self._calls.heartbeat(address, marked(data, shown, without_sub=known))
        if answer.knows_version_2 and not answer.subscriptions_changed:
            self._shown[address] = shown

    async def unregister(self, *, producer_group: str | None = None, consumer_group: str | None = None) -> None:
        """Unregister a group's member here from all known brokers; log a failure."""
        await together(
            self._unregister_from(broker, producer_group, consumer_group) for broker in self._routes.brokers()
        )

    async def _unregister_from(
        self, broker: RoutedBroker, producer_group: str | None, consumer_group: str | None
    ) -> None:
        try:
            await self._calls.unregister(
                broker.address, self._client_id, producer_group=producer_group, consumer_group=consumer_group
            )
        except EXPECTED_ERRORS as error:
            self.log.info("not unregistered: broker={broker} {error}", broker=broker.broker_name, error=error)

    def are_due(self) -> bool:
        """Return whether the routes name a broker that has not had a heartbeat yet."""
        return bool({one.address for one in self._routes.brokers()} - self._greeted)

    def connected(self, address: str) -> list[RoutedBroker]:
        """Note a new connection. Return the brokers that forgot this client when their previous connection ended."""
        self._shown.pop(address, None)
        if address not in self._was_connected:
            self._was_connected.add(address)
            return []
        return [broker for broker in self._routes.brokers() if broker.address == address]


def fingerprint(data: HeartbeatData) -> int:
    """Return a number for the groups and subscriptions, regardless of their versions and the client; never 0."""
    consumers = [
        attrs.evolve(
            one, subscription_data_set=[attrs.evolve(each, sub_version=0) for each in one.subscription_data_set]
        )
        for one in data.consumer_data_set
    ]
    return java_hash(encode_body(attrs.evolve(data, client_id="", consumer_data_set=consumers)).decode()) or 1


def marked(data: HeartbeatData, shown: int, *, without_sub: bool) -> HeartbeatData:
    """Return the heartbeat with its fingerprint, without the subscriptions if the broker has them."""
    if not without_sub:
        return attrs.evolve(data, heartbeat_fingerprint=shown)
    bare = [attrs.evolve(one, subscription_data_set=[]) for one in data.consumer_data_set]
    return attrs.evolve(data, consumer_data_set=bare, heartbeat_fingerprint=shown, without_sub=True)

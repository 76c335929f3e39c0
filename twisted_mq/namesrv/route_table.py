"""Which brokers live and which queues they offer for which topic (Apache: RouteInfoManager).

Plain values and the time in milliseconds in, decisions out: no I/O, no clock. What is read from it for answers is in
`route_query`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import attrs

from twisted_mq.logs import Logger
from twisted_mq.namesrv.route_rules import addresses_without, id_change, queue_data, speaks_for_topics
from twisted_mq.namesrv.route_values import (
    BrokerAddress,
    Expired,
    LiveBroker,
    MinBrokerIdChange,
    Registered,
    Registration,
)
from twisted_mq.protocol.bodies import BrokerData, DataVersion, QueueData, TopicQueueMappingInfo
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.routes import MASTER_ID

BROKER_EXPIRY_MS = 120_000
"""Silence after which a broker is gone that names no time of its own (DEFAULT_BROKER_CHANNEL_EXPIRED_TIME)."""


@attrs.define(eq=False)
class RouteTable:
    """The six tables of a name server. Readers do not change what they find in them."""

    log = Logger()

    broker_expiry_ms: int = BROKER_EXPIRY_MS
    topics: dict[str, dict[str, QueueData]] = attrs.field(factory=dict, init=False)
    """Topic -> broker name -> its queues."""
    brokers: dict[str, BrokerData] = attrs.field(factory=dict, init=False)
    """Broker name -> addresses by broker id."""
    clusters: dict[str, set[str]] = attrs.field(factory=dict, init=False)
    """Cluster -> broker names."""
    live: dict[BrokerAddress, LiveBroker] = attrs.field(factory=dict, init=False)
    filter_servers: dict[BrokerAddress, list[str]] = attrs.field(factory=dict, init=False)
    topic_mappings: dict[str, dict[str, TopicQueueMappingInfo]] = attrs.field(factory=dict, init=False)
    """Topic -> broker name -> mapping of a static topic."""

    # registration

    def register(self, registration: Registration, now_ms: int, *, delete_missing_topics: bool = False) -> Registered:
        """Take in what a broker says about itself.

        A broker is ignored while the holder of its id has a higher state version. Topics count from the master, and
        from the slave with the lowest id where the brokers know acting masters.
        """
        held = self.brokers.get(registration.broker_name)
        addresses = addresses_without(held, registration)
        if self._has_newer_holder(addresses, registration):
            self.live.pop(registration.key, None)
            return Registered()
        if registration.broker_id not in addresses and len(registration.topics) == 1:
            self.log.warn(
                "topic refused, its broker has not registered: broker={b} id={i} address={a} topics={t}",
                b=registration.broker_name, i=registration.broker_id, a=registration.address,
                t=list(registration.topics),
            )  # fmt: skip
            return Registered(accepted=False)
        lowest_before = min(held.broker_addrs, default=MASTER_ID) if held is not None else MASTER_ID
        is_new = held is None or registration.broker_id not in addresses
        addresses = dict(sorted({**addresses, registration.broker_id: registration.address}.items()))
        self._put_broker(registration, addresses)
        if speaks_for_topics(registration, addresses):
            self._put_topics(registration, is_new, delete_missing_topics)
        self._put_live(registration, now_ms)
        change = None
        if registration.broker_id < lowest_before:
            change = id_change(addresses, ha_address=registration.ha_server_address)
        return self._answer(registration, addresses, change)

    def _has_newer_holder(self, addresses: dict[int, str], registration: Registration) -> bool:
        """Whether another address holds this broker id with a higher state version."""
        holder = addresses.get(registration.broker_id)
        if holder is None or holder == registration.address:
            return False
        live = self.live.get(BrokerAddress(registration.cluster_name, holder))
        if live is None or live.data_version.state_version <= registration.data_version.state_version:
            return False
        self.log.warn(
            "registration ignored, its id is held at a higher state version: broker={b} id={i} held_by={h} address={a}",
            b=registration.broker_name, i=registration.broker_id, h=holder, a=registration.address,
        )  # fmt: skip
        return True

    def _put_broker(self, registration: Registration, addresses: dict[int, str]) -> None:
        self.clusters.setdefault(registration.cluster_name, set()).add(registration.broker_name)
        self.brokers[registration.broker_name] = BrokerData(
            cluster=registration.cluster_name,
            broker_name=registration.broker_name,
            broker_addrs=addresses,
            zone_name=registration.zone_name,
            enable_acting_master=bool(registration.enable_acting_master),
        )

    def _put_topics(self, registration: Registration, is_new: bool, delete_missing: bool) -> None:
        name = registration.broker_name
        if delete_missing and not registration.topic_mappings:
            self._drop_queues(name, [topic for topic in self.topics if topic not in registration.topics])
        changed = is_new or self.is_changed(registration.key, registration.data_version)
        acts_as_master = registration.broker_id != MASTER_ID and bool(registration.enable_acting_master)
        for topic, config in registration.topics.items():
            if changed or name not in self.topics.get(topic, ()):
                self._put_queues(topic, queue_data(name, config, read_only=acts_as_master))
        if changed:
            for topic, mapping in registration.topic_mappings.items():
                self.topic_mappings.setdefault(topic, {})[mapping.bname or name] = mapping

    def _put_queues(self, topic: str, queues: QueueData) -> None:
        by_broker = self.topics.setdefault(topic, {})
        before = by_broker.get(queues.broker_name)
        if before != queues:
            by_broker[queues.broker_name] = queues
            self.log.info("topic registered: topic={t} before={b} now={n}", t=topic, b=before, n=queues)

    def _put_live(self, registration: Registration, now_ms: int) -> None:
        if registration.key not in self.live:
            self.log.info(
                "broker registered: broker={b} id={i} cluster={c} address={a} ha={h}",
                b=registration.broker_name, i=registration.broker_id, c=registration.cluster_name,
                a=registration.address, h=registration.ha_server_address,
            )  # fmt: skip
        timeout_ms = self.broker_expiry_ms if registration.timeout_ms is None else registration.timeout_ms
        self.live[registration.key] = LiveBroker(
            now_ms, timeout_ms, registration.data_version, registration.connection, registration.ha_server_address
        )
        if registration.filter_servers:
            self.filter_servers[registration.key] = registration.filter_servers
        elif registration.filter_servers is not None:
            self.filter_servers.pop(registration.key, None)

    def _answer(
        self, registration: Registration, addresses: dict[int, str], change: MinBrokerIdChange | None
    ) -> Registered:
        """Slaves are told the master's addresses, if it lives."""
        master = addresses.get(MASTER_ID) if registration.broker_id != MASTER_ID else None
        live = self.live.get(BrokerAddress(registration.cluster_name, master)) if master is not None else None
        if live is None:
            return Registered(change=change)
        return Registered(ha_server_address=live.ha_server_address, master_address=master, change=change)

    # what brokers ask and say between registrations

    def data_version(self, key: BrokerAddress) -> DataVersion | None:
        """The version that a broker registered with; None for one that is not there."""
        live = self.live.get(key)
        return None if live is None else live.data_version

    def is_changed(self, key: BrokerAddress, version: DataVersion | None) -> bool:
        """Whether a broker with that version of its topics must register them again."""
        known = self.data_version(key)
        return known is None or known != version

    def heard_from(self, key: BrokerAddress, now_ms: int) -> None:
        """A sign of life; none of a broker that is not registered counts."""
        live = self.live.get(key)
        if live is not None:
            live.last_update_ms = now_ms

    # departure

    def unregister(
        self, key: BrokerAddress, broker_name: str, broker_id: int | None = None
    ) -> MinBrokerIdChange | None:
        """Forget a broker: its address, its queues where no other address of the name is left.

        Where its brokers know acting masters and none is left with id 0, the queues become read-only. Returns whom to
        tell if the lowest id of the name went; `broker_id` is looked up where it is None.
        """
        was_live = self.live.pop(key, None) is not None
        self.filter_servers.pop(key, None)
        self.log.info("broker unregistered: broker={b} key={k} live={l}", b=broker_name, k=key, l=was_live)
        held = self.brokers.get(broker_name)
        if held is None:
            return None
        lowest = min(held.broker_addrs, default=None)
        left = {one: address for one, address in held.broker_addrs.items() if address != key.address}
        if broker_id is None:
            broker_id = next((one for one, address in held.broker_addrs.items() if address == key.address), None)
        if not left:
            self._drop_name(key.cluster_name, broker_name)
            return None
        self.brokers[broker_name] = attrs.evolve(held, broker_addrs=left)
        if not held.enable_acting_master:
            return None
        if min(left) > MASTER_ID:
            self._set_permission(broker_name, lambda perm: perm & ~PermName.PERM_WRITE)
        return id_change(left, offline_address=key.address) if broker_id == lowest else None

    def connection_lost(self, connection: Hashable) -> list[MinBrokerIdChange]:
        """Forget the brokers that registered over this connection and over none since."""
        lost = [key for key, live in self.live.items() if live.connection is connection]
        return self._forget(lost)

    def expire(self, now_ms: int) -> tuple[list[Expired], list[MinBrokerIdChange]]:
        """Forget the brokers that have been silent for longer than their timeout."""
        expired = [
            Expired(key, live.timeout_ms, live.connection)
            for key, live in self.live.items()
            if live.last_update_ms + live.timeout_ms < now_ms
        ]
        return expired, self._forget([one.key for one in expired])

    def _forget(self, keys: Iterable[BrokerAddress]) -> list[MinBrokerIdChange]:
        changes = []
        for key in keys:
            name = self._name_of(key)
            if name is None:
                self.live.pop(key, None)
                self.filter_servers.pop(key, None)
            else:
                changes.append(self.unregister(key, name))
        return [change for change in changes if change is not None]

    def _name_of(self, key: BrokerAddress) -> str | None:
        for name, data in self.brokers.items():
            if data.cluster == key.cluster_name and key.address in data.broker_addrs.values():
                return name
        return None

    def _drop_name(self, cluster_name: str, broker_name: str) -> None:
        del self.brokers[broker_name]
        names = self.clusters.get(cluster_name, set())
        names.discard(broker_name)
        if not names:
            self.clusters.pop(cluster_name, None)
        self._drop_queues(broker_name, list(self.topics))

    def _drop_queues(self, broker_name: str, topics: Iterable[str]) -> None:
        for topic in topics:
            by_broker = self.topics[topic]
            by_broker.pop(broker_name, None)
            if not by_broker:
                del self.topics[topic]

    # what admins change

    def set_writable(self, broker_name: str, writable: bool) -> int:
        """Give or take the write permission of all topics of a broker; returns how many (Apache gives read with it)."""
        if writable:
            return self._set_permission(broker_name, lambda perm: PermName.PERM_READ | PermName.PERM_WRITE)
        return self._set_permission(broker_name, lambda perm: perm & ~PermName.PERM_WRITE)

    def _set_permission(self, broker_name: str, change: Callable[[int], int]) -> int:
        topics = [by_broker for by_broker in self.topics.values() if broker_name in by_broker]
        for by_broker in topics:
            queues = by_broker[broker_name]
            by_broker[broker_name] = attrs.evolve(queues, perm=change(queues.perm))
        return len(topics)

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> bool:
        """Take in queues of a topic; refused as a whole (False) where one names a broker that is not there."""
        given = list(queues)
        unknown = [one.broker_name for one in given if one.broker_name not in self.brokers]
        if unknown:
            self.log.warn("topic refused, it names unknown brokers: topic={t} brokers={b}", t=topic, b=unknown)
            return False
        for one in given:
            self._put_queues(topic, one)
        return True

    def delete_topic(self, topic: str, cluster_name: str | None = None) -> None:
        """Forget a topic, or its queues in one cluster."""
        if not cluster_name:
            self.topics.pop(topic, None)
            return
        by_broker = self.topics.get(topic)
        if by_broker is None:
            return
        for name in self.clusters.get(cluster_name, ()):
            by_broker.pop(name, None)
        if not by_broker:
            del self.topics[topic]

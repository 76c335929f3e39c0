"""Keeps which brokers live and which queues they offer for which topic (Apache: RouteInfoManager).

Plain values and the time in milliseconds in, decisions out: no I/O, no clock. `route_query` reads it for answers. Work
that may touch very many topics is done in slices: a generator, which the owner of the table runs.

A registration needs no account. So while a broker's connection lives, no other broker can take its place: neither its
id nor its address, nor its name for another cluster. A restarted broker comes from the same address, or its old
connection is gone; registrationSharedSecret closes the table to strangers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Hashable, Iterable

import attrs

from twisted_mq.logs import Logger
from twisted_mq.namesrv.by_topic import TOPICS_OF_SLICE, ByTopic, run_all_slices
from twisted_mq.namesrv.route_rules import (
    addresses_without,
    check_lengths,
    id_change,
    queue_data,
    speaks_for_topics,
    with_permission,
)
from twisted_mq.namesrv.route_values import (
    BrokerAddress,
    BrokerConnection,
    BrokerRegistration,
    Expired,
    LiveBroker,
    MinBrokerIdChange,
    Registered,
)
from twisted_mq.protocol.bodies import BrokerData, DataVersion, QueueData, TopicQueueMappingInfo
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.remoting.budget import may_have

BROKER_EXPIRY_MS = 120_000
"""The silence after which a broker is gone that sets no time of its own (DEFAULT_BROKER_CHANNEL_EXPIRED_TIME)."""


MAX_BROKERS = 1000
MAX_QUEUES = 1_000_000
"""The limit of pairs of a topic and a broker, about 300 MiB. Apache has no limits."""

LOGGED_TOPICS = 20
"""The number of a registration's new topics that its log line names."""


def _run_now(broker_name: Hashable, work: Generator[None, None, None]) -> None:
    run_all_slices(work)


@functools.lru_cache(maxsize=4096)
def _shared(queues: tuple[tuple[str, QueueData], ...]) -> dict[str, QueueData]:
    """Cached, because nearly all topics of a broker have the same queues."""
    return dict(queues)


@attrs.define(eq=False)
class RouteTable:
    """The six tables of a name server. Readers must not change what they find in them.

    `later` is called with work that a departure leaves, and the broker's name. The work of one name, including
    registrations, has to run in the order in which it came.
    """

    log = Logger()

    broker_expiry_ms: int = BROKER_EXPIRY_MS
    later: Callable[[Hashable, Generator[None, None, None]], object] = _run_now
    queues: ByTopic[QueueData] = attrs.field(factory=lambda: ByTopic(_shared), init=False)
    mappings: ByTopic[TopicQueueMappingInfo] = attrs.field(factory=ByTopic, init=False)
    """The mappings of static topics."""
    brokers: dict[str, BrokerData] = attrs.field(factory=dict, init=False)
    """Broker name -> addresses by broker id."""
    clusters: dict[str, set[str]] = attrs.field(factory=dict, init=False)
    """Cluster -> broker names."""
    live: dict[BrokerAddress, LiveBroker] = attrs.field(factory=dict, init=False)
    filter_servers: dict[BrokerAddress, list[str]] = attrs.field(factory=dict, init=False)
    _broker_changes: int = attrs.field(default=0, init=False)

    @property
    def topics(self) -> dict[str, dict[str, QueueData]]:
        """Topic -> broker name -> its queues; topics in order."""
        return self.queues.by_topic

    @property
    def topic_mappings(self) -> dict[str, dict[str, TopicQueueMappingInfo]]:
        """Topic -> broker name -> mapping of a static topic."""
        return self.mappings.by_topic

    @property
    def version(self) -> int:
        """The version, which counts the changes that lists show."""
        return self.queues.changes + self._broker_changes

    # registration

    def register(
        self, registration: BrokerRegistration, now_ms: int, *, delete_missing_topics: bool = False
    ) -> Generator[None, None, Registered]:
        """Register a broker. Raises BrokerError for what is refused, see above, and past limits.

        A broker is ignored while the holder of its id has a higher state version. Topics count from the master, and
        from the slave with the lowest id if the brokers know acting masters.
        """
        held = self.brokers.get(registration.broker_name)
        self._check(registration, held, now_ms)
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
        changed = is_new or self.is_changed(registration.key, registration.data_version)
        addresses = dict(sorted({**addresses, registration.broker_id: registration.address}.items()))
        self._put_broker(registration, addresses)
        live = self._put_live(registration, now_ms)
        change = None
        if registration.broker_id < lowest_before:
            change = id_change(addresses, ha_address=registration.ha_server_address)
        if speaks_for_topics(registration, addresses):
            yield from self._put_topics(registration, live, changed, delete_missing_topics)
        return self._answer(registration, addresses, change)

    def _check(self, registration: BrokerRegistration, held: BrokerData | None, now_ms: int) -> None:
        """Check a registration. Raises BrokerError."""
        check_lengths(registration)
        if not registration.connection.connected_now:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR, "the connection was lost before its registration was processed"
            )
        for live, address in self._in_the_way(registration, held):
            if live.is_held_by_another(registration.connection, now_ms) and not _is_next_epoch(live, registration):
                raise BrokerError(ResponseCode.SYSTEM_ERROR, _taken(registration, live, address))
        if registration.key not in self.live:
            self._check_share(registration)
        self._check_room(registration)

    def _check_share(self, registration: BrokerRegistration) -> None:
        """Raise BrokerError if no more brokers are accepted, or no more of one address."""
        if len(self.live) >= MAX_BROKERS:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"{MAX_BROKERS} brokers are registered, which is the limit")
        address = registration.connection.share_address
        held = sum(live.connection.share_address == address for live in self.live.values())
        if not may_have(held, len(self.live), MAX_BROKERS):
            remark = (
                f"{held} of {len(self.live)} brokers are registered from {address}, which is the limit for one address"
            )
            raise BrokerError(ResponseCode.SYSTEM_BUSY, remark)

    def _in_the_way(
        self, registration: BrokerRegistration, held: BrokerData | None
    ) -> Iterable[tuple[LiveBroker, BrokerAddress]]:
        """Yield the brokers whose place this one would take."""
        own = self.live.get(registration.key)
        place = (registration.broker_name, registration.broker_id)
        if own is not None and (own.broker_name, own.broker_id) != place:
            yield own, registration.key
        for broker_id, address in (held.broker_addrs if held is not None else {}).items():
            key = BrokerAddress(held.cluster, address)  # type: ignore[union-attr]
            takes_id = broker_id == registration.broker_id and address != registration.address
            if key in self.live and (takes_id or key.cluster_name != registration.cluster_name):
                yield self.live[key], key

    def _check_room(self, registration: BrokerRegistration) -> None:
        known = self.queues.topics_of(registration.broker_name)
        tables = ((self.queues.count, registration.topics), (self.mappings.count, registration.topic_mappings))
        for count, given in tables:
            if count + len(given) <= MAX_QUEUES // 4:
                continue
            new = sum(topic not in known for topic in given)
            if count + new > MAX_QUEUES:
                remark = f"{count} topics of brokers are registered, the limit is {MAX_QUEUES}"
                raise BrokerError(ResponseCode.SYSTEM_BUSY, f"brokerName={registration.broker_name}: {remark}")
            if new:
                self._check_share_of_queues(registration, new)

    def _check_share_of_queues(self, registration: BrokerRegistration, new: int) -> None:
        """Raise BrokerError for too many topics of the brokers of one address."""
        address = registration.connection.share_address
        names = {live.broker_name for live in self.live.values() if live.connection.share_address == address}
        held = sum(len(self.queues.topics_of(name)) for name in names)
        if new > 0 and not may_have(held + new - 1, self.queues.count + new - 1, MAX_QUEUES):
            remark = (
                f"{held} of {self.queues.count} topics belong to {address}, {new} more exceed the limit for one address"
            )
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"brokerName={registration.broker_name}: {remark}")

    def _has_newer_holder(self, addresses: dict[int, str], registration: BrokerRegistration) -> bool:
        """Return True if another address holds this broker id with a higher state version."""
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

    def _put_broker(self, registration: BrokerRegistration, addresses: dict[int, str]) -> None:
        self.clusters.setdefault(registration.cluster_name, set()).add(registration.broker_name)
        data = BrokerData(
            cluster=registration.cluster_name,
            broker_name=registration.broker_name,
            broker_addrs=addresses,
            zone_name=registration.zone_name,
            enable_acting_master=bool(registration.enable_acting_master),
        )
        if self.brokers.get(data.broker_name) != data:
            self._put(data)

    def _put(self, data: BrokerData) -> None:
        self.brokers[data.broker_name] = data
        self._broker_changes += 1

    def _put_topics(
        self, registration: BrokerRegistration, live: LiveBroker, changed: bool, delete_missing: bool
    ) -> Generator[None, None, None]:
        """Store the topics. If the broker leaves meanwhile, the rest is not stored, and BrokerError is raised."""
        name, key = registration.broker_name, registration.key
        if delete_missing and not registration.topic_mappings:
            known = self.queues.topics_of(name)
            yield from self.queues.drop_each(name, [topic for topic in known if topic not in registration.topics])
        acts_as_master = registration.broker_id != MASTER_ID and bool(registration.enable_acting_master)
        new: list[str] = []
        for number, (topic, config) in enumerate(registration.topics.items()):
            if not number % TOPICS_OF_SLICE:
                if number:
                    yield
                if self.live.get(key) is not live:
                    raise BrokerError(ResponseCode.SYSTEM_ERROR, f"brokerName={name} left while it was registered")
            if changed or self.queues.get(topic, name) is None:
                queues = queue_data(name, config, read_only=acts_as_master)
                if self.queues.put(topic, name, queues) and len(new) <= LOGGED_TOPICS:
                    new.append(topic)
        self._tell_new(registration, new)
        if changed:
            self._put_mappings(registration)

    def _tell_new(self, registration: BrokerRegistration, new: list[str]) -> None:
        if new:
            more = ", ..." if len(new) > LOGGED_TOPICS else ""
            self.log.info(
                "topics registered: broker={b} topics={t}{more}",
                b=registration.broker_name, t=", ".join(new[:LOGGED_TOPICS]), more=more,
            )  # fmt: skip

    def _put_mappings(self, registration: BrokerRegistration) -> None:
        """Store the mappings; a broker's mappings count only for itself."""
        name = registration.broker_name
        for topic, mapping in registration.topic_mappings.items():
            if mapping.bname in (None, "", name):
                self.mappings.put(topic, name, mapping)
            else:
                self.log.warn("mapping of another broker skipped: topic={t} broker={b}", t=topic, b=name)

    def _put_live(self, registration: BrokerRegistration, now_ms: int) -> LiveBroker:
        before = self.live.get(registration.key)
        if before is None:
            self.log.info(
                "broker registered: broker={b} id={i} cluster={c} address={a} ha={h}",
                b=registration.broker_name, i=registration.broker_id, c=registration.cluster_name,
                a=registration.address, h=registration.ha_server_address,
            )  # fmt: skip
        connection, newest = registration.connection, None
        if before is not None and before.connection.connected_now and before.connection is not connection:
            connection, newest = before.connection, connection
        live = self.live[registration.key] = LiveBroker(
            registration.broker_name,
            registration.broker_id,
            now_ms,
            self.broker_expiry_ms if registration.timeout_ms is None else registration.timeout_ms,
            registration.data_version,
            connection,
            registration.ha_server_address,
            newest,
        )
        if registration.filter_servers:
            self.filter_servers[registration.key] = registration.filter_servers
        elif registration.filter_servers is not None:
            self.filter_servers.pop(registration.key, None)
        return live

    def _answer(
        self, registration: BrokerRegistration, addresses: dict[int, str], change: MinBrokerIdChange | None
    ) -> Registered:
        """Return the answer. Slaves get the master's addresses, if it lives."""
        master = addresses.get(MASTER_ID) if registration.broker_id != MASTER_ID else None
        live = self.live.get(BrokerAddress(registration.cluster_name, master)) if master is not None else None
        if live is None:
            return Registered(change=change)
        return Registered(ha_server_address=live.ha_server_address, master_address=master, change=change)

    # what brokers ask and report between registrations

    def data_version(self, key: BrokerAddress) -> DataVersion | None:
        """Return the version that a broker registered with; None for an unknown broker."""
        live = self.live.get(key)
        return None if live is None else live.data_version

    def is_changed(self, key: BrokerAddress, version: DataVersion | None) -> bool:
        """Return True if a broker with that version of its topics must register them again."""
        known = self.data_version(key)
        return known is None or known != version

    def heard_from(self, key: BrokerAddress, now_ms: int) -> None:
        """Record a sign of life; ignored for a broker that is not registered."""
        live = self.live.get(key)
        if live is not None:
            live.last_update_ms = now_ms

    # departure

    def check_leave(self, key: BrokerAddress, broker_name: str, connection: BrokerConnection, now_ms: int) -> None:
        """Raise BrokerError if a broker is to be unregistered over another connection while its own lives."""
        held = self.brokers.get(broker_name)
        for cluster in {key.cluster_name, key.cluster_name if held is None else held.cluster}:
            live = self.live.get(BrokerAddress(cluster, key.address))
            if live is not None and live.is_held_by_another(connection, now_ms):
                remark = f"brokerName={broker_name} brokerAddr={key.address}: its connection is alive, and this is another one"
                raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)

    def unregister(
        self, key: BrokerAddress, broker_name: str, broker_id: int | None = None
    ) -> MinBrokerIdChange | None:
        """Forget a broker: its address, and its queues if no other address of the name is left.

        If its brokers know acting masters and none is left with id 0, the queues become read-only. Returns the brokers to
        notify if the lowest id of the name went; `broker_id` is looked up if it is None.
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
        self._put(attrs.evolve(held, broker_addrs=left))
        if not held.enable_acting_master:
            return None
        if min(left) > MASTER_ID:
            self.later(broker_name, self._take_write_permission(broker_name))
        return id_change(left, offline_address=key.address) if broker_id == lowest else None

    def connection_lost(self, connection: BrokerConnection) -> list[MinBrokerIdChange]:
        """Forget the brokers that registered over this connection and over no other that lives."""
        lost = []
        for key, live in self.live.items():
            if live.newest is connection:
                live.newest = None
            elif live.connection is connection:
                if live.newest is None:
                    lost.append(key)
                else:
                    live.connection, live.newest = live.newest, None
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
        changes = [self.unregister(key, self.live[key].broker_name) for key in keys]
        return [change for change in changes if change is not None]

    def _drop_name(self, cluster_name: str, broker_name: str) -> None:
        del self.brokers[broker_name]
        self._broker_changes += 1
        names = self.clusters.get(cluster_name, set())
        names.discard(broker_name)
        if not names:
            self.clusters.pop(cluster_name, None)
        for table in (self.queues, self.mappings):
            self.later(broker_name, table.drop_broker(broker_name))

    # changes by admins

    def set_writable(self, broker_name: str, writable: bool) -> Generator[None, None, int]:
        """Set or clear the write permission of all topics of a broker; returns how many (Apache also sets read with it)."""
        if not writable:
            count = len(self.queues.topics_of(broker_name))
            yield from self._take_write_permission(broker_name)
            return count
        both = PermName.PERM_READ | PermName.PERM_WRITE
        return (yield from self.queues.change_each(broker_name, lambda queues: with_permission(queues, both)))

    def _take_write_permission(self, broker_name: str) -> Generator[None, None, None]:
        yield from self.queues.change_each(
            broker_name, lambda queues: with_permission(queues, queues.perm & ~PermName.PERM_WRITE)
        )

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> bool:
        """Store queues of a topic; refused as a whole (False) if one names an unknown broker."""
        given = list(queues)
        unknown = [one.broker_name for one in given if one.broker_name not in self.brokers]
        if unknown:
            self.log.warn("topic refused, it names unknown brokers: topic={t} brokers={b}", t=topic, b=unknown)
            return False
        if self.queues.count + len(given) > MAX_QUEUES:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"topic={topic}: {MAX_QUEUES} topics of brokers are registered")
        for one in given:
            if self.queues.put(topic, one.broker_name, one):
                self.log.info("topic registered: topic={t} now={n}", t=topic, n=one)
        return True

    def delete_topic(self, topic: str, cluster_name: str | None = None) -> None:
        """Delete a topic, or its queues in one cluster."""
        if not cluster_name:
            self.queues.drop_topic(topic)
            return
        for name in self.clusters.get(cluster_name, ()):
            self.queues.drop(topic, name)


def _is_next_epoch(live: LiveBroker, registration: BrokerRegistration) -> bool:
    """Return True if the next epoch takes the place, where a controller elects masters (Apache: the state version is its
    epoch).
    """
    return 0 < live.data_version.state_version < registration.data_version.state_version


def _taken(registration: BrokerRegistration, live: LiveBroker, address: BrokerAddress) -> str:
    return (
        f"brokerName={registration.broker_name} brokerId={registration.broker_id} brokerAddr={registration.address} "
        f"clusterName={registration.cluster_name}: brokerName={live.broker_name} brokerId={live.broker_id} "
        f"brokerAddr={address.address} clusterName={address.cluster_name} holds this place, and its connection is alive"
    )

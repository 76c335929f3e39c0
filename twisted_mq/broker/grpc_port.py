"""The broker's own gRPC port (local mode of Apache's proxy), and the parts of the broker that the proxy uses.

Imported only if grpcServerPort is set, because it imports protobuf.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import defer

from twisted_mq.access.accounts import DISABLED
from twisted_mq.access.server_access import ServerAccess
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.processors.pop_ack_handed import HandedAcks
from twisted_mq.broker.processors.send_handed import HandedSends
from twisted_mq.broker.request_table import ServedRequests
from twisted_mq.broker.topics.topic_attributes import MESSAGE_TYPE
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import BrokerData, QueueData, TopicConfig, TopicRouteData
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.protocol.names.validation import group_fault
from twisted_mq.proxy.authentication import Authentication
from twisted_mq.proxy.encryption import grpc_encryption
from twisted_mq.proxy.local import LocalBroker, LocalBrokers
from twisted_mq.proxy.options import ProxyOptions, load_proxy_options
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.port import GrpcPort
from twisted_mq.routing.errors import TopicNotFound

FRESH_SECONDS = 20.0
"""The time that a route from the name servers is used before it is requested again (Apache: topicRouteServiceCacheRefresh)."""
ANY_TYPE = "MIXED"


def grpc_port(
    broker: BrokerController, served: ServedRequests, access: ServerAccess, max_connections: int, port: int
) -> GrpcPort:
    """Return the gRPC port, not listening yet. `port` is the number that was bound. Raises ConfigError, OSError."""
    options = load_proxy_options(broker.options.proxy_config_path, ProxyOptions)
    routes = LocalRoutes(broker)
    secret_of = _secrets(access)
    local = LocalBroker(
        broker_name=broker.options.broker_name,
        processors=served.processors,
        dispatch=broker.dispatch,
        route=routes.route,
        present_route=routes.present,
        message_type=lambda topic: _message_type(broker, topic),
        group=lambda group: broker.groups.find(group) if group_fault(group) is None else None,
        grpc_address=lambda name, address: _grpc_address(broker, name, address, port),
        secret_of=secret_of,
        check_resource=access.check_resource if access.checks else None,
    )
    if served.columns is not None:
        acks = HandedAcks(broker)
        local = attrs.evolve(
            local, put_plain=HandedSends(served.columns).put, may_ack=acks.may_take, ack_plain=acks.take
        )
    parts = Parts(
        options, LocalBrokers(local, broker.clock), broker.clock, broker.options.max_message_size, broker.rotation
    )
    encryption = grpc_encryption(broker.options, broker.clock)
    return GrpcPort(parts, Authentication(secret_of), broker.options, encryption, max_connections)


def _message_type(broker: BrokerController, topic: str) -> str:
    """Return the message type of a topic. It is NORMAL for a topic that only other brokers have, as in Apache's local mode."""
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return ANY_TYPE
    config = broker.topics.get(topic)
    return "NORMAL" if config is None else (config.attributes or {}).get(MESSAGE_TYPE, "NORMAL")


def _grpc_address(broker: BrokerController, name: str, address: str, port: int) -> tuple[str, int]:
    """Return host and port for gRPC. Other brokers are expected to use this same port, as in Apache's local mode."""
    if name == broker.options.broker_name and address == broker.address:
        return broker.advertised_ip, port
    return address.rpartition(":")[0].strip("[]"), port


def _secrets(access: ServerAccess) -> Callable[[str], str | None] | None:
    """Return a lookup of secrets: accounts of plain_acl.yml first, then users. None if access control checks nothing."""
    if not access.checks:
        return None

    def secret_of(name: str) -> str | None:
        if access.plain is not None:
            account = access.plain.accounts.accounts.get(name)
            if account is not None:
                return account.secret_key
        user = None if access.accounts is None else access.accounts.users.get(name)
        return None if user is None or user.user_status == DISABLED else user.password

    return secret_of


@attrs.define(eq=False)
class LocalRoutes:
    """The routes of topics: this broker's own queues as they are now, other brokers' queues as the name servers know them."""

    _broker: BrokerController
    _asked: dict[str, float] = attrs.field(factory=dict)
    _made: dict[str, tuple[TopicConfig | None, TopicRouteData | None, TopicRouteData]] = attrs.field(factory=dict)
    log = Logger()

    def route(self, topic: str) -> defer.Deferred[TopicRouteData]:
        """Return the route of a topic. Fails with TopicNotFound."""
        config, cache = self._broker.topics.get(topic), self._broker.route_cache
        asked = self._asked.get(topic)
        if cache is not None and (asked is None or self._broker.clock.seconds() - asked > FRESH_SECONDS):
            updated = self._update(topic)
            if asked is None:  # later updates run in the background of calls
                return updated.addCallback(lambda _: self._present(topic))
        return defer.execute(self._present_of, topic, config)

    def present(self, topic: str) -> TopicRouteData | None:
        """Return the route that `route` would fire with now; None if it would ask the name servers, or fail."""
        asked = self._asked.get(topic)
        if self._broker.route_cache is not None and (
            asked is None or self._broker.clock.seconds() - asked > FRESH_SECONDS
        ):
            return None
        try:
            return self._present(topic)
        except TopicNotFound:
            return None

    def _update(self, topic: str) -> defer.Deferred[None]:
        cache = self._broker.route_cache
        assert cache is not None
        self._asked[topic] = self._broker.clock.seconds()

        def failed(reason: object) -> None:
            error = getattr(reason, "value", None)
            if isinstance(error, TopicNotFound):
                cache.forget(topic)
                self._asked.pop(topic, None)
                self._made.pop(topic, None)
            else:
                self.log.warn("route not updated: topic={t} {e}", t=topic, e=error)

        return cache.update(topic).addCallbacks(lambda _: None, failed)

    def _present(self, topic: str) -> TopicRouteData:
        return self._present_of(topic, self._broker.topics.get(topic))

    def _present_of(self, topic: str, config: TopicConfig | None) -> TopicRouteData:
        cache = self._broker.route_cache
        remote = None if cache is None else cache.get(topic)
        if config is None and remote is None:
            raise TopicNotFound(topic, self._broker.options.name_servers)
        made = self._made.get(topic)
        if made is None or made[0] is not config or made[1] is not remote:
            made = self._made[topic] = config, remote, self._merged(config, remote)
        return made[2]

    def _merged(self, config: TopicConfig | None, remote: TopicRouteData | None) -> TopicRouteData:
        options = self._broker.options
        name = options.broker_name
        others = TopicRouteData() if remote is None else remote
        queues = [one for one in others.queue_datas if one.broker_name != name]
        brokers = [one for one in others.broker_datas if one.broker_name != name]
        if config is not None:
            own = next((one for one in others.broker_datas if one.broker_name == name), None)
            addresses = {**(own.broker_addrs if own is not None else {}), MASTER_ID: self._broker.address}
            brokers.append(BrokerData(options.broker_cluster_name, name, addresses))
            perm = config.perm & options.broker_permission
            queues.append(QueueData(name, config.read_queue_nums, config.write_queue_nums, perm, config.topic_sys_flag))
        return TopicRouteData(queue_datas=queues, broker_datas=brokers)

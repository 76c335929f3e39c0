"""Makes the parts of a broker that neither listen nor run periodically: state on disk, access, client, registration,
controller.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from twisted.internet import defer

from twisted_mq.access.server_access import ServerAccess, server_access
from twisted_mq.broker.advertised_address import advertised_ip
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.name_server_lookup import address_servers
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.registration import VERSION_BITS, Registration
from twisted_mq.broker.runtime import BrokerRuntime
from twisted_mq.broker.stored_state import StoredState
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.other_brokers import OtherBrokers
from twisted_mq.clocks import time_of_day
from twisted_mq.encryption.servers import server_encryption
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.layouts.host import pack_host, pack_ip
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.client import Connect, RemotingClient, tcp_endpoint
from twisted_mq.routing.name_servers import NameServers
from twisted_mq.routing.route_cache import RouteCache

CONNECT_SECONDS = 3.0
"""The time limit for connecting to a name server or master."""


class BrokerParts:
    """The parts of one broker. `undo` closes them if the start fails later; `topics_changed` is called for changed topics.

    `access` is shared with an embedded name server; without it, the broker has its own.
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        undo: contextlib.ExitStack,
        port: int,
        ha_port: int,
        access: ServerAccess | None,
        topics_changed: Callable[[list[TopicConfig] | None], None],
    ) -> None:
        """Make the parts for these ports. Raises StoreError, OSError, ConfigError or MissingExtra."""
        options, reactor = runtime.options, runtime.reactor
        self._runtime = runtime
        self._port = port
        self._ip = advertised_ip(options.broker_ip1, runtime.name_servers or address_servers(options))
        self._ha_address = f"{options.broker_ip2 or self._ip}:{ha_port}"
        self.state = StoredState(
            runtime,
            undo,
            pack_host(self._ip, port),
            topics_changed,
            dispatch=lambda: self.controller.dispatch(),
            flushed=lambda offset: self.controller.flushed(offset),
        )
        self.access = access or broker_access(options, reactor.seconds, runtime.in_thread)
        self.encryption = server_encryption(options, time_of_day(reactor), reactor)
        self._connect = tcp_endpoint(reactor, CONNECT_SECONDS)
        self.client = self._remoting_client()
        self.registration = self._registration()
        self.asked = NameServers(self.client, runtime.name_servers)
        self.controller = self._controller()
        self.registration.ordering = self.controller.ordering

    def link(self) -> Connect | None:
        """Return the endpoints for a slave's encrypted link to its master; None without encryption."""
        return None if self.encryption is None else self.encryption.of_link(self._connect)

    def _remoting_client(self) -> RemotingClient:
        """Return the client for the broker's own requests."""
        return RemotingClient(
            self._runtime.reactor,
            connect=self._connect if self.encryption is None else self.encryption.of_requests(self._connect),
            credentials=self.access.credentials,
            channel_lost=lambda address: self.registration.connection_lost(address),
        )

    def _registration(self) -> Registration:
        options, state = self._runtime.options, self.state
        return Registration(
            options=options,
            topics=state.topics,
            client=self.client,
            broker_address=f"{self._ip}:{self._port}",
            ha_address=self._ha_address,
            name_servers=self._runtime.name_servers,
            permission=lambda: options.broker_permission,
            in_thread=self._runtime.in_thread,
            static_topics=state.static_topics,
            version_of_start=self._runtime.machine.random.getrandbits(VERSION_BITS),
        )

    def _controller(self) -> BrokerController:
        runtime, state, options = self._runtime, self.state, self._runtime.options
        cache = RouteCache(self.asked, lambda topic, route: None) if options.has_name_servers else None
        return BrokerController(
            options=options,
            clock=runtime.reactor,
            call_from_thread=runtime.call_from_thread,
            now_ms=runtime.now_ms,
            wall_ms=runtime.wall_ms,
            store=state.store,
            topics=state.topics,
            groups=state.groups,
            offsets=state.offsets,
            filters=state.filters,
            tables=BrokerTables.load(state.folder),
            advertised_ip=self._ip,
            port=self._port,
            access=self.access,
            unique_keys=UniqueKeyMaker(pack_ip(self._ip), runtime.machine.process_id(), runtime.wall_ms),
            ha_address=self._ha_address,
            route_cache=cache,
            clean=state.store.recovery_report.clean,
            in_thread=runtime.in_thread,
            registered=lambda: self._then_known(state.when_saved()),
            known=lambda: self._then_known(state.when_topics_saved()),
            random=runtime.machine.random,
            static_topics=state.static_topics,
            others=OtherBrokers(cache, self.client.invoke, options.forward_timeout / 1000),
        )

    def _then_known(self, saved: defer.Deferred[object]) -> defer.Deferred[None]:
        """Fire when, after that, the name servers that answer know all changes."""
        return saved.addCallback(lambda _: self.registration.latest())


def broker_access(options: BrokerOptions, now: Callable[[], float], in_thread: InThread) -> ServerAccess:
    """Return the broker's access control; users and policies are in its config folder. Raises ConfigError, MissingExtra."""
    folder = os.path.join(options.store_path_root_dir, "config")
    return server_access(options, folder, options.broker_cluster_name, now, in_thread)

"""Starts and stops one broker on a reactor: store, tables, listening ports, registration, periodic work.

A start takes the port, locks and recovers the store, loads the tables, listens, and registers. A stop goes backwards:
it unregisters, stops listening, answers the waiting pulls, closes the clients, saves the tables, and closes the store.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twisted.application import service
from twisted.internet import defer, interfaces, protocol, threads
from twisted.python import failure

from twisted_mq.access.server_access import LOOK_SECONDS, ServerAccess, server_access
from twisted_mq.broker.acting.duties import ActingDuties
from twisted_mq.broker.acting.heartbeat import Heartbeat
from twisted_mq.broker.acting.pre_online import PreOnline
from twisted_mq.broker.advertised_address import address_warning, advertised_ip
from twisted_mq.broker.clients.consumer_figures import ASK_SECONDS
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.cold_reads import PERIOD_SECONDS
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.fast_failure import FastFailure
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterTable
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager, consumer_filters
from twisted_mq.broker.filter.message_filter import filter_bit_map
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.ha.registered_slaves import RegisteredSlaves
from twisted_mq.broker.ha.replication import Replication
from twisted_mq.broker.long_polling import HOLD_CHECK_SECONDS
from twisted_mq.broker.machine import Machine
from twisted_mq.broker.name_server_lookup import NameServerLookUp, addresses_of_host, by_address_server, by_name
from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.broker.registration import VERSION_BITS, Registration
from twisted_mq.broker.request_table import ServedRequests, served_requests
from twisted_mq.broker.retention_service import RetentionService
from twisted_mq.broker.statistics.broker_statistics import SAMPLE_SECONDS, SNAPSHOT_SECONDS
from twisted_mq.broker.store_options import store_config
from twisted_mq.broker.table_saver import TableSaver
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.other_brokers import OtherBrokers
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.broker.watch import (
    LAG_SECONDS,
    ClockWatch,
    Lines,
    Watch,
    budgets_of,
    ending_certificate,
    full_budgets,
    look_at_lag,
    slow_disk,
    slow_slaves,
)
from twisted_mq.broker.watch import LOOK_SECONDS as WATCH_SECONDS
from twisted_mq.clocks import time_of_day, wall_ms
from twisted_mq.config.descriptors import most_connections
from twisted_mq.config.errors import ConfigError
from twisted_mq.encryption.servers import ServerEncryption, server_encryption
from twisted_mq.extras import require
from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.layouts.host import pack_host, pack_ip
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.reactor_threads import Arguments, CallFromThread, InThread, Result
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.client import Connect, RemotingClient, tcp_endpoint
from twisted_mq.remoting.listen import Bound, PortError, listen
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import Traffic
from twisted_mq.routing.name_servers import NameServers
from twisted_mq.routing.route_cache import RouteCache
from twisted_mq.stopping import Step, stop_all, take
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable, SubscriptionGroupTable, TopicTable
from twisted_mq.storage.tables.small_tables import TopicMappingTable

if TYPE_CHECKING:
    from twisted_mq.broker.ordering.agent import OrderAgent
    from twisted_mq.metrics.otlp import Pusher
    from twisted_mq.metrics.page import MetricsSite
    from twisted_mq.proxy.port import GrpcPort
    from twisted_mq.remoting.channel import Processor
    from twisted_mq.storage.memory.memory_store import MemoryMessageStore

LINKS_SECONDS = 30.0
"""The interval at which a master asks for registered slaves if that only decides which link gives way to which."""
STRANGERS_SECONDS = 5.0
"""The interval while links are limited, because the name servers know no slave at their hosts."""
EXPIRY_SCAN_SECONDS = 10.0
"""The interval of the search for clients without heartbeats (Apache: ClientHousekeepingService, 10 s)."""

TIMER_CLEAN_SECONDS = 30.0
"""The interval of the search for files of the timer's log that hold no waiting message (Apache: TimerMessageStore, 30 s)."""

FILTER_SAVE_SECONDS = 10.0
"""The interval at which changed consumer filters are written and expired ones dropped (Apache: BrokerController, 10 s)."""

ORDER_SAVE_SECONDS = 10.0
"""The interval at which the state of ordered pops is written and unused state dropped (Apache: BrokerController, 10 s)."""

INDEX_SECONDS = 0.05
INDEX_STEP_BYTES = 1 << 20
"""The interval of indexing, and the bytes of the log that it indexes in addition to those that sends index: about 5 ms."""

UNKNOWN_SECONDS = 2.0
"""The interval at which a broker that no name server knows tries to register."""

UNREGISTER_SECONDS = 1.0
"""The time a stop waits for name servers to take the broker out of their routes."""

CONNECT_SECONDS = 3.0
"""The time limit for connecting to a name server or master."""

CLOSE_SECONDS = 60.0
"""The time a stop waits for the store's close. The process does not end before that thread does."""


class LoadedTable(Protocol):
    """A table of the config folder."""

    def load(self) -> object: ...


Table = TypeVar("Table", bound=LoadedTable)


class BrokerService(service.Service):
    """A broker. `started` fires with it when it listens and has tried to register. `port` is the port it listens on."""

    log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        reactor: interfaces.IReactorTime,
        machine: Machine | None = None,
        access: ServerAccess | None = None,
    ) -> None:
        """Create a broker. `access` is shared with an embedded name server; without it, the broker creates its own when
        it starts.
        """
        self.options = options
        self._machine = machine or Machine()
        self.port = 0
        self.metrics_port = 0
        self.started: defer.Deferred[BrokerService] = defer.Deferred()
        self.controller: BrokerController
        self.registration: Registration
        self._reactor = reactor
        self.wall_ms = wall_ms(reactor)
        self._threads = interfaces.IReactorThreads(reactor)
        # mypy-zope takes the argument `callable` for the interface's self
        self._call_from_thread: CallFromThread = self._threads.callFromThread  # type: ignore[assignment]
        self._bound: Bound
        self._bound_for_slaves: Bound
        self._factory: RemotingServerFactory
        self._client: RemotingClient
        self._listening: list[interfaces.IListeningPort] = []
        self._jobs: list[PeriodicJob] = []
        self._savers: list[TableSaver] = []
        self._retention: RetentionService | None = None
        self._name_servers = options.name_servers
        """Shared by all parts that ask name servers; changed in place."""
        self._asked: NameServers
        self._watch = Watch()
        self._store: FileMessageStore | MemoryMessageStore
        self.processors: dict[int, Processor]
        self._served: ServedRequests
        self._most_connections = 0
        self._agent: OrderAgent | None = None
        self._access = access
        self._encryption: ServerEncryption | None = None
        self._pusher: Pusher | None = None
        self._duties: ActingDuties | None = None
        self._going_online: defer.Deferred[None] | None = None
        self._grpc: GrpcPort | None = None

    @property
    def grpc_port(self) -> int:
        """Return the port for gRPC clients; 0 if they are not served."""
        return 0 if self._grpc is None else self._grpc.port

    def now_ms(self) -> int:
        """Return the time of the reactor's clock, which timers follow, in ms."""
        return int(self._reactor.seconds() * 1000)

    # start

    def startService(self) -> None:
        """Open everything. Raises PortError, StoreError or OSError if that fails, and then leaves nothing open."""
        super().startService()
        self._most_connections = most_connections()
        options = self.options
        with contextlib.ExitStack() as undo:
            self._bound = undo.enter_context(self._machine.bind(options.bind_address, options.listen_port))
            self.port = self._bound.getsockname()[1]
            self._bound_for_slaves = undo.enter_context(self._bind_for_slaves())
            self.controller = self._make_controller(undo)
            self.registration.ordering = self.controller.ordering
            asks = self._pre_online() if options.asks_slaves_first else None
            self._listen(undo)
            undo.pop_all()
        self._say_where()
        if asks is None:
            self._register()
        self._start_loops(waits=asks is not None)
        if asks is not None:
            self._going_online = defer.ensureDeferred(self._go_online(asks))
        self._look_for_ordered(None)

    def _pre_online(self) -> PreOnline:
        """Hold the registration back until the slaves were asked."""
        self.registration.held_back = True
        group = MemberGroup(self.options, self._name_servers, self._client.invoke)
        return PreOnline(self.controller, group, self._client.invoke)

    async def _go_online(self, asks: PreOnline) -> None:
        """Ask the slaves, then deliver, check and register."""
        try:
            await asks.ask()
        except defer.CancelledError:
            return  # the broker stops
        self._start_own_work()
        self.registration.held_back = False
        self._register()

    def _bind_for_slaves(self) -> Bound:
        """Bind haListenPort, or the port above the clients' port; any port if the clients' is any. Raises PortError."""
        options = self.options
        port = options.ha_listen_port or (options.listen_port and options.listen_port + 1)
        return self._machine.bind(options.bind_address, port, "haListenPort")

    def _make_controller(self, undo: contextlib.ExitStack) -> BrokerController:
        options, now_ms, name_servers = self.options, self.now_ms, self._name_servers
        ip = advertised_ip(options.broker_ip1, name_servers or self._address_servers())
        folder = os.path.join(options.store_path_root_dir, "config")
        topic_table = loaded(TopicTable, folder, "topics.json")
        self._topics_saver = self._saver(topic_table, undo)
        topics = TopicConfigManager(topic_table, now_ms, self._topics_changed, self._topics_saver.touch)
        filters = consumer_filters(options, ConsumerFilterTable(os.path.join(folder, "consumerFilter.json")))
        store = self._store = self._open_store(pack_host(ip, self.port), topics, filters)
        undo.callback(store.close)
        filters.load(now_ms())
        mapping_table = loaded(TopicMappingTable, folder, "topicQueueMapping.json")
        static_topics = StaticTopics(options.broker_name, now_ms, mapping_table, self._saver(mapping_table, undo).touch)
        group_table = loaded(SubscriptionGroupTable, folder, "subscriptionGroup.json")
        groups = SubscriptionGroupManager(
            group_table,
            now_ms,
            self._saver(group_table, undo).touch,
            auto_create=options.auto_create_subscription_group,
        )
        offset_table = loaded(ConsumerOffsetTable, folder, "consumerOffset.json")
        offset_saver = self._saver(offset_table, undo, self._behind_the_log)
        offsets = ConsumerOffsetManager(offset_table, offset_saver.touch, store.max_offset_in_queue)
        topics.add_startup_topics(options)
        groups.add_built_in_groups()
        access = self._access = self._access or broker_access(options, self._reactor.seconds, self._in_thread)
        self._encryption = server_encryption(options, time_of_day(self._reactor), self._reactor)
        connect = tcp_endpoint(self._reactor, CONNECT_SECONDS)
        self._client = RemotingClient(
            self._reactor,
            connect=connect if self._encryption is None else self._encryption.of_requests(connect),
            credentials=access.credentials,
            channel_lost=lambda address: self.registration.connection_lost(address),
        )
        ha_address = f"{options.broker_ip2 or ip}:{self._bound_for_slaves.getsockname()[1]}"
        self.registration = Registration(
            options=options,
            topics=topics,
            client=self._client,
            broker_address=f"{ip}:{self.port}",
            ha_address=ha_address,
            name_servers=name_servers,
            permission=lambda: options.broker_permission,
            in_thread=self._in_thread,
            static_topics=static_topics,
            version_of_start=self._machine.random.getrandbits(VERSION_BITS),
        )
        self._asked = NameServers(self._client, name_servers)
        cache = RouteCache(self._asked, lambda topic, route: None) if options.has_name_servers else None
        return BrokerController(
            options=options,
            clock=self._reactor,
            call_from_thread=self._call_from_thread,
            now_ms=now_ms,
            wall_ms=self.wall_ms,
            store=store,
            topics=topics,
            groups=groups,
            offsets=offsets,
            filters=filters,
            tables=BrokerTables.load(folder),
            advertised_ip=ip,
            port=self.port,
            access=access,
            unique_keys=UniqueKeyMaker(pack_ip(ip), self._machine.process_id(), self.wall_ms),
            ha_address=ha_address,
            route_cache=cache,
            clean=store.recovery_report.clean,
            in_thread=self._in_thread,
            registered=self._known_and_saved,
            known=self._topics_known,
            random=self._machine.random,
            static_topics=static_topics,
            others=OtherBrokers(cache, self._client.invoke, options.forward_timeout / 1000),
        )

    def _known_and_saved(self) -> defer.Deferred[None]:
        """Fire when the name servers that answer know all changes, and they are on disk. Fails with BrokerError."""
        saved = defer.gatherResults([saver.when_saved() for saver in self._savers], consumeErrors=True)
        return self._then_known(saved)

    def _topics_known(self) -> defer.Deferred[None]:
        """Like `_known_and_saved`, for topics only: a message whose topic is lost with the process reaches no consumer."""
        return self._then_known(self._topics_saver.when_saved())

    def _then_known(self, saved: defer.Deferred[Any]) -> defer.Deferred[None]:
        saved.addTimeout(self.options.register_broker_timeout_mills / 1000, self._reactor)
        saved.addErrback(_not_saved)
        return saved.addCallback(lambda _: self.registration.latest())

    async def _write_behind_the_log(self, write: Callable[[], object]) -> object:
        """Write, in a thread, once the log is on disk up to its present end. Raises OSError.

        Offsets say that earlier messages need nothing more, because what came of them was appended: check points of
        pops, copies of popped messages that come again, operations on half messages. A power cut must not take that and
        leave the offsets.
        """
        if not await self.controller.flushed(self._store.max_physical_offset()):
            raise OSError(errno.EAGAIN, "the log is not on disk yet")
        return await self._in_thread(write)

    def _behind_the_log(self, write: Callable[[], object]) -> defer.Deferred[object]:
        return defer.Deferred.fromCoroutine(self._write_behind_the_log(write))

    def _saver(
        self,
        table: TopicTable | SubscriptionGroupTable | ConsumerOffsetTable | TopicMappingTable,
        undo: contextlib.ExitStack,
        in_thread: Callable[[Callable[[], object]], defer.Deferred[object]] | None = None,
    ) -> TableSaver:
        """Return the saver that writes the table after its changes."""
        saver = TableSaver(os.path.basename(table.path), table, self._reactor, in_thread or self._in_thread)
        self._savers.append(saver)
        undo.callback(saver.abandon)
        return saver

    def _open_store(
        self, store_host: bytes, topics: TopicConfigManager, filters: ConsumerFilterManager
    ) -> FileMessageStore | MemoryMessageStore:
        """Open the store, on disk or in memory. Raises StoreError."""
        options, config = self.options, store_config(self.options, store_host)
        if self._machine.open_in_memory is not None:
            return self._machine.open_in_memory(config, self.wall_ms, topics.is_batch_topic)
        store = FileMessageStore(
            config,
            self.wall_ms,
            is_batch_topic=topics.is_batch_topic,
            bit_map_of=functools.partial(filter_bit_map, filters) if options.enable_calc_filter_bit_map else None,
            committed=lambda: self._call_from_thread(lambda: self.controller.dispatch()),
            monotonic=self._machine.monotonic,
            threads=self._machine.threads,
        )
        store.start()
        return store

    def _listen(self, undo: contextlib.ExitStack) -> None:
        controller = self.controller
        served = self._served = served_requests(controller)
        self.processors = served.processors
        traffic = Traffic(
            self.processors,
            self._reactor,
            streaks=served.streaks,
            end_of_read=controller.end_of_read,
            channel_lost=controller.channel_lost,
            late=controller.late,
            rotation=controller.rotation,
            budget=Budget(self.options),
            too_late=FastFailure(self.options),
            count=lambda event: controller.statistics.activity[event].add(1, 0),
        )
        self._factory = RemotingServerFactory(
            traffic, self.options.server_channel_max_idle_time_seconds, self._most_connections
        )
        self._push_figures()
        links: protocol.ServerFactory = controller.ha.accept
        if self._encryption is not None:
            self._factory.expect = self._encryption.expect
            links = self._encryption.of_links(controller.ha.accept)
        sockets = interfaces.IReactorSocket(self._reactor)
        listening = [listen(sockets, bound, site) for bound, site in self._page_of_metrics(undo)]
        listening.append(listen(sockets, self._bound, self._factory))
        for port in listening:
            undo.callback(port.stopListening)
        listening.append(listen(sockets, self._bound_for_slaves, links))
        self._listening = listening
        self._listen_grpc(undo)
        if self.options.listen_port > 2:
            self._listen_fast()

    def _page_of_metrics(self, undo: contextlib.ExitStack) -> list[tuple[Bound, MetricsSite]]:
        """Return the metrics page and its socket; nothing if it is off. Raises PortError, ConfigError, MissingExtra."""
        options = self.options
        if not options.shows_metrics:
            return []
        require("metricsExporterType=PROM", "metrics")
        from twisted_mq.broker.metrics.site import metrics_site

        site = metrics_site(self.controller, self._factory, self.registration, self._store.gate, lambda: self._grpc)
        host = options.metrics_prom_exporter_host or self.controller.advertised_ip
        bound = undo.enter_context(
            self._machine.bind(host, options.metrics_prom_exporter_port, "metricsPromExporterPort")
        )
        self.metrics_port = bound.getsockname()[1]
        self.log.info("metrics at http://{host}:{port}/metrics", host=host, port=self.metrics_port)
        return [(bound, site)]

    def _listen_grpc(self, undo: contextlib.ExitStack) -> None:
        """Serve gRPC clients (5.x) if the settings say so. Raises PortError, ConfigError, MissingExtra."""
        if self.options.grpc_server_port >= 0 and not self.options.is_slave:
            grpc = self.serve_grpc(self.options.grpc_server_port)
            undo.callback(grpc.stop)
            undo.callback(grpc.stop_listening)

    def serve_grpc(self, port: int) -> GrpcPort:
        """Serve gRPC clients on this port; 0 takes a free one. Raises PortError, ConfigError, MissingExtra."""
        require("grpcServerPort", "proxy")
        from twisted_mq.broker.grpc_port import grpc_port

        with self._machine.bind(self.options.bind_address, port, "grpcServerPort") as bound:
            access, number = self._access, bound.getsockname()[1]
            assert access is not None, "made with the controller"
            grpc = grpc_port(self.controller, self._served, access, self._most_connections, number)
            grpc.listen(interfaces.IReactorSocket(self._reactor), bound)
        self._grpc = grpc
        return grpc

    def _push_figures(self) -> None:
        """Push metrics to a collector if the settings name one. Raises ConfigError, MissingExtra."""
        options, controller = self.options, self.controller
        if not options.pushes_metrics:
            return
        require("metricsExporterType=OTLP_GRPC", "otlp")
        from twisted_mq.broker.metrics.site import figures_of
        from twisted_mq.metrics.otlp import Pusher

        service = {"service.name": "rocketmq-broker", "service.instance.id": options.broker_name}
        collect = figures_of(controller, self._factory, lambda: self._grpc)
        pusher = self._pusher = Pusher(options, collect, service, self._in_thread, self.wall_ms)
        self._every(options.metric_grpc_exporter_interval_in_mills / 1000, pusher.push)

    def _listen_fast(self) -> None:
        """Listen on the VIP port, listenPort - 2, which older clients prefer for sends."""
        try:
            fast = self._machine.bind(self.options.bind_address, self.port - 2)
            self._listening.append(listen(interfaces.IReactorSocket(self._reactor), fast, self._factory))
        except PortError as error:
            self.log.warn("no fast port, clients with vipChannelEnabled use the main one: {e}", e=error)

    def _say_where(self) -> None:
        controller, options, name_servers = self.controller, self.options, self._name_servers
        self.log.info(
            "broker {name} registers as {address} with {servers} (set brokerIP1 and listenPort to change it)",
            name=options.broker_name,
            address=controller.address,
            servers=", ".join(name_servers) or "no name server",
        )
        warning = address_warning(controller.advertised_ip, name_servers)
        if warning:
            self.log.warn("{warning}", warning=warning)
        if options.broker_role == BrokerRole.SYNC_MASTER and not options.ha_shared_secret:
            self.log.warn(
                "SYNC_MASTER without haSharedSecret: every host that can connect to {address} can read the log{counts}."
                " Set haSharedSecret or haAllowedSlaves, or close the port to others",
                address=controller.ha.address,
                counts=_whose_copies_count(options),
            )
        if options.closes_ha_port:
            self.log.warn(
                "access control without haSharedSecret and haAllowedSlaves: slaves at {address} are refused",
                address=controller.ha.address,
            )

    def _register(self) -> None:
        first = self.registration.register()
        first.addCallbacks(lambda _: self.started.callback(self), self.started.errback)

    def _start_loops(self, *, waits: bool) -> None:
        """Start the periodic work; a master that `waits` for its slaves' word delivers and checks nothing yet."""
        controller, options = self.controller, self.options
        if controller.is_slave:
            replication = Replication(controller, self._reactor, self._client, self.registration, self._link())
            replication.lacks_topic = lambda: self._agent is not None and self._agent.lacks_topic()
            if options.enable_slave_acting_master:
                duties = self._duties = ActingDuties(controller, self._client.invoke)
                replication.on_acting.append(duties.change)
                self._every(options.transaction_check_interval / 1000, duties.check_halves)
            replication.start(self._every)
        if not options.is_slave and options.has_name_servers:
            group = MemberGroup(options, self._name_servers, self._client.invoke)
            slaves = RegisteredSlaves(controller.ha.accept, group, controller.advertised_ip, self._in_thread)
            counts = options.counts_registered_slaves
            self._every(options.sync_broker_member_group_period / 1000 if counts else LINKS_SECONDS, slaves.look)
            self._every(STRANGERS_SECONDS, slaves.look_at_strangers)
        if isinstance(self._store, FileMessageStore):
            self._care_for_files(self._store)
        period = min(60_000, max(10_000, options.register_name_server_period)) / 1000
        self._every(period, self.registration.register)
        self._every(UNKNOWN_SECONDS, self.registration.again)
        self._look_up_name_servers()
        self._watch_for_operators()
        self._every(HOLD_CHECK_SECONDS, lambda: controller.polling.answer_expired(self.now_ms()))
        self._every(EXPIRY_SCAN_SECONDS, controller.close_expired_clients)
        if options.collects_figures:
            self._every(ASK_SECONDS, controller.consumer_figures.ask)
        if self._access is not None and self._access.plain is not None:
            plain = self._access.plain
            self._every(LOOK_SECONDS, lambda: self._in_thread(plain.look))
        if self._encryption is not None:
            self._every(LOOK_SECONDS, self._encryption.look)
        self._every(SNAPSHOT_SECONDS, controller.take_snapshot)
        self._every(SAMPLE_SECONDS, lambda: controller.take_sample(self._reactor.seconds()))
        self._every(PERIOD_SECONDS, controller.cold_reads.begin_period)
        self._every(options.flush_consumer_offset_interval / 1000, controller.offsets.save)
        self._every(options.load_balance_poll_name_server_interval / 1000, controller.routes.refresh)
        self._every(options.flush_delay_offset_interval / 1000, controller.waiting.save_delay_offsets)
        self._every(options.timer_flush_interval_ms / 1000, controller.waiting.save_timer)
        self._every(TIMER_CLEAN_SECONDS, controller.waiting.clean)
        if not waits:
            controller.waiting.start()
            controller.pop.start()
        self._every(ORDER_SAVE_SECONDS, controller.pop.orders.save)
        self._every(FILTER_SAVE_SECONDS, lambda: controller.filters.save(self.now_ms()))
        self._every(options.transaction_metric_flush_interval / 1000, controller.transactions.metrics.save)
        if not options.is_slave and not waits:
            self._every(options.transaction_check_interval / 1000, controller.transactions.check)
        if options.enable_slave_acting_master:
            self._every(options.broker_heartbeat_interval / 1000, self._heartbeat().beat)

    def _start_own_work(self) -> None:
        """Start what a master that waited for its slaves' word left out."""
        self.controller.waiting.start()
        self.controller.pop.start()
        self._every(self.options.transaction_check_interval / 1000, self.controller.transactions.check)

    def _heartbeat(self) -> Heartbeat:
        controller, registration = self.controller, self.registration
        return Heartbeat(
            self.options,
            controller.address,
            self._name_servers,
            self._client.invoke,
            lambda: registration.version,
            lambda: registration.is_known,
        )

    def _care_for_files(self, store: FileMessageStore) -> None:
        """Start the periodic work that only a store on disk needs: indexing and retention."""
        options = self.options
        self._every(INDEX_SECONDS, lambda: store.build_index(INDEX_STEP_BYTES))
        self._retention = RetentionService(
            store, options, self._reactor, self.wall_ms, self._in_thread, needed=self.controller.ordering.needed
        )
        self._every(options.clean_resource_interval / 1000, self._retention.turn)

    def _link(self) -> Connect | None:
        connect = tcp_endpoint(self._reactor, CONNECT_SECONDS)
        return None if self._encryption is None else self._encryption.of_link(connect)

    def _in_thread(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Result]:
        pool = self._threads.getThreadPool()
        return threads.deferToThreadPool(self._threads, pool, function, *arguments, **named)

    def _watch_for_operators(self) -> None:
        controller, watch = self.controller, self._watch
        steps = ClockWatch(self.wall_ms, self._reactor.seconds)
        self._every(WATCH_SECONDS, self._look_for_operators)
        self._every(WATCH_SECONDS, steps.look)
        self._every(LAG_SECONDS, lambda: controller.turns.run("watch", look_at_lag(controller, watch)))

    def _look_for_operators(self) -> None:
        options, watch, budget = self.options, self._watch, self._factory.traffic.budget
        if isinstance(self._store, FileMessageStore):
            watch.note("disk", slow_disk(self._store.take_longest_flush(), options.commit_log_path))
        slaves = self.controller.ha.runtime_info().ha_connection_info
        watch.note("slaves", slow_slaves(slaves, options.ha_max_gap_not_in_sync))
        taken = budgets_of(options, budget.unsent_bytes, budget.incomplete_bytes, budget.held_bytes)
        watch.note("memory", full_budgets(taken))
        if self._encryption is not None:
            watch.note("certificate", self._ending_certificate(self._encryption))

    def _ending_certificate(self, encryption: ServerEncryption) -> Lines:
        path = self.options.tls_server_cert_path or ""
        try:
            ends = encryption.certificates_end()
        except ConfigError as error:  # it has ended, or the file is damaged
            return {
                f"certificate {path}": f"certificate: {error}. Replace it with a valid one: it is reloaded automatically"
            }
        return {} if ends is None else ending_certificate(path, ends, self.wall_ms() / 1000)

    def _address_servers(self) -> list[str]:
        """Return the address of the name servers' page: the route to it is also the route to the name servers."""
        domain = self.options.namesrv_domain
        fetches = self.options.fetch_namesrv_addr_by_address_server
        return [domain if ":" in domain else f"{domain}:80"] if fetches else []

    def _look_up_name_servers(self) -> None:
        options = self.options
        if options.fetch_namesrv_addr_by_address_server and not options.name_servers:
            look, period_ms = by_address_server(options, self._reactor), options.fetch_namesrv_addr_interval
        elif options.fetch_name_srv_addr_by_dns_lookup and options.name_servers:
            look = by_name(options.name_servers, lambda host: self._in_thread(addresses_of_host, host))
            period_ms = options.update_name_server_addr_period
        else:
            return
        look_up = NameServerLookUp(look, self._name_servers, self._name_servers_changed)
        self._every(period_ms / 1000, look_up.look)
        defer.ensureDeferred(look_up.look())

    def _name_servers_changed(self) -> None:
        if self.running:
            self._asked.addresses = tuple(self._name_servers)
            self.registration.register()

    def _every(self, seconds: float, work: Callable[[], object]) -> None:
        name = getattr(work, "__qualname__", repr(work))
        self._jobs.append(PeriodicJob(name, self._reactor, seconds, work))

    def _topics_changed(self, changed: list[TopicConfig] | None) -> None:
        if self.running and self._jobs:
            self.registration.register(changed)
            self._look_for_ordered(changed)

    def _look_for_ordered(self, changed: list[TopicConfig] | None) -> None:
        """Start the agent for ordered topics with the first such topic; its modules are loaded then.

        A slave starts the agent at once: it learns of topics a minute late, and its group could take no sends before.
        """
        controller = self.controller
        if self._agent is not None or self.options.order_coordinator is None:
            return
        configs = controller.topics.topics.values() if changed is None else changed
        if self.options.is_slave or any(config.attributes and config.order_mode is not None for config in configs):
            from twisted_mq.broker.ordering.agent import OrderAgent
            from twisted_mq.broker.ordering.coordinator import coordinator_of

            coordinator = (self._machine.coordinator or coordinator_of)(self.options, self._reactor)
            self._agent = OrderAgent(
                controller, coordinator, self._client.invoke, self.registration.register, self._machine.monotonic
            )
            self._agent.start()

    def _leave_order(self) -> defer.Deferred[None]:
        """Stop the agent before all else: another group takes over the ordered sends while both brokers of this one run."""
        return defer.succeed(None) if self._agent is None else self._agent.stop()

    # stop

    def stopService(self) -> defer.Deferred[None]:
        """Close everything. Fires when the store is closed. A second call does nothing."""
        super().stopService()
        listening, self._listening = self._listening, []
        if not listening:
            return defer.succeed(None)
        return defer.ensureDeferred(self._stop(self._steps_of_stop(listening)))

    async def _stop(self, steps: list[Step]) -> None:
        """Run the steps, then close the store whatever the steps do. Delivery progress is written after the log's copies."""
        await stop_all(self._reactor, steps)
        closed = await take(self._reactor, "close of the store", self._close_store, CLOSE_SECONDS)
        if not closed:
            self.log.error("store not closed, the next start recovers it")
        waiting = self.controller.waiting
        await stop_all(self._reactor, [("end of waiting messages", waiting.save if closed else waiting.close)])
        self.log.info("broker {name} stopped", name=self.options.broker_name)

    def _steps_of_stop(self, listening: list[interfaces.IListeningPort]) -> list[Step]:
        controller = self.controller
        going = self._going_online
        return [
            *([("end of questions to slaves", going.cancel)] if going is not None else ()),
            ("end of ordered queues", self._leave_order),
            *[("end of a periodic job", job.stop) for job in self._jobs],
            *([("end of retention", self._retention.stop)] if self._retention is not None else ()),
            ("unregistration at the name servers", self._say_goodbye),
            *[("close of a port", port.stopListening) for port in listening],
            *([("close of the gRPC port", self._grpc.stop_listening)] if self._grpc is not None else ()),
            *([("end of gRPC calls", self._grpc.stop)] if self._grpc is not None else ()),
            *([("end of pushed metrics", self._pusher.close)] if self._pusher is not None else ()),
            *([("end of duties in the master's place", self._duties.stop)] if self._duties is not None else ()),
            ("end of deliveries", controller.waiting.stop),
            ("end of transactions", controller.transactions.stop),
            ("end of sliced work", controller.turns.stop),
            ("end of pop", controller.pop.stop),
            ("dispatch", controller.dispatch),
            ("end of replication", controller.ha.stop),
            ("answers to waiting pulls", functools.partial(controller.polling.answer_all, WaitingKind.PULL)),
            ("close of connections", self._factory.close_all),
            ("close of connections to others", self._client.close),
            ("save of consumer offsets", controller.offsets.save),
            ("save of ordered pops", controller.pop.orders.save),
            *[("save of a table", saver.stop) for saver in self._savers],
            ("save of transaction metrics", controller.transactions.metrics.save),
            ("save of consumer filters", functools.partial(controller.filters.save, self.now_ms())),
        ]

    def _say_goodbye(self) -> defer.Deferred[list[bool] | None]:
        goodbye = self.registration.unregister().addTimeout(UNREGISTER_SECONDS, self._reactor)
        return goodbye.addErrback(
            lambda reason: self.log.info("not unregistered from name servers: {e}", e=reason.value)
        )

    def _close_store(self) -> defer.Deferred[None]:
        self.controller.close_begins()
        return self._in_thread(self._store.close)


def loaded(table: Callable[[str], Table], folder: str, name: str) -> Table:
    """Load a JSON table of the config folder."""
    made = table(os.path.join(folder, name))
    made.load()
    return made


def broker_access(options: BrokerOptions, now: Callable[[], float], in_thread: InThread) -> ServerAccess:
    """Return the broker's access control; users and policies are in its config folder. Raises ConfigError, MissingExtra."""
    folder = os.path.join(options.store_path_root_dir, "config")
    return server_access(options, folder, options.broker_cluster_name, now, in_thread)


def make_broker(
    options: BrokerOptions, reactor: interfaces.IReactorTime, access: ServerAccess | None = None
) -> BrokerService:
    """Return a broker with these options on this reactor, which also provides threads and sockets."""
    return BrokerService(options, reactor, access=access)


def _not_saved(reason: failure.Failure) -> None:
    raise BrokerError(ResponseCode.SYSTEM_ERROR, "changed, but not saved: the broker cannot write its table now")


def _whose_copies_count(options: BrokerOptions) -> str:
    if not options.waits_for_slaves or options.ha_allowed_slaves:
        return ""
    if options.counts_registered_slaves:
        return "; copies count only of hosts that are registered as slaves of this broker"
    return ", and what it acknowledges counts as a copy"

"""Runs the periodic work of one broker, in the order of a start (Apache: BrokerController.initializeBrokerScheduledTasks)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet import defer

from twisted_mq.access.server_access import LOOK_SECONDS, ServerAccess
from twisted_mq.broker.acting.duties import ActingDuties
from twisted_mq.broker.acting.heartbeat import Heartbeat
from twisted_mq.broker.broker_parts import BrokerParts
from twisted_mq.broker.clients.consumer_figures import ASK_SECONDS
from twisted_mq.broker.cold_reads import PERIOD_SECONDS
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.ha.registered_slaves import RegisteredSlaves
from twisted_mq.broker.ha.replication import Replication
from twisted_mq.broker.long_polling import HOLD_CHECK_SECONDS
from twisted_mq.broker.name_server_lookup import NameServerLookUp, look_up_of
from twisted_mq.broker.order_membership import OrderMembership
from twisted_mq.broker.ports import BrokerPorts
from twisted_mq.broker.registration import Registration
from twisted_mq.broker.retention_service import RetentionService
from twisted_mq.broker.runtime import BrokerRuntime
from twisted_mq.broker.statistics.broker_statistics import SAMPLE_SECONDS, SNAPSHOT_SECONDS
from twisted_mq.broker.watch import OperatorWatch
from twisted_mq.encryption.servers import ServerEncryption
from twisted_mq.extras import require
from twisted_mq.periodic import PeriodicJob
from twisted_mq.storage.message_store import FileMessageStore

if TYPE_CHECKING:
    from twisted_mq.metrics.otlp import Pusher

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


class PeriodicWork:
    """The periodic jobs of one broker. A stop stops `jobs`, `retention`, `pusher` and `duties`."""

    def __init__(self, runtime: BrokerRuntime) -> None:
        self.jobs: list[PeriodicJob] = []
        self.retention: RetentionService | None = None
        self.pusher: Pusher | None = None
        self.duties: ActingDuties | None = None
        self.watch: OperatorWatch
        self._runtime = runtime
        self._options = runtime.options

    def every(self, seconds: float, work: Callable[[], object]) -> None:
        """Start a job."""
        name = getattr(work, "__qualname__", repr(work))
        self.jobs.append(PeriodicJob(name, self._runtime.reactor, seconds, work))

    def push_metrics(self, controller: BrokerController, ports: BrokerPorts) -> None:
        """Push metrics to a collector if the settings name one. Raises ConfigError, MissingExtra."""
        options, runtime = self._options, self._runtime
        if not options.pushes_metrics:
            return
        require("metricsExporterType=OTLP_GRPC", "otlp")
        from twisted_mq.broker.metrics.site import figures_of
        from twisted_mq.metrics.otlp import Pusher

        service = {"service.name": "rocketmq-broker", "service.instance.id": options.broker_name}
        collect = figures_of(controller, ports.factory, lambda: ports.grpc)
        pusher = self.pusher = Pusher(options, collect, service, runtime.in_thread, runtime.wall_ms)
        self.every(options.metric_grpc_exporter_interval_in_mills / 1000, pusher.push)

    def start(
        self,
        parts: BrokerParts,
        ports: BrokerPorts,
        order: OrderMembership,
        name_servers_changed: Callable[[], object],
        *,
        waits: bool,
    ) -> None:
        """Start all jobs; a master that `waits` for its slaves' word delivers and checks nothing yet."""
        options, controller, registration = self._options, parts.controller, parts.registration
        if controller.is_slave:
            self._replicate(parts, order)
        if not options.is_slave and options.has_name_servers:
            self._look_at_slaves(parts)
        if isinstance(parts.state.store, FileMessageStore):
            self._care_for_files(parts.state.store, controller)
        self._register_again(registration)
        self._look_up_name_servers(name_servers_changed)
        self.watch = OperatorWatch(controller, ports.factory.traffic.budget, parts.encryption)
        self.watch.start(self.every)
        self._look_at_clients(controller)
        self._look_at_files(parts.access, parts.encryption)
        self._measure(controller)
        self._save_progress(controller)
        if not waits:
            controller.waiting.start()
            controller.pop.start()
        self._save_rest(controller)
        if not options.is_slave and not waits:
            self._check_transactions(controller)
        if options.enable_slave_acting_master:
            self.every(options.broker_heartbeat_interval / 1000, self._heartbeat(parts).beat)

    def start_deliveries(self, controller: BrokerController) -> None:
        """Start what a master that waited for its slaves' word left out."""
        controller.waiting.start()
        controller.pop.start()
        self._check_transactions(controller)

    def _check_transactions(self, controller: BrokerController) -> None:
        self.every(self._options.transaction_check_interval / 1000, controller.transactions.check)

    def _replicate(self, parts: BrokerParts, order: OrderMembership) -> None:
        """Follow the master, and act for it if the settings say so. Raises ConfigError."""
        options, controller = self._options, parts.controller
        link = parts.link()
        replication = Replication(controller, self._runtime.reactor, parts.client, parts.registration, link)
        replication.lacks_topic = order.lacks_topic
        if options.enable_slave_acting_master:
            duties = self.duties = ActingDuties(controller, parts.client.invoke)
            replication.on_acting.append(duties.change)
            self.every(options.transaction_check_interval / 1000, duties.check_halves)
        replication.start(self.every)

    def _look_at_slaves(self, parts: BrokerParts) -> None:
        options, controller, runtime = self._options, parts.controller, self._runtime
        group = MemberGroup(options, runtime.name_servers, parts.client.invoke)
        slaves = RegisteredSlaves(controller.ha.accept, group, controller.advertised_ip, runtime.in_thread)
        counts = options.counts_registered_slaves
        self.every(options.sync_broker_member_group_period / 1000 if counts else LINKS_SECONDS, slaves.look)
        self.every(STRANGERS_SECONDS, slaves.look_at_strangers)

    def _care_for_files(self, store: FileMessageStore, controller: BrokerController) -> None:
        """Start what only a store on disk needs: indexing and retention."""
        options, runtime, needed = self._options, self._runtime, controller.ordering.needed
        self.every(INDEX_SECONDS, lambda: store.build_index(INDEX_STEP_BYTES))
        self.retention = RetentionService(
            store, options, runtime.reactor, runtime.wall_ms, runtime.in_thread, needed=needed
        )
        self.every(options.clean_resource_interval / 1000, self.retention.turn)

    def _register_again(self, registration: Registration) -> None:
        period = min(60_000, max(10_000, self._options.register_name_server_period)) / 1000
        self.every(period, registration.register)
        self.every(UNKNOWN_SECONDS, registration.again)

    def _look_up_name_servers(self, changed: Callable[[], object]) -> None:
        runtime = self._runtime
        found = look_up_of(runtime.options, runtime.reactor, runtime.in_thread)
        if found is not None:
            look, period_ms = found
            look_up = NameServerLookUp(look, runtime.name_servers, changed)
            self.every(period_ms / 1000, look_up.look)
            defer.ensureDeferred(look_up.look())

    def _look_at_clients(self, controller: BrokerController) -> None:
        self.every(HOLD_CHECK_SECONDS, lambda: controller.polling.answer_expired(self._runtime.now_ms()))
        self.every(EXPIRY_SCAN_SECONDS, controller.close_expired_clients)
        if self._options.collects_figures:
            self.every(ASK_SECONDS, controller.consumer_figures.ask)

    def _look_at_files(self, access: ServerAccess, encryption: ServerEncryption | None) -> None:
        """Start the checks of the files of accounts and certificates for changes."""
        plain, in_thread = access.plain, self._runtime.in_thread
        if plain is not None:
            self.every(LOOK_SECONDS, lambda: in_thread(plain.look))
        if encryption is not None:
            self.every(LOOK_SECONDS, encryption.look)

    def _measure(self, controller: BrokerController) -> None:
        self.every(SNAPSHOT_SECONDS, controller.take_snapshot)
        self.every(SAMPLE_SECONDS, lambda: controller.take_sample(self._runtime.reactor.seconds()))
        self.every(PERIOD_SECONDS, controller.cold_reads.begin_period)

    def _save_progress(self, controller: BrokerController) -> None:
        options, waiting = self._options, controller.waiting
        self.every(options.flush_consumer_offset_interval / 1000, controller.offsets.save)
        self.every(options.load_balance_poll_name_server_interval / 1000, controller.routes.refresh)
        self.every(options.flush_delay_offset_interval / 1000, waiting.save_delay_offsets)
        self.every(options.timer_flush_interval_ms / 1000, waiting.save_timer)
        self.every(TIMER_CLEAN_SECONDS, waiting.clean)

    def _save_rest(self, controller: BrokerController) -> None:
        self.every(ORDER_SAVE_SECONDS, controller.pop.orders.save)
        self.every(FILTER_SAVE_SECONDS, lambda: controller.filters.save(self._runtime.now_ms()))
        self.every(self._options.transaction_metric_flush_interval / 1000, controller.transactions.metrics.save)

    def _heartbeat(self, parts: BrokerParts) -> Heartbeat:
        registration = parts.registration
        return Heartbeat(
            self._options,
            parts.controller.address,
            self._runtime.name_servers,
            parts.client.invoke,
            lambda: registration.version,
            lambda: registration.is_known,
        )

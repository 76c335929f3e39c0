"""Runs a name server as a Twisted service: the listening socket, the scan for silent brokers, lost connections."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from twisted.application import service
from twisted.internet import defer, interfaces

from twisted_mq.access.guard import guarded
from twisted_mq.access.server_access import LOOK_SECONDS, ServerAccess, server_access
from twisted_mq.clocks import time_of_day, wall_ms
from twisted_mq.config.descriptors import most_connections
from twisted_mq.encryption.servers import ServerEncryption, server_encryption
from twisted_mq.extras import require
from twisted_mq.logs import Logger
from twisted_mq.namesrv.kv_config import KVConfig
from twisted_mq.namesrv.lowest_id_notices import LowestIdNotices
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.processor import processors
from twisted_mq.namesrv.route_table import BROKER_EXPIRY_MS, RouteTable
from twisted_mq.namesrv.state import NamesrvState
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.reactor_threads import threads_of
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.client import RemotingClient, tcp_endpoint
from twisted_mq.remoting.listen import Bind, bind, listen
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic
from twisted_mq.stopping import Step, stop_all
from twisted_mq.turns import Turns

if TYPE_CHECKING:
    from twisted_mq.metrics.otlp import Pusher

CONNECT_SECONDS = 3.0
CLUSTER_NAME = "namesrv"
"""The resource of rights on a name server, which serves any number of clusters."""


class NamesrvService(service.Service):
    """A name server (Apache: NamesrvController). `port` is the port it listens on once started."""

    log = Logger()

    def __init__(
        self,
        options: NamesrvOptions,
        reactor: interfaces.IReactorTime,
        broker_expiry_ms: int = BROKER_EXPIRY_MS,
        bind: Bind = bind,
        access: ServerAccess | None = None,
    ) -> None:
        """Create a name server. `access` is the one of the broker in whose process it runs; otherwise it creates its own
        when it starts.
        """
        self.setName("namesrv")
        self.options = options
        self.port = options.listen_port
        self.metrics_port = 0
        rotation = Rotation(reactor)
        self._turns = Turns(rotation)
        self.routes = RouteTable(broker_expiry_ms, later=self._turns.must_run)
        self._reactor = reactor
        self._bind = bind
        self._client: RemotingClient | None = None
        self._notices = LowestIdNotices(self._send_one_way)
        self._listening: interfaces.IListeningPort | None = None
        self._metrics: interfaces.IListeningPort | None = None
        self._state = NamesrvState(
            options=options,
            routes=self.routes,
            kv_config=KVConfig(options.kv_config_path),
            clock=reactor,
            turns=self._turns,
            in_thread=threads_of(reactor),
            tell=self._notices.tell,
        )
        self._access = access
        self._processors = processors(self._state)
        traffic = Traffic(
            self._processors, reactor, channel_lost=self._channel_lost, budget=Budget(options), rotation=rotation
        )
        self.factory = RemotingServerFactory(traffic, options.server_channel_max_idle_time_seconds, most_connections())
        self._scan: PeriodicJob | None = None
        self._looks: list[PeriodicJob] = []
        self._encryption: ServerEncryption | None = None
        self._pusher: Pusher | None = None

    def startService(self) -> None:
        """Read the key-value configuration and listen. Raises PortError if the port cannot be bound, ConfigError."""
        self._ask_first()
        self._state.kv_config.load()
        self._state.started_at = self._reactor.seconds()
        with contextlib.ExitStack() as undo:
            bound = undo.enter_context(self._bind(self.options.bind_address, self.options.listen_port))
            self.port = bound.getsockname()[1]
            if self.options.shows_metrics:
                self._show_metrics()
            self._push_figures()
            undo.pop_all()
        self._listening = listen(interfaces.IReactorSocket(self._reactor), bound, self.factory)
        seconds = self.options.scan_not_active_broker_interval / 1000
        self._scan = PeriodicJob("scan for silent brokers", self._reactor, seconds, self.scan)
        super().startService()
        self.log.info("name server ready: address={a} port={p}", a=self.options.bind_address, p=self.port)

    def _show_metrics(self) -> None:
        require("metricsExporterType=PROM", "metrics")
        from twisted_mq.namesrv.metrics import metrics_site

        host = self.options.metrics_prom_exporter_host or self.options.bind_address
        bound = self._bind(host, self.options.metrics_prom_exporter_port, "metricsPromExporterPort")
        self.metrics_port = bound.getsockname()[1]
        site = metrics_site(self._state, self.factory)
        self._metrics = listen(interfaces.IReactorSocket(self._reactor), bound, site)
        self.log.info("metrics at http://{host}:{port}/metrics", host=host, port=self.metrics_port)

    def _push_figures(self) -> None:
        """Push metrics to a collector if the settings name one. Raises ConfigError, MissingExtra."""
        options = self.options
        if not options.pushes_metrics:
            return
        require("metricsExporterType=OTLP_GRPC", "otlp")
        from twisted_mq.metrics.otlp import Pusher
        from twisted_mq.namesrv.metrics import figures_of

        service = {"service.name": "rocketmq-namesrv", "service.instance.id": f"{options.bind_address}:{self.port}"}
        in_thread = threads_of(self._reactor)
        pusher = Pusher(
            options,
            figures_of(self._state, self.factory),
            service,
            in_thread,
            wall_ms(self._reactor),
        )
        self._pusher = pusher
        seconds = options.metric_grpc_exporter_interval_in_mills / 1000
        self._looks.append(PeriodicJob("push of metrics", self._reactor, seconds, pusher.push))

    def _ask_first(self) -> None:
        """Put access control and encryption before the processors if the settings ask for them. Raises ConfigError."""
        options = self.options
        access = self._access = self._access or server_access(
            options, options.auth_config_path, CLUSTER_NAME, self._reactor.seconds, threads_of(self._reactor)
        )
        own = {int(code): one for code, one in access.processors.items()}  # Apache's name server has no users
        self._processors.update(guarded(self._processors | own, access.checks, strict=access.strict))
        if access.plain is not None:
            plain = access.plain
            in_thread = threads_of(self._reactor)
            self._looks.append(
                PeriodicJob("check of accounts", self._reactor, LOOK_SECONDS, lambda: in_thread(plain.look))
            )
        encryption = self._encryption = server_encryption(options, time_of_day(self._reactor), self._reactor)
        if encryption is not None:
            self.factory.expect = encryption.expect
            self._looks.append(PeriodicJob("check of certificates", self._reactor, LOOK_SECONDS, encryption.look))

    def stopService(self) -> defer.Deferred[None]:
        """Close the socket and all connections. Fires when that is done, never with a failure. A second call does nothing."""
        super().stopService()
        listening, self._listening = self._listening, None
        scan, self._scan = self._scan, None
        looks, self._looks = self._looks, []
        metrics, self._metrics = self._metrics, None
        self._notices.stop()
        client, self._client = self._client, None
        pusher, self._pusher = self._pusher, None
        steps: list[Step] = [
            *([("end of the scan", scan.stop)] if scan is not None else ()),
            *[("end of file checks", look.stop) for look in looks],
            *([("close of the port", listening.stopListening)] if listening is not None else ()),
            *([("close of the metrics page", metrics.stopListening)] if metrics is not None else ()),
            *([("end of pushed metrics", pusher.close)] if pusher is not None else ()),
            ("end of sliced work", self._turns.stop),
            ("close of connections", self.factory.close_all),
            *([("close of connections to brokers", client.close)] if client is not None else ()),
        ]
        return defer.ensureDeferred(stop_all(self._reactor, steps))

    def scan(self) -> None:
        """Forget silent brokers and close their connections."""
        expired, changes = self.routes.expire(self._state.now_ms())
        for one in expired:
            self.log.warn(
                "broker expired: address={a} silent for more than {t} ms", a=one.key.address, t=one.timeout_ms
            )
            one.connection.close()
        for change in changes:
            self._state.tell_if_wanted(change)

    def _channel_lost(self, channel: SocketChannel) -> None:
        for change in self.routes.connection_lost(channel):
            self._state.tell_if_wanted(change)

    def _make_client(self) -> RemotingClient:
        connect = tcp_endpoint(self._reactor, CONNECT_SECONDS)
        encryption, access = self._encryption, self._access
        return RemotingClient(
            self._reactor,
            connect=connect if encryption is None else encryption.of_requests(connect),
            credentials=None if access is None else access.credentials,
        )

    def _send_one_way(self, address: str, command: RemotingCommand) -> defer.Deferred[None]:
        if self._client is None:
            self._client = self._make_client()
        return self._client.invoke_one_way(address, command)


def make_namesrv(
    options: NamesrvOptions,
    reactor: interfaces.IReactorTime,
    *,
    broker_expiry_ms: int = BROKER_EXPIRY_MS,
    access: ServerAccess | None = None,
) -> NamesrvService:
    """Return a name server that listens when it is started; `broker_expiry_ms` is for brokers that set no timeout."""
    return NamesrvService(options, reactor, broker_expiry_ms, access=access)

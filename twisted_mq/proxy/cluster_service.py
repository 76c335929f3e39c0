"""Starts and stops a proxy in a process of its own: its port, its metrics page, and its connections to brokers."""

from __future__ import annotations

import contextlib

from twisted.application import service
from twisted.internet import defer, interfaces

from twisted_mq.access.secrets import inner_credentials
from twisted_mq.clocks import time_of_day
from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.config.descriptors import most_connections
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.config.tls_options import TlsOptions
from twisted_mq.encryption.clients import encrypted
from twisted_mq.encryption.settings import own_settings
from twisted_mq.extras import require
from twisted_mq.logs import Logger
from twisted_mq.proxy.authentication import Authentication
from twisted_mq.proxy.cluster import ClusterBrokers
from twisted_mq.proxy.encryption import grpc_encryption
from twisted_mq.proxy.options import ProxyServiceOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.port import GrpcPort
from twisted_mq.proxy.users import Signatures
from twisted_mq.reactor_threads import threads_of
from twisted_mq.remoting.client import Connect, tcp_endpoint
from twisted_mq.remoting.listen import bind, listen
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.turns import Turns

CONNECT_SECONDS = 3.0


class ProxyService(service.Service):
    """A proxy in cluster mode. `port` is the port that it listens on, `metrics_port` that of its metrics page."""

    log = Logger()

    def __init__(self, options: ProxyServiceOptions, reactor: interfaces.IReactorTime) -> None:
        self._options = options
        self._reactor = reactor
        self._turns = Turns(Rotation(reactor))
        self._grpc: GrpcPort | None = None
        self._brokers: ClusterBrokers | None = None
        self._metrics: interfaces.IListeningPort | None = None
        self.port = 0
        self.metrics_port = 0

    def startService(self) -> None:
        """Open the port and start the work with brokers. Raises PortError, ConfigError, MissingExtra."""
        super().startService()
        options, reactor = self._options, self._reactor
        if not options.name_servers:
            raise ConfigError("is required, or the environment variable NAMESRV_ADDR", key="namesrvAddr", value="")
        with bind(options.bind_address, options.grpc_server_port, "grpcServerPort") as bound:
            signatures = _signatures(options, reactor)
            brokers = self._brokers = ClusterBrokers(
                reactor, options.name_servers, options.rocket_mq_cluster_name, signatures, _connect(options, reactor)
            )
            authentication = Authentication(None if signatures is None else signatures.secret_of)
            tls = TlsOptions(tls_server_cert_path=options.tls_cert_path, tls_server_key_path=options.tls_key_path)
            encryption = grpc_encryption(tls, reactor)
            parts = Parts(options, brokers, reactor, options.max_message_size)
            grpc = GrpcPort(parts, authentication, ConnectionOptions(), encryption, most_connections())
            brokers.check_transaction = grpc.messaging.telemetry.check_transaction
            with contextlib.ExitStack() as undo:
                self._show_metrics(grpc, undo)
                grpc.listen(interfaces.IReactorSocket(reactor), bound)
                undo.pop_all()
            self._grpc = grpc
            self.port = grpc.port
        brokers.start()
        self.log.info("proxy for the name servers {servers}", servers=";".join(options.name_servers))

    def _show_metrics(self, grpc: GrpcPort, undo: contextlib.ExitStack) -> None:
        """Serve the metrics page if the settings say so. Raises PortError, ConfigError, MissingExtra."""
        options = self._options
        if options.metrics_exporter_type is MetricsExporterType.OTLP_GRPC:
            self.log.warn(
                "metricsExporterType=OTLP_GRPC has no effect at a proxy, which pushes no metrics; PROM shows them"
            )
        if options.metrics_exporter_type is not MetricsExporterType.PROM:
            return
        require("metricsExporterType=PROM", "metrics")
        from twisted_mq.proxy.metrics import metrics_site

        site = metrics_site(grpc, options, self._turns, threads_of(self._reactor))
        host = options.metrics_prom_exporter_host or options.bind_address
        bound = undo.enter_context(bind(host, options.metrics_prom_exporter_port, "metricsPromExporterPort"))
        self.metrics_port = bound.getsockname()[1]
        self._metrics = listen(interfaces.IReactorSocket(self._reactor), bound, site)
        undo.callback(self._metrics.stopListening)
        self.log.info("metrics at http://{host}:{port}/metrics", host=host, port=self.metrics_port)

    def stopService(self) -> defer.Deferred[None]:
        """Stop the proxy; fires when all connections are closed. A second call does nothing."""
        super().stopService()
        grpc, self._grpc = self._grpc, None
        return defer.succeed(None) if grpc is None else defer.ensureDeferred(self._stop(grpc))

    async def _stop(self, grpc: GrpcPort) -> None:
        await grpc.stop_listening()
        metrics, self._metrics = self._metrics, None
        if metrics is not None:
            await defer.maybeDeferred(metrics.stopListening)
        self._turns.stop()
        await grpc.stop()
        if self._brokers is not None:
            await self._brokers.stop()
        self.log.info("proxy stopped")


def _connect(options: ProxyServiceOptions, reactor: interfaces.IReactorTime) -> Connect:
    """Return the endpoints of name servers and brokers. Raises ConfigError, MissingExtra."""
    connect = tcp_endpoint(reactor, CONNECT_SECONDS)
    if not options.tls_enable:
        return connect
    require("tls.enable", "tls")
    tls = TlsOptions(
        tls_client_auth_server=options.tls_client_auth_server,
        tls_client_trust_cert_path=options.tls_client_trust_cert_path,
    )
    return encrypted(connect, own_settings(tls), time_of_day(reactor)(), reactor)


def _signatures(options: ProxyServiceOptions, clock: interfaces.IReactorTime) -> Signatures | None:
    """Return the check and signer of requests; None if users are not authenticated. Raises ConfigError."""
    if not options.authentication_enabled:
        if options.authorization_enabled:
            raise ConfigError("needs authenticationEnabled=true", key="authorizationEnabled", value="true")
        return None
    own = inner_credentials(options.inner_client_authentication_credentials)
    if own is None:
        reason = "needs innerClientAuthenticationCredentials, the same as at the brokers, which are asked about users"
        raise ConfigError(reason, key="authenticationEnabled", value="true")
    return Signatures(own, clock, authorizes=options.authorization_enabled)

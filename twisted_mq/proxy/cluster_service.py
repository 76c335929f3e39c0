"""Starts and stops a proxy in a process of its own: its port and its connections to brokers."""

from __future__ import annotations

from twisted.application import service
from twisted.internet import defer, interfaces

from twisted_mq.access.secrets import inner_credentials
from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.config.descriptors import most_connections
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.tls_options import TlsOptions
from twisted_mq.logs import Logger
from twisted_mq.proxy.authentication import Authentication
from twisted_mq.proxy.cluster import ClusterBrokers
from twisted_mq.proxy.encryption import grpc_encryption
from twisted_mq.proxy.options import ProxyServiceOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.port import GrpcPort
from twisted_mq.proxy.users import Signatures
from twisted_mq.remoting.listen import bind


class ProxyService(service.Service):
    """A proxy in cluster mode. `port` is the port that it listens on."""

    log = Logger()

    def __init__(self, options: ProxyServiceOptions, reactor: interfaces.IReactorTime) -> None:
        self._options = options
        self._reactor = reactor
        self._grpc: GrpcPort | None = None
        self._brokers: ClusterBrokers | None = None
        self.port = 0

    def startService(self) -> None:
        """Open the port and start the work with brokers. Raises PortError, ConfigError."""
        super().startService()
        options, reactor = self._options, self._reactor
        if not options.name_servers:
            raise ConfigError("is needed, or the environment's NAMESRV_ADDR", key="namesrvAddr", value="")
        with bind(options.bind_address, options.grpc_server_port, "grpcServerPort") as bound:
            signatures = _signatures(options, reactor)
            brokers = self._brokers = ClusterBrokers(
                reactor, options.name_servers, options.rocket_mq_cluster_name, signatures
            )
            authentication = Authentication(None if signatures is None else signatures.secret_of)
            tls = TlsOptions(tls_server_cert_path=options.tls_cert_path, tls_server_key_path=options.tls_key_path)
            encryption = grpc_encryption(tls, reactor)
            parts = Parts(options, brokers, reactor, options.max_message_size)
            grpc = self._grpc = GrpcPort(parts, authentication, ConnectionOptions(), encryption, most_connections())
            brokers.check_transaction = grpc.messaging.telemetry.check_transaction
            grpc.listen(interfaces.IReactorSocket(reactor), bound)
            self.port = grpc.port
        brokers.start()
        self.log.info("proxy in front of {servers}", servers=";".join(options.name_servers))

    def stopService(self) -> defer.Deferred[None]:
        """Stop the proxy; fires when all connections are closed. A second call does nothing."""
        super().stopService()
        grpc, self._grpc = self._grpc, None
        return defer.succeed(None) if grpc is None else defer.ensureDeferred(self._stop(grpc))

    async def _stop(self, grpc: GrpcPort) -> None:
        await grpc.stop_listening()
        await grpc.stop()
        if self._brokers is not None:
            await self._brokers.stop()
        self.log.info("proxy stopped")


def _signatures(options: ProxyServiceOptions, clock: interfaces.IReactorTime) -> Signatures | None:
    """Return what checks and signs requests; None if users are not authenticated. Raises ConfigError."""
    if not options.authentication_enabled:
        if options.authorization_enabled:
            raise ConfigError("needs authenticationEnabled=true", key="authorizationEnabled", value="true")
        return None
    own = inner_credentials(options.inner_client_authentication_credentials)
    if own is None:
        reason = "needs innerClientAuthenticationCredentials, which brokers have too: they are asked about users"
        raise ConfigError(reason, key="authenticationEnabled", value="true")
    return Signatures(own, clock)

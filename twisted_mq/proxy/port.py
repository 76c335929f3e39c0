"""The gRPC port: method tables, limits, TLS and listening, for both modes."""

from __future__ import annotations

from twisted.internet import defer, interfaces

from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.encryption.servers import LOOK_SECONDS, ServerEncryption
from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.proxy.authentication import Authentication
from twisted_mq.proxy.grpc.health import HEALTH, Health
from twisted_mq.proxy.grpc.limits import ConnectionLimits
from twisted_mq.proxy.grpc.reflection import Reflection
from twisted_mq.proxy.grpc.server import GrpcServerFactory
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.proxy.grpc.trusted_proxies import TrustedProxies
from twisted_mq.proxy.messages import MESSAGING
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.service import MessagingService
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.listen import Bound, listen


class GrpcPort:
    """Serves the messaging service on one bound socket."""

    log = Logger()

    def __init__(
        self,
        parts: Parts,
        authentication: Authentication,
        connections: ConnectionOptions,
        encryption: ServerEncryption | None,
        max_connections: int,
    ) -> None:
        """Raises ConfigError."""
        self.messaging = MessagingService(parts, authentication)
        limits = ConnectionLimits(
            message_bytes=parts.options.grpc_max_inbound_message_size,
            idle_seconds=parts.options.grpc_client_idle_time_mills / 1000,
        )
        self.health = Health([MESSAGING.name])
        methods = {
            **self.messaging.methods(),
            **self.health.methods(),
            **Reflection([MESSAGING, HEALTH]).methods(),
        }
        self.shared = Shared(methods, parts.clock, limits, Budget(connections), parts.rotation)
        self.shared.end_of_read = None if parts.brokers.own is None else parts.brokers.own.dispatch
        self.factory = GrpcServerFactory(self.shared, max_connections)
        self.clock = parts.clock
        self._encryption = encryption
        self.factory.expect = None if encryption is None else encryption.expect
        if parts.options.proxy_protocol_from:
            self.factory.expect = TrustedProxies.parse(parts.options.proxy_protocol_from, self.factory.expect).expect
        self._look: PeriodicJob | None = None
        self._listening: interfaces.IListeningPort | None = None
        self.port = 0

    def listen(self, sockets: interfaces.IReactorSocket, bound: Bound) -> None:
        """Begin to serve. Raises PortError."""
        self.port = bound.getsockname()[1]
        self._listening = listen(sockets, bound, self.factory)
        self.messaging.start()
        if self._encryption is not None:
            self._look = PeriodicJob("check of certificates", self.clock, LOOK_SECONDS, self._encryption.look)
        self.log.info("gRPC clients are served: port={port}", port=self.port)

    def stop_listening(self) -> defer.Deferred[None]:
        """Accept no further connections."""
        listening, self._listening = self._listening, None
        stopped = None if listening is None else listening.stopListening()
        return stopped if isinstance(stopped, defer.Deferred) else defer.succeed(None)

    def stop(self) -> defer.Deferred[None]:
        """End calls and connections; messages that clients were consuming become visible again."""
        look, self._look = self._look, None
        if look is not None:
            look.stop()
        self.health.stop()
        self.messaging.stop()
        return self.factory.stop()

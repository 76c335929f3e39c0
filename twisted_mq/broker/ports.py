"""Holds a broker's listening ports: the one for clients, the fast one below it, those for slaves, metrics and gRPC clients."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from twisted.internet import interfaces, protocol

from twisted_mq.broker.broker_parts import BrokerParts
from twisted_mq.broker.fast_failure import FastFailure
from twisted_mq.broker.request_table import ServedRequests, served_requests
from twisted_mq.broker.runtime import BrokerRuntime
from twisted_mq.config.descriptors import most_connections
from twisted_mq.extras import require
from twisted_mq.logs import Logger
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.listen import Bound, PortError, listen
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import Traffic

if TYPE_CHECKING:
    from twisted_mq.metrics.page import MetricsSite
    from twisted_mq.proxy.port import GrpcPort


class BrokerPorts:
    """The ports of one broker. `bind` takes their numbers, `serve` makes what answers, `listen` opens them."""

    log = Logger()

    def __init__(self, runtime: BrokerRuntime) -> None:
        self._runtime = runtime
        self.port = 0
        self.ha_port = 0
        self.metrics_port = 0
        self.grpc: GrpcPort | None = None
        self.listening: list[interfaces.IListeningPort] = []
        self.factory: RemotingServerFactory
        self.served: ServedRequests
        self._bound: Bound
        self._bound_for_slaves: Bound
        self._parts: BrokerParts
        self._most_connections = 0

    def bind(self, undo: contextlib.ExitStack) -> None:
        """Bind the ports for clients and slaves. `undo` closes them if the start fails later. Raises PortError."""
        self._most_connections = most_connections()
        options, bind = self._runtime.options, self._runtime.machine.bind
        self._bound = undo.enter_context(bind(options.bind_address, options.listen_port))
        self.port = self._bound.getsockname()[1]
        # the port above the clients' port without haListenPort; any port if the clients' is any
        ha_port = options.ha_listen_port or (options.listen_port and options.listen_port + 1)
        self._bound_for_slaves = undo.enter_context(bind(options.bind_address, ha_port, "haListenPort"))
        self.ha_port = self._bound_for_slaves.getsockname()[1]

    def serve(self, parts: BrokerParts) -> None:
        """Make the server of the broker's requests. Its factory has no port yet."""
        options, controller = self._runtime.options, parts.controller
        self._parts = parts
        self.served = served_requests(controller)
        traffic = Traffic(
            self.served.processors,
            self._runtime.reactor,
            streaks=self.served.streaks,
            end_of_read=controller.end_of_read,
            channel_lost=controller.channel_lost,
            late=controller.late,
            rotation=controller.rotation,
            budget=Budget(options),
            too_late=FastFailure(options),
            count=lambda event: controller.statistics.activity[event].add(1, 0),
        )
        self.factory = RemotingServerFactory(
            traffic, options.server_channel_max_idle_time_seconds, self._most_connections
        )

    def listen(self, undo: contextlib.ExitStack) -> None:
        """Open the ports. Raises PortError, ConfigError, MissingExtra."""
        options, encryption = self._runtime.options, self._parts.encryption
        links: protocol.ServerFactory = self._parts.controller.ha.accept
        if encryption is not None:
            self.factory.expect = encryption.expect
            links = encryption.of_links(self._parts.controller.ha.accept)
        sockets = interfaces.IReactorSocket(self._runtime.reactor)
        listening = [listen(sockets, bound, site) for bound, site in self._page_of_metrics(undo)]
        listening.append(listen(sockets, self._bound, self.factory))
        for port in listening:
            undo.callback(port.stopListening)
        listening.append(listen(sockets, self._bound_for_slaves, links))
        self.listening = listening
        self._listen_grpc(undo)
        if options.listen_port > 2:
            self._listen_fast(sockets)

    def _page_of_metrics(self, undo: contextlib.ExitStack) -> list[tuple[Bound, MetricsSite]]:
        """Return the metrics page and its socket; nothing if it is off. Raises PortError, ConfigError, MissingExtra."""
        options, parts = self._runtime.options, self._parts
        if not options.shows_metrics:
            return []
        require("metricsExporterType=PROM", "metrics")
        from twisted_mq.broker.metrics.site import metrics_site

        gate = parts.state.store.gate
        site = metrics_site(parts.controller, self.factory, parts.registration, gate, lambda: self.grpc)
        host, bind = options.metrics_prom_exporter_host or parts.controller.advertised_ip, self._runtime.machine.bind
        bound = undo.enter_context(bind(host, options.metrics_prom_exporter_port, "metricsPromExporterPort"))
        self.metrics_port = bound.getsockname()[1]
        self.log.info("metrics at http://{host}:{port}/metrics", host=host, port=self.metrics_port)
        return [(bound, site)]

    def _listen_grpc(self, undo: contextlib.ExitStack) -> None:
        """Serve gRPC clients (5.x) if the settings say so. Raises PortError, ConfigError, MissingExtra."""
        options = self._runtime.options
        if options.grpc_server_port >= 0 and not options.is_slave:
            grpc = self.serve_grpc(options.grpc_server_port)
            undo.callback(grpc.stop)
            undo.callback(grpc.stop_listening)

    def serve_grpc(self, port: int) -> GrpcPort:
        """Serve gRPC clients on this port; 0 takes a free one. Raises PortError, ConfigError, MissingExtra."""
        require("grpcServerPort", "proxy")
        from twisted_mq.broker.grpc_port import grpc_port

        parts, runtime = self._parts, self._runtime
        with runtime.machine.bind(runtime.options.bind_address, port, "grpcServerPort") as bound:
            number = bound.getsockname()[1]
            grpc = grpc_port(parts.controller, self.served, parts.access, self._most_connections, number)
            grpc.listen(interfaces.IReactorSocket(runtime.reactor), bound)
        self.grpc = grpc
        return grpc

    def _listen_fast(self, sockets: interfaces.IReactorSocket) -> None:
        """Listen on the VIP port, listenPort - 2, which older clients prefer for sends."""
        try:
            fast = self._runtime.machine.bind(self._runtime.options.bind_address, self.port - 2)
            self.listening.append(listen(sockets, fast, self.factory))
        except PortError as error:
            self.log.warn("no fast port, clients with vipChannelEnabled use the main one: {e}", e=error)

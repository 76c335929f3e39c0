"""Starts and stops one broker on a reactor: store, tables, listening ports, registration, periodic work.

A start takes the port, locks and recovers the store, loads the tables, listens, and registers. A stop goes backwards:
it unregisters, stops listening, answers the waiting pulls, closes the clients, saves the tables, and closes the store.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

from twisted.application import service
from twisted.internet import defer, interfaces

from twisted_mq.access.server_access import ServerAccess
from twisted_mq.broker.acting.pre_online import PreOnline
from twisted_mq.broker.advertised_address import address_warning
from twisted_mq.broker.broker_parts import BrokerParts
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.machine import Machine
from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.broker.order_membership import OrderMembership
from twisted_mq.broker.periodic_work import PeriodicWork
from twisted_mq.broker.ports import BrokerPorts
from twisted_mq.broker.registration import Registration
from twisted_mq.broker.runtime import BrokerRuntime
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.stopping import Step, stop_all, take

if TYPE_CHECKING:
    from twisted_mq.proxy.port import GrpcPort
    from twisted_mq.remoting.channel import Processor

UNREGISTER_SECONDS = 1.0
"""The time a stop waits for name servers to take the broker out of their routes."""

CLOSE_SECONDS = 60.0
"""The time a stop waits for the store's close. The process does not end before that thread does."""


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
        self.started: defer.Deferred[BrokerService] = defer.Deferred()
        self.controller: BrokerController
        self.registration: Registration
        self._runtime = BrokerRuntime(options, reactor, machine or Machine())
        self._access = access
        self._ports = BrokerPorts(self._runtime)
        self._parts: BrokerParts
        self._work = PeriodicWork(self._runtime)
        self._order = OrderMembership(self._runtime)
        self._going_online: defer.Deferred[None] | None = None

    @property
    def port(self) -> int:
        return self._ports.port

    @property
    def metrics_port(self) -> int:
        return self._ports.metrics_port

    @property
    def grpc_port(self) -> int:
        """Return the port for gRPC clients; 0 if they are not served."""
        return 0 if self._ports.grpc is None else self._ports.grpc.port

    @property
    def processors(self) -> dict[int, Processor]:
        """Return the processors of the broker's requests by code; a test may replace some."""
        return self._ports.served.processors

    def now_ms(self) -> int:
        """Return the time of the reactor's clock, which timers follow, in ms."""
        return self._runtime.now_ms()

    def serve_grpc(self, port: int) -> GrpcPort:
        """Serve gRPC clients on this port; 0 takes a free one. Raises PortError, ConfigError, MissingExtra."""
        return self._ports.serve_grpc(port)

    # start

    def startService(self) -> None:
        """Open everything. Raises PortError, StoreError or OSError if that fails, and then leaves nothing open."""
        super().startService()
        ports = self._ports
        with contextlib.ExitStack() as undo:
            ports.bind(undo)
            parts = BrokerParts(self._runtime, undo, ports.port, ports.ha_port, self._access, self._topics_changed)
            self._parts, self.controller, self.registration = parts, parts.controller, parts.registration
            asks = self._pre_online() if self.options.asks_slaves_first else None
            ports.serve(parts)
            self._work.push_metrics(parts.controller, ports)
            ports.listen(undo)
            undo.pop_all()
        self._say_where()
        if asks is None:
            self._register()
        self._work.start(parts, ports, self._order, self._name_servers_changed, waits=asks is not None)
        if asks is not None:
            self._going_online = defer.ensureDeferred(self._go_online(asks))
        self._order.look(parts, None)

    def _pre_online(self) -> PreOnline:
        """Hold the registration back until the slaves were asked."""
        self.registration.held_back = True
        invoke = self._parts.client.invoke
        return PreOnline(self.controller, MemberGroup(self.options, self._runtime.name_servers, invoke), invoke)

    async def _go_online(self, asks: PreOnline) -> None:
        """Ask the slaves, then deliver, check and register."""
        try:
            await asks.ask()
        except defer.CancelledError:
            return  # the broker stops
        self._work.start_deliveries(self.controller)
        self.registration.held_back = False
        self._register()

    def _register(self) -> None:
        first = self.registration.register()
        first.addCallbacks(lambda _: self.started.callback(self), self.started.errback)

    def _say_where(self) -> None:
        controller, options, name_servers = self.controller, self.options, self._runtime.name_servers
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

    # while it runs

    def _topics_changed(self, changed: list[TopicConfig] | None) -> None:
        if self.running and self._work.jobs:
            self.registration.register(changed)
            self._order.look(self._parts, changed)

    def _name_servers_changed(self) -> None:
        if self.running:
            self._parts.asked.addresses = tuple(self._runtime.name_servers)
            self.registration.register()

    # stop

    def stopService(self) -> defer.Deferred[None]:
        """Close everything. Fires when the store is closed. A second call does nothing."""
        super().stopService()
        listening, self._ports.listening = self._ports.listening, []
        if not listening:
            return defer.succeed(None)
        return defer.ensureDeferred(self._stop(self._steps_of_stop(listening)))

    async def _stop(self, steps: list[Step]) -> None:
        """Run the steps, then close the store whatever the steps do. Delivery progress is written after the log's copies."""
        await stop_all(self._runtime.reactor, steps)
        closed = await take(self._runtime.reactor, "close of the store", self._close_store, CLOSE_SECONDS)
        if not closed:
            self.log.error("store not closed, the next start recovers it")
        waiting = self.controller.waiting
        await stop_all(self._runtime.reactor, [("end of waiting messages", waiting.save if closed else waiting.close)])
        self.log.info("broker {name} stopped", name=self.options.broker_name)

    def _steps_of_stop(self, listening: list[interfaces.IListeningPort]) -> list[Step]:
        """Return the steps in their order."""
        controller, work, going, grpc = self.controller, self._work, self._going_online, self._ports.grpc
        return [
            *([("end of questions to slaves", going.cancel)] if going is not None else ()),
            ("end of ordered queues", self._order.leave),
            *[("end of a periodic job", job.stop) for job in work.jobs],
            *([("end of retention", work.retention.stop)] if work.retention is not None else ()),
            ("unregistration at the name servers", self._say_goodbye),
            *[("close of a port", port.stopListening) for port in listening],
            *([("close of the gRPC port", grpc.stop_listening)] if grpc is not None else ()),
            *([("end of gRPC calls", grpc.stop)] if grpc is not None else ()),
            *([("end of pushed metrics", work.pusher.close)] if work.pusher is not None else ()),
            *([("end of duties in the master's place", work.duties.stop)] if work.duties is not None else ()),
            ("end of deliveries", controller.waiting.stop),
            ("end of transactions", controller.transactions.stop),
            ("end of sliced work", controller.turns.stop),
            ("end of pop", controller.pop.stop),
            ("dispatch", controller.dispatch),
            ("end of replication", controller.ha.stop),
            ("answers to waiting pulls", functools.partial(controller.polling.answer_all, WaitingKind.PULL)),
            ("close of connections", self._ports.factory.close_all),
            ("close of connections to others", self._parts.client.close),
            ("save of consumer offsets", controller.offsets.save),
            ("save of ordered pops", controller.pop.orders.save),
            *[("save of a table", saver.stop) for saver in self._parts.state.savers],
            ("save of transaction metrics", controller.transactions.metrics.save),
            ("save of consumer filters", functools.partial(controller.filters.save, self._runtime.now_ms())),
        ]

    def _say_goodbye(self) -> defer.Deferred[list[bool] | None]:
        goodbye = self.registration.unregister().addTimeout(UNREGISTER_SECONDS, self._runtime.reactor)
        return goodbye.addErrback(
            lambda reason: self.log.info("not unregistered from name servers: {e}", e=reason.value)
        )

    def _close_store(self) -> defer.Deferred[None]:
        self.controller.close_begins()
        return self._runtime.in_thread(self._parts.state.store.close)


def make_broker(
    options: BrokerOptions, reactor: interfaces.IReactorTime, access: ServerAccess | None = None
) -> BrokerService:
    """Return a broker with these options on this reactor, which also provides threads and sockets."""
    return BrokerService(options, reactor, access=access)


def _whose_copies_count(options: BrokerOptions) -> str:
    if not options.waits_for_slaves or options.ha_allowed_slaves:
        return ""
    if options.counts_registered_slaves:
        return "; copies count only of hosts that are registered as slaves of this broker"
    return ", and what it acknowledges counts as a copy"

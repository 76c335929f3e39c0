"""The connections, routes and heartbeats that producers and consumers of a client share (Apache: MQClientInstance).

A client is open while it has members: the first to join starts its timers and connections, the last to leave ends them.
A client that was made before a fork and is used after it raises ForkedProcess.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.core.argument_checks import check_class, check_reactor_argument
from twisted_mq.client.core.broker_calls import BrokerCalls
from twisted_mq.client.core.client_id import client_id, local_ip, unique_instance_name
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.client_processor import ClientProcessor
from twisted_mq.client.core.errors import (
    EXPECTED_ERRORS,
    ClientOptionIllegal,
    ClientStateError,
    ForkedProcess,
    NameServerUnreachable,
    RemotingError,
    TopicNotFound,
)
from twisted_mq.client.core.group_members import ConsumerMember, Member
from twisted_mq.client.core.heartbeats import Heartbeats
from twisted_mq.client.core.idle_reactor import check_reactor
from twisted_mq.client.core.outages import NAME_SERVERS, Outages
from twisted_mq.client.core.request_and_reply import PendingRequests
from twisted_mq.client.core.requirements import Require, require_reached
from twisted_mq.client.core.together import together
from twisted_mq.clocks import time_of_day, wall_ms
from twisted_mq.config.errors import ConfigError
from twisted_mq.encryption.clients import encrypted
from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.bodies import TopicRouteData
from twisted_mq.protocol.layouts.host import pack_ip
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.protocol.messages.subscription import is_tag_type
from twisted_mq.protocol.wire.sent_answers import SENT_ANSWERS
from twisted_mq.protocol.wire.shapes import Shapes
from twisted_mq.remoting.backoff import Backoff
from twisted_mq.remoting.client import Connect, RemotingClient, tcp_endpoint
from twisted_mq.routing.address_server import AddressServer, address_server_url, http_get
from twisted_mq.routing.name_servers import NameServers, given_addresses
from twisted_mq.routing.route_cache import RouteCache

MemberT = TypeVar("MemberT", bound=Member)
EndT = TypeVar("EndT")


class MQClient:
    """A client of a cluster. Give it to several producers and consumers to share its connections."""

    log = Logger()

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        namesrv: str | Sequence[str] | None = None,
        *,
        options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
        connect: Connect | None = None,
        rng: random.Random | None = None,
        get_pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Create a client. Without `namesrv`, it uses the environment's NAMESRV_ADDR, else the options' address server.

        Raises ClientOptionIllegal for a bad address, or if no source has an address.
        """
        check_reactor_argument(reactor)
        check_class(options, ClientOptions, "options")
        self.reactor = reactor
        self.wall_ms = wall_ms(reactor)
        self.options = options or ClientOptions()
        domain = self.options.address_server_domain
        self._addresses = given_addresses(namesrv, os.environ, elsewhere=bool(domain))
        self.rng = rng or random.Random()
        self.ip = ip or local_ip()
        self.client_id = client_id(self.ip, instance_name or unique_instance_name(), self.options.unit_name)
        self.get_pid = get_pid
        self.pid = get_pid()
        self._connect = connect
        self._first = self.rng.randrange(max(1, len(self._addresses)))
        self.unique_keys = UniqueKeyMaker(pack_ip(self.ip), self.pid, self.wall_ms, self.rng.getrandbits(32))
        self._producers: dict[str, Member] = {}
        self._consumers: dict[str, ConsumerMember] = {}
        self._timers: list[PeriodicJob] = []
        self._running: dict[defer.Deferred[object], None] = {}
        self.requests = PendingRequests(reactor)
        self.outages = Outages(
            reactor,
            self._look,
            self.options.poll_name_server_seconds,
        )
        self._open()

    def _open(self) -> None:
        options = self.options
        self.remoting = RemotingClient(
            self.reactor,
            connect=self._encrypted(),
            connect_timeout_seconds=options.connect_timeout_seconds,
            credentials=options.credentials,
            namespace=options.namespace_v2,
            channel_made=self._connected,
            not_reached=lambda address, reason: self.outages.refused(address, reason),
            backoff=Backoff(self.rng),
            shapes=Shapes(SENT_ANSWERS),
        )
        self.remoting.processors.update(ClientProcessor(self._consumers, self._producers, self.requests).table())
        self.name_servers = NameServers(
            self.remoting, self._addresses, first=self._first, timeout_seconds=options.api_timeout_seconds,
            address_server=self._address_server(),
        )  # fmt: skip
        self.calls = BrokerCalls(self.remoting, options.api_timeout_seconds)
        self.routes = RouteCache(self.name_servers, self._route_changed)
        self._heartbeats = Heartbeats(
            self.client_id, self.calls, self.routes, self._producers, self._consumers,
            version_2=options.heartbeat_v2,
        )  # fmt: skip

    def _address_server(self) -> AddressServer | None:
        options = self.options
        if self._addresses or not options.address_server_domain:
            return None
        url = address_server_url(options.address_server_domain, options.address_server_subgroup, options.unit_name)
        return AddressServer(url, http_get(self.reactor, options.api_timeout_seconds))

    def _encrypted(self) -> Connect | None:
        """Return a connect that encrypts, if set. Raises ClientOptionIllegal for unreadable certificates, MissingExtra."""
        settings = self.options.tls
        if settings is None:
            return self._connect
        connect = self._connect or tcp_endpoint(self.reactor, self.options.connect_timeout_seconds)
        try:
            return encrypted(connect, settings, time_of_day(self.reactor)(), self.reactor)
        except ConfigError as error:
            raise ClientOptionIllegal(str(error)) from error

    def now_ms(self) -> int:
        """Return the monotonic time that timers follow, in ms."""
        return int(self.reactor.seconds() * 1000)

    def unique_key(self) -> str:
        """Return a new unique key for a message."""
        return self.unique_keys.make()

    def postpone(self, seconds: float) -> None:
        """Extend the timeouts of pending requests: no answer could be read for this long."""
        self.remoting.postpone(seconds)

    def check_process(self) -> None:
        """Raise ForkedProcess in a child of the process that made this client."""
        pid = self.get_pid()
        if pid != self.pid:
            raise ForkedProcess(self.pid, pid)

    # members

    async def join_producer(self, member: Member, require: Require | None = None) -> None:
        """Add a producer. Raises ClientStateError if its group already has one here, and errors of what `require` checks."""
        check_reactor(self.reactor)
        await self._unless_failed(require_reached(self, member.group, require))
        self._join(self._producers, member, "producer")
        self._run(self.heartbeat).addErrback(self._report)  # known brokers can send it requests from now on

    async def join_consumer(self, member: ConsumerMember, require: Require | None = None) -> None:
        """Add a consumer: fetch the routes of its topics and send a heartbeat with its group.

        Raises BrokerError if a broker cannot filter by a subscription, and errors of what `require` checks.
        """
        check_reactor(self.reactor)
        self.check_process()
        await self._unless_failed(require_reached(self, member.group, require, member.consumer_data()))
        await self._unless_failed(self._check_filters(member))
        self._join(self._consumers, member, "consumer")
        await self.update_routes()
        await self.heartbeat()

    async def _unless_failed(self, asking: Coroutine[defer.Deferred[object], object, object]) -> None:
        """Run a check before a member joins. A failure leaves no connection open."""
        try:
            await asking
        except Exception:
            await self._close_if_unused()
            raise

    async def _check_filters(self, member: ConsumerMember) -> None:
        """Check the expression of each topic with one of its brokers (Apache: checkClientInBroker).

        No heartbeat has named the member by then: Apache's broker could still count it after it left, and give it
        queues.
        """
        for subscription in member.consumer_data().subscription_data_set:
            if is_tag_type(subscription.expression_type):
                continue
            await self._update_route(subscription.topic)
            for address in self.routes.addresses_of(subscription.topic)[:1]:
                try:
                    await self.calls.check_client(address, self.client_id, member.group, subscription)
                except RemotingError as error:
                    self.log.warn("filter not checked: topic={topic} {error}", topic=subscription.topic, error=error)

    async def leave_producer(self, member: Member) -> None:
        """Remove a producer and unregister it from the brokers. Do nothing for a producer that is not here."""
        if self._producers.get(member.group) is member:
            del self._producers[member.group]
            await self._heartbeats.unregister(producer_group=member.group)
            await self._close_if_unused()

    async def leave_consumer(self, member: ConsumerMember) -> None:
        """Remove a consumer; the brokers notify the rest of its group. Do nothing for a consumer that is not here."""
        if self._consumers.get(member.group) is member:
            del self._consumers[member.group]
            await self._heartbeats.unregister(consumer_group=member.group)
            await self._close_if_unused()

    def _join(self, table: dict[str, MemberT], member: MemberT, kind: str) -> None:
        self.check_process()
        if member.group in table:
            raise ClientStateError(
                f"{kind} group {member.group} is already in use in this client; use that one, or create another MQClient for "
                "the second"
            )
        table[member.group] = member
        if not self._timers:
            self._start_timers()

    def _start_timers(self) -> None:
        options = self.options
        for seconds, work in (
            (options.poll_name_server_seconds, self.update_routes),
            (options.heartbeat_seconds, self.heartbeat),
            (options.persist_offsets_seconds, self.persist_offsets),
            (options.address_server_seconds, self.update_name_servers),
        ):
            name = f"{work.__name__} of {self.client_id}"
            self._timers.append(PeriodicJob(name, self.reactor, seconds, functools.partial(self._run, work)))

    def _run(self, work: Callable[[], Coroutine[defer.Deferred[object], object, object]]) -> defer.Deferred[object]:
        """Start work that is cancelled when the client closes; its Deferred then still fires. Fails with unexpected errors."""
        running = defer.Deferred.fromCoroutine(work())
        self._running[running] = None
        running.addBoth(self._ended, running)
        return running

    def _ended(self, result: EndT, running: defer.Deferred[object]) -> EndT | None:
        self._running.pop(running, None)
        cancelled = isinstance(result, failure.Failure) and result.check(defer.CancelledError)
        return None if cancelled else result

    def _report(self, reason: failure.Failure) -> None:
        self.log.failure("client task failed: client={client}", reason, client=self.client_id)

    async def _close_if_unused(self) -> None:
        if self._producers or self._consumers:
            return
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.stop()
        for running in list(self._running):
            running.cancel()
        self.outages.stop()
        remoting = self.remoting
        self._open()  # a member may join again later
        await remoting.close()

    # periodic work

    async def update_name_servers(self) -> None:
        """Ask the address server, if one is set. A failure is logged and keeps the known addresses."""
        try:
            await self.name_servers.update()
        except EXPECTED_ERRORS as error:
            self.log.warn("name servers not updated: {error}", error=error)

    async def update_routes(self) -> None:
        """Fetch the routes of all members' topics again. A failure is logged and keeps the known routes."""
        topics = {topic for member in self._members() for topic in member.topics()}
        await together(self._update_route(topic) for topic in sorted(topics))

    def _look(self) -> None:
        self._run(self._look_for_servers).addErrback(self._report)

    async def _look_for_servers(self) -> None:
        """Ask for routes, then send heartbeats to the brokers that were away: a broker that accepts one is back."""
        await self.update_routes()
        for broker in [one for one in self.routes.brokers() if self.outages.is_on(one.address)]:
            if await self._heartbeats.send_to(broker) and self.outages.end(broker.address):
                for consumer in list(self._consumers.values()):
                    consumer.members_changed()

    async def _update_route(self, topic: str) -> None:
        try:
            await self.routes.update(topic)
            self.outages.end(NAME_SERVERS)
        except TopicNotFound:
            self.log.debug("topic has no route: topic={topic}", topic=topic)
        except NameServerUnreachable as error:
            if self._timers:
                self.outages.begin(NAME_SERVERS, str(error))
        except EXPECTED_ERRORS as error:
            self.log.warn("route not updated: topic={topic} {error}", topic=topic, error=error)

    async def heartbeat(self, *, anew: bool = False) -> None:
        """Send all members to all known brokers; producers alone only to the masters. `anew`: subscriptions are new."""
        await self._heartbeats.send(anew=anew)

    async def persist_offsets(self) -> None:
        """Have all consumers write their offsets to their stores."""
        await together(member.persist_offsets() for member in list(self._consumers.values()))

    def _members(self) -> list[Member]:
        return [*self._producers.values(), *self._consumers.values()]

    def _connected(self, address: str) -> None:
        """Begin a new connection with a heartbeat: the broker forgot this client when the previous connection was lost."""
        if self.outages.is_on(address):
            self._look()
        for broker in self._heartbeats.connected(address):
            if self._timers:
                self._run(functools.partial(self._heartbeats.send_to, broker))

    def _route_changed(self, topic: str, route: TopicRouteData) -> None:
        if self._timers:
            self.outages.routes_changed(self.routes.brokers())
        if self._timers and self._heartbeats.are_due():
            self._run(self.heartbeat)  # before any other request to a new broker
        for member in self._members():
            member.route_changed(topic, route)

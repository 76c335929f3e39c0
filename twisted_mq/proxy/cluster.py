"""Brokers of cluster mode: those that the name servers know, over the network. Apache's brokers are served alike."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.bodies import (
    HeartbeatData,
    ProducerData,
    SubscriptionGroupConfig,
    TopicConfigAndQueueMapping,
    TopicRouteData,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import GetSubscriptionGroupConfigRequestHeader, GetTopicConfigRequestHeader
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.proxy.brokers import CALL_SECONDS, OwnBroker
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.fresh import Fresh
from twisted_mq.proxy.registrations import groups_of
from twisted_mq.proxy.requests import make_request
from twisted_mq.proxy.rights import WantedRights, of_client
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.proxy.users import Signatures
from twisted_mq.remoting.backoff import Backoff
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.remoting.client import Connect, RemotingClient
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.routing.errors import TopicNotFound
from twisted_mq.routing.name_servers import NameServers
from twisted_mq.routing.route_cache import RouteCache

HEARTBEAT_SECONDS = 20.0
"""Between the proxy's own heartbeats for topics of transactions (Apache: transactionHeartbeatPeriodSecond)."""
GROUPS_OF_HEARTBEAT = 100
PROXY_CLIENT = "rmq-proxy-producer-client"
TYPE_ATTRIBUTE = "message.type"
NOT_ENDED = str(int(MessageSysFlag.TRANSACTION_NOT_TYPE))


class ClusterBrokers:
    """The brokers of some name servers. `check_transaction` takes the brokers' checks (39); False if no client can answer."""

    log = Logger()
    own: OwnBroker | None = None

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        name_servers: list[str],
        cluster_name: str = "DefaultCluster",
        signatures: Signatures | None = None,
        connect: Connect | None = None,
    ) -> None:
        """`signatures` is None if users are not authenticated. The brokers of the cluster are asked about users."""
        self._clock = reactor
        self._signatures = signatures
        completes = None if signatures is None else signatures.complete
        self._remoting = RemotingClient(reactor, connect=connect, backoff=Backoff(random.Random()), completes=completes)
        if signatures is not None:
            signatures.ask = lambda command: defer.ensureDeferred(self._ask_one(cluster_name, command))
        self._remoting.processors[RequestCode.CHECK_TRANSACTION_STATE] = self._checked
        self._routes = RouteCache(NameServers(self._remoting, name_servers), lambda topic, route: None)
        self._fresh: Fresh[Any] = Fresh(reactor)
        self._transactional: set[str] = set()
        self._job: PeriodicJob | None = None
        self.check_transaction: Callable[[RemotingCommand], bool] = lambda command: False

    def start(self) -> None:
        """Begin periodic work."""
        self._job = PeriodicJob("heartbeat of the proxy", self._clock, HEARTBEAT_SECONDS, self.heartbeat)

    def stop(self) -> defer.Deferred[None]:
        """Close all connections."""
        job, self._job = self._job, None
        if job is not None:
            job.stop()
        return self._remoting.close()

    # kinds of topics and groups

    def route(self, topic: str) -> defer.Deferred[TopicRouteData]:
        return self._fresh.get(("route", topic), functools.partial(self._routes.update, topic))

    def serves(self, broker_name: str) -> bool:
        return True

    def endpoint_of(self, broker_name: str, address: str) -> tuple[str, int] | None:
        """Return where the clients found this proxy."""
        return None

    def message_type(self, topic: str) -> defer.Deferred[str]:
        if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            return defer.succeed("MIXED")
        return self._fresh.get(("type", topic), lambda: defer.ensureDeferred(self._message_type(topic)))

    async def _message_type(self, topic: str) -> str:
        header = GetTopicConfigRequestHeader(topic=topic, lo=True)
        request = make_request(RequestCode.GET_TOPIC_CONFIG, header)
        answer = await self._ask_one(topic, request)
        if answer.code != ResponseCode.SUCCESS:
            return "NORMAL"
        config = decode_body(TopicConfigAndQueueMapping, answer.body)
        return (config.attributes or {}).get(TYPE_ATTRIBUTE, "NORMAL")

    def group(self, group: str, topic: str) -> defer.Deferred[SubscriptionGroupConfig | None]:
        if not topic:
            return defer.succeed(None)
        return self._fresh.get(("group", group), lambda: defer.ensureDeferred(self._group(group, topic)))

    async def _group(self, group: str, topic: str) -> SubscriptionGroupConfig | None:
        header = GetSubscriptionGroupConfigRequestHeader(group=group)
        request = make_request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header)
        answer = await self._ask_one(topic, request)
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            return None
        return decode_body(SubscriptionGroupConfig, answer.body)

    async def _ask_one(self, topic: str, command: RemotingCommand) -> RemotingCommand:
        """Return the answer of a broker of the topic. Raises TopicNotFound, RemotingError."""
        await self.route(topic)
        addresses = self._routes.addresses_of(topic)
        if not addresses:
            raise TopicNotFound(topic, [])
        return await self._remoting.invoke(addresses[0], command, CALL_SECONDS)

    # requests

    def ask(
        self,
        client: GrpcClient,
        broker_name: str,
        command: RemotingCommand,
        seconds: float = CALL_SECONDS,
        unwanted: Callable[[RemotingCommand], None] | None = None,
    ) -> defer.Deferred[RemotingCommand]:
        """See `Brokers.ask`. Cancelled, the request goes on: its answer is `unwanted`."""
        address = self._routes.master_now(broker_name)
        if address is None:
            return defer.fail(RemotingConnectError(f"no route has a master of broker {broker_name}"))
        signatures = self._signatures
        if signatures is not None and client.access_key is not None:
            signatures.sign_as(client.access_key, command)
        if _has_no_answer(command):
            return self._remoting.invoke_one_way(address, command).addCallback(lambda _: command.answer())
        asked = self._remoting.invoke(address, command, seconds)
        waiting: defer.Deferred[RemotingCommand] = defer.Deferred(lambda _: None)

        def tell(result: RemotingCommand | failure.Failure) -> None:
            if not waiting.called:
                waiting.callback(result)
            elif unwanted is not None and isinstance(result, RemotingCommand):
                unwanted(result)

        asked.addBoth(tell)
        asked.addErrback(lambda reason: self.log.warn("message of a late answer not returned: {e}", e=reason.value))
        return waiting if signatures is None else waiting.addCallback(_permitted)

    def permit(self, client: GrpcClient, wanted: Sequence[WantedRights]) -> defer.Deferred[None]:
        signatures = self._signatures
        return defer.succeed(None) if signatures is None else defer.ensureDeferred(signatures.permit(client, wanted))

    # transactions: brokers ask producers that they know

    def register(self, client: GrpcClient) -> defer.Deferred[None]:
        return defer.ensureDeferred(self._register(client))

    async def _register(self, client: GrpcClient) -> None:
        await self.permit(client, of_client(client))
        client.groups = producers, _ = groups_of(client)
        new = []
        for topic in producers - self._transactional:
            try:
                if await self.message_type(topic) == "TRANSACTION":
                    new.append(topic)
            except TopicNotFound:
                continue
        if new:
            self._transactional.update(new)
            await self.heartbeat()

    def unregister(self, client: GrpcClient) -> None:
        """Remove the client, but leave its topics registered: another producer may answer for them."""

    async def heartbeat(self) -> None:
        """Register a producer at the brokers of topics with transactions, so that they can ask it. A failure is tried
        again at the next turn.
        """
        topics = sorted(self._transactional)
        for start in range(0, len(topics), GROUPS_OF_HEARTBEAT):
            some = topics[start : start + GROUPS_OF_HEARTBEAT]
            data = HeartbeatData(client_id=PROXY_CLIENT, producer_data_set=[ProducerData(one) for one in some])
            body = encode_body(data)
            for address in sorted({address for topic in some for address in self._routes.addresses_of(topic)}):
                command = RemotingCommand.request(RequestCode.HEART_BEAT, None, body)
                asked = self._remoting.invoke(address, command, CALL_SECONDS)
                await asked.addErrback(
                    lambda reason: self.log.warn("no heartbeat for transactions: {e}", e=reason.value)
                )

    def _checked(self, channel: Channel, command: RemotingCommand) -> Answer:
        if not self.check_transaction(command):
            self.log.warn("transaction not checked, no producer of its topic is connected: peer={p}", p=channel.address)
        return None


def _has_no_answer(command: RemotingCommand) -> bool:
    """Return whether brokers answer the request at all. They do not if a transaction stays open (Apache's and ours)."""
    return command.code == RequestCode.END_TRANSACTION and command.ext_fields.get("commitOrRollback") == NOT_ENDED


def _permitted(answer: RemotingCommand) -> RemotingCommand:
    """Return the answer. Raises ProxyError if access control refused the request."""
    if answer.code == ResponseCode.NO_PERMISSION:
        raise ProxyError("UNAUTHORIZED", answer.remark or "")
    return answer

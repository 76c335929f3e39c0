"""The base class of `Admin`: its start and stop, and the decorator of its methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from twisted_mq.admin.calls import AdminCalls, NoNameServer
from twisted_mq.admin.errors import AdminError
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.requirements import Require, require_reached
from twisted_mq.protocol.bodies import ClusterInfo, TopicRouteData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.routing.errors import NameServerUnreachable, TopicNotFound

P = ParamSpec("P")
R = TypeVar("R")
MemberT = TypeVar("MemberT", bound="AdminMember")


def answers(
    method: Callable[Concatenate[MemberT, P], Coroutine[Deferred[Any], Any, R]],
) -> Callable[Concatenate[MemberT, P], Deferred[R]]:
    """Turn a coroutine method into one that returns a Deferred."""

    @functools.wraps(method)
    def call(self: MemberT, /, *args: P.args, **options: P.kwargs) -> Deferred[R]:
        return Deferred.fromCoroutine(_answer(method(self, *args, **options)))

    return call


async def _answer(work: Coroutine[Deferred[Any], Any, R]) -> R:
    try:
        return await work
    except NoNameServer as error:
        raise NameServerUnreachable(error.failures) from error


class AdminMember:
    """Connections to one cluster, from `start` to `stop`."""

    def __init__(
        self,
        reactor: IReactorTime,
        namesrv: str | Sequence[str] | None = None,
        *,
        options: ClientOptions | None = None,
    ) -> None:
        """Take the name servers' addresses; None reads them from NAMESRV_ADDR. Raises ClientOptionIllegal for a bad address.

        Nothing is connected before the first request.
        """
        self._reactor = reactor
        self._make = functools.partial(MQClient, reactor, namesrv, options=options)
        self._client = self._make()
        self._started: AdminCalls | None = None

    def start(self, *, require: Require | None = None) -> Deferred[None]:
        """Start. Raises NameServerUnreachable if an address server is used and does not answer.

        With `require`, a name server and a broker must answer; else raises NameServerUnreachable or BrokersUnreachable.
        """
        return Deferred.fromCoroutine(self._start(require))

    async def _start(self, require: Require | None) -> None:
        if self._started is not None:
            raise ClientStateError("this Admin is already started")
        client = self._client
        client.check_process()
        if not client.name_servers.addresses:
            await client.name_servers.update()
        try:
            await require_reached(client, "", require)
        except BaseException:
            self._client = self._make()
            await client.remoting.close()
            raise
        options = client.options
        self._started = AdminCalls(
            client=client.remoting,
            name_servers=list(client.name_servers.addresses),
            now_ms=client.wall_ms,
            sleep=lambda seconds: deferLater(self._reactor, seconds),
            reactor=self._reactor,
            credentials=options.credentials,
            client_options=lambda: options,
        )

    def stop(self) -> Deferred[None]:
        """Close the connections. Requests in progress fail. Harmless twice."""
        if self._started is None:
            return succeed(None)
        self._started = None
        remoting, self._client = self._client.remoting, self._make()
        return remoting.close()

    @property
    def _calls(self) -> AdminCalls:
        """The basic requests. Raises ClientStateError before `start` and after `stop`, ForkedProcess in a fork."""
        if self._started is None:
            raise ClientStateError("this Admin is not started: call start() first, or use it in a with block")
        self._client.check_process()
        return self._started

    async def _route(self, topic: str) -> TopicRouteData:
        """Return the route of a topic. Raises TopicNotFound."""
        try:
            return await self._calls.topic_route(topic)
        except BrokerError as error:
            if error.response_code == ResponseCode.TOPIC_NOT_EXIST:
                raise TopicNotFound(topic, self._calls.name_servers, "") from error
            raise

    async def _masters(self, cluster: str | None) -> dict[str, str]:
        """Return broker name -> address of each master of a cluster, sorted. Raises AdminError without a master."""
        info = await self._calls.cluster_info()
        name = _chosen_cluster(info, cluster)
        brokers = info.broker_addr_table or {}
        names = sorted((info.cluster_addr_table or {})[name])
        addresses = {one: (brokers[one].broker_addrs or {}).get(MASTER_ID) for one in names if one in brokers}
        masters = {one: address for one, address in addresses.items() if address}
        if not masters:
            raise AdminError(f"cluster {name} has no master", "start one; `mqadmin clusterList` lists the brokers")
        return masters


def _chosen_cluster(info: ClusterInfo, cluster: str | None) -> str:
    known = sorted(info.cluster_addr_table or {})
    if cluster is None and len(known) == 1:
        return known[0]
    if cluster is not None and cluster in known:
        return cluster
    problem = (
        f"this name server does not know cluster {cluster!r}"
        if cluster
        else f"this name server has {len(known)} clusters"
    )
    raise AdminError(problem, f"set cluster= to one of: {', '.join(known) or 'none is registered'}")

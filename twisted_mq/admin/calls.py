"""The basic requests of administration (Apache: DefaultMQAdminExtImpl, MQClientAPIImpl)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from twisted_mq.admin.errors import AdminError
from twisted_mq.protocol.bodies import (
    ClusterInfo,
    GroupList,
    KVTable,
    TopicList,
    TopicRouteData,
    TopicStatsTable,
    decode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    DeleteTopicFromNamesrvRequestHeader,
    DeleteTopicRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetRouteInfoRequestHeader,
    GetTopicStatsInfoRequestHeader,
    PutKVConfigRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from twisted_mq.protocol.names.routes import MASTER_ID, ORDER_TOPIC_CONFIG
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.routing.name_servers import NotANameServer, check_name_server

if TYPE_CHECKING:
    from twisted_mq.client.core.client_options import ClientOptions

TIMEOUT_SECONDS = 5.0
"""The timeout of a request (DefaultMQAdminExt: 5000 ms)."""

B = TypeVar("B")


@attrs.frozen(kw_only=True)
class AdminCalls:
    """The client that sends requests, the name servers and the time. `client` signs its requests, producers use `credentials`."""

    client: RemotingClient
    name_servers: list[str]
    now_ms: Callable[[], int]
    sleep: Callable[[float], Deferred[None]]
    reactor: IReactorTime | None = None
    """The reactor of producers; None in tests that send nothing."""
    credentials: Credentials | None = None
    client_options: Callable[[], ClientOptions] | None = None
    """Returns the options of producers, if they need more than an account, such as encryption."""

    async def invoke(
        self,
        address: str,
        code: RequestCode,
        header: attrs.AttrsInstance | None = None,
        body: bytes = b"",
        *,
        more_fields: Mapping[str, str] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> RemotingCommand:
        """Send a request and return its successful answer. Raises BrokerError for any other, RemotingError without an answer."""
        fields = {**({} if header is None else encode_header(header)), **(more_fields or {})}
        answer = await self.client.invoke(address, RemotingCommand.request(code, fields, body), timeout_seconds)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        return answer

    async def ask(
        self, address: str, body_class: type[B], code: RequestCode, header: attrs.AttrsInstance | None = None
    ) -> B:
        """Send a request and return the decoded body of its successful answer."""
        return decode_body(body_class, (await self.invoke(address, code, header)).body)

    async def tell_name_servers(self, code: RequestCode, header: attrs.AttrsInstance) -> None:
        """Send the same request to each name server."""
        for address in self.name_servers:
            await self.invoke(address, code, header)

    async def ask_name_server(self, code: RequestCode, header: attrs.AttrsInstance | None = None) -> RemotingCommand:
        """Return the answer of the first reachable name server. Raises NoNameServer."""
        failures: dict[str, RemotingConnectError] = {}
        for address in self.name_servers:
            try:
                return await self._ask_at(address, code, header)
            except RemotingConnectError as error:
                failures[address] = error
        raise NoNameServer(self.name_servers, failures) from next(iter(failures.values()), None)

    async def _ask_at(self, name_server: str, code: RequestCode, header: attrs.AttrsInstance | None) -> RemotingCommand:
        """Send a request to a name server. Raises NotANameServer if another kind of server answers."""
        try:
            return await self.invoke(name_server, code, header)
        except BrokerError as error:
            check_name_server(code, error.response_code)
            raise

    async def cluster_info(self) -> ClusterInfo:
        answer = await self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_body(ClusterInfo, answer.body)

    async def topic_list(self) -> list[str]:
        """Return all topics that any broker registered."""
        answer = await self.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return decode_body(TopicList, answer.body).topic_list or []

    async def topic_route(self, topic: str) -> TopicRouteData:
        header = GetRouteInfoRequestHeader(topic=topic)
        answer = await self.ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return decode_body(TopicRouteData, answer.body)

    async def topic_stats(self, address: str, topic: str) -> TopicStatsTable:
        answer = await self.invoke(
            address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader(topic=topic)
        )
        return decode_body(TopicStatsTable, answer.body)

    async def consumer_groups(self, address: str, topic: str) -> list[str]:
        """Return the groups that consume a topic at one broker."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
        answer = await self.invoke(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)
        return decode_body(GroupList, answer.body).group_list or []

    async def broker_runtime(self, address: str) -> dict[str, str]:
        """Return a broker's runtime metrics, by name."""
        answer = await self.invoke(address, RequestCode.GET_BROKER_RUNTIME_INFO)
        return dict(decode_body(KVTable, answer.body).table or {})

    async def delete_topic(self, address: str, topic: str) -> None:
        await self.invoke(address, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic=topic))

    async def delete_route(self, name_server: str, cluster_name: str, topic: str) -> None:
        header = DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster_name)
        await self.invoke(name_server, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    async def order_setting(self, topic: str) -> str | None:
        """Return the order setting of a topic; None if it is not set."""
        header = GetKVConfigRequestHeader(namespace=ORDER_TOPIC_CONFIG, key=topic)
        try:
            answer = await self.ask_name_server(RequestCode.GET_KV_CONFIG, header)
        except BrokerError as error:
            if error.response_code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return decode_header(GetKVConfigResponseHeader, answer).value

    async def put_order_setting(self, topic: str, value: str) -> None:
        """Store the order setting at every name server."""
        header = PutKVConfigRequestHeader(namespace=ORDER_TOPIC_CONFIG, key=topic, value=value)
        await self.tell_name_servers(RequestCode.PUT_KV_CONFIG, header)


class NoNameServer(AdminError):
    """Raised when no name server can be reached."""

    def __init__(self, addresses: list[str], failures: Mapping[str, RemotingConnectError]) -> None:
        others = [
            f"{address}: {failure}" for address, failure in failures.items() if isinstance(failure, NotANameServer)
        ]
        problem = "; ".join(others) or f"no name server answers at {', '.join(addresses)}"
        super().__init__(problem, "start one with `mq up`, or use another address with -n")
        self.failures = {address: str(failure) for address, failure in failures.items()}


def select_address(addresses: dict[int, str] | None) -> str | None:
    """Return the master's address, else another of the broker, None without any (BrokerData.selectBrokerAddr)."""
    if not addresses:
        return None
    return addresses.get(MASTER_ID) or next(iter(addresses.values()))


def brokers(cluster: ClusterInfo, cluster_names: list[str]) -> Iterator[tuple[str, str, int, str]]:
    """Yield cluster, broker name, broker id and address of every broker, sorted by name and id inside a cluster."""
    for cluster_name in cluster_names:
        for broker_name in sorted((cluster.cluster_addr_table or {}).get(cluster_name, ())):
            data = (cluster.broker_addr_table or {}).get(broker_name)
            if data is not None:
                for broker_id, address in sorted((data.broker_addrs or {}).items()):
                    yield cluster_name, broker_name, broker_id, address

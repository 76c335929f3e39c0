"""The requests behind the subcommands (Apache: DefaultMQAdminExtImpl, MQClientAPIImpl, CommandUtil)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_format import hash_order
from twisted_mq.cli.admin.tables import Table
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import json_line
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
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.errors import RemotingConnectError

TIMEOUT_SECONDS = 5.0
"""What an answer may take (DefaultMQAdminExt: 5000 ms)."""

B = TypeVar("B")


class ClusterUnknown(CliError):
    """No such cluster at the name server."""

    def __init__(self, cluster_name: str, known: list[str]) -> None:
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"no cluster {cluster_name!r} at this name server", f"it knows: {names}")


@attrs.frozen
class AdminContext:
    """What a subcommand works with: connections, where output goes, and time."""

    client: RemotingClient
    name_servers: list[str]
    echo: Callable[[str], None]
    warn: Callable[[str], None]
    now_ms: Callable[[], int]
    sleep: Callable[[float], Deferred[None]]
    reactor: IReactorTime | None = None
    """What producers run on; None in tests that send nothing."""
    credentials: Credentials | None = None
    """What producers sign with; `client` has its own."""
    as_json: bool = False
    """With --json: `say` and `row` print one JSON object a line, and text that has no value is left out."""

    # output

    def say(self, text: str | None, /, **value: Json) -> None:
        """A line of text, or the value where JSON is wanted; None and no value stand for nothing to print."""
        if not self.as_json and text is not None:
            self.echo(text)
        elif self.as_json and value:
            self.echo(json_line(value).rstrip("\n"))

    def say_value(self, text: str, value: Mapping[str, Json]) -> None:
        """The same, of a value whose members have any names."""
        self.echo(json_line(value).rstrip("\n") if self.as_json else text)

    def row(self, table: Table, *values: Json) -> None:
        """A row of a table."""
        self.say_value(table.line(values), table.value(values))

    # requests

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
        """A successful answer. Raises BrokerError for any other, RemotingError where none came."""
        fields = {**({} if header is None else encode_header(header)), **(more_fields or {})}
        answer = await self.client.invoke(address, RemotingCommand.request(code, fields, body), timeout_seconds)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        return answer

    async def ask(
        self, address: str, body_class: type[B], code: RequestCode, header: attrs.AttrsInstance | None = None
    ) -> B:
        """The body of a successful answer."""
        return decode_body(body_class, (await self.invoke(address, code, header)).body)

    async def tell_name_servers(self, code: RequestCode, header: attrs.AttrsInstance) -> None:
        """The same request to each name server."""
        for address in self.name_servers:
            await self.invoke(address, code, header)

    async def ask_name_server(self, code: RequestCode, header: attrs.AttrsInstance | None = None) -> RemotingCommand:
        """The answer of the first name server that can be reached."""
        failure: RemotingConnectError | None = None
        for address in self.name_servers:
            try:
                return await self.invoke(address, code, header)
            except RemotingConnectError as error:
                failure = failure or error
        addresses = ", ".join(self.name_servers)
        raise CliError(f"no name server at {addresses}", "start one with `mq up`, or name another with -n") from failure

    async def cluster_info(self) -> ClusterInfo:
        answer = await self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_body(ClusterInfo, answer.body)

    async def topic_list(self) -> list[str]:
        """All topics that any broker registered, in the order in which Apache's tool prints them."""
        answer = await self.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return hash_order(decode_body(TopicList, answer.body).topic_list or ())

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
        """Groups that consume a topic at one broker."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
        answer = await self.invoke(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)
        return hash_order(decode_body(GroupList, answer.body).group_list or ())

    async def broker_runtime(self, address: str) -> dict[str, str]:
        """A broker's figures by name."""
        answer = await self.invoke(address, RequestCode.GET_BROKER_RUNTIME_INFO)
        return dict(decode_body(KVTable, answer.body).table or {})

    async def delete_topic(self, address: str, topic: str) -> None:
        await self.invoke(address, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic=topic))

    async def delete_route(self, name_server: str, cluster_name: str, topic: str) -> None:
        header = DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster_name)
        await self.invoke(name_server, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    async def order_setting(self, topic: str) -> str | None:
        """The order setting of a topic; None where it has none."""
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


def broker_names(cluster: ClusterInfo, cluster_name: str) -> list[str]:
    """The brokers of a cluster in Apache's order. Raises ClusterUnknown."""
    table = cluster.cluster_addr_table or {}
    if cluster_name not in table:
        raise ClusterUnknown(cluster_name, list(table))
    return hash_order(table[cluster_name])


def master_addresses(cluster: ClusterInfo, cluster_name: str) -> list[str]:
    """Addresses of a cluster's masters in Apache's order. Raises ClusterUnknown."""
    brokers = cluster.broker_addr_table or {}
    held = [brokers[name].broker_addrs for name in broker_names(cluster, cluster_name) if name in brokers]
    return hash_order(addresses[MASTER_ID] for addresses in held if addresses and MASTER_ID in addresses)


def select_address(addresses: dict[int, str] | None) -> str | None:
    """The master's address, or any other of that broker (BrokerData.selectBrokerAddr)."""
    if not addresses:
        return None
    return addresses.get(MASTER_ID) or next(iter(addresses.values()))


def all_addresses(cluster: ClusterInfo, cluster_name: str) -> list[str]:
    """Addresses of a cluster's brokers, slaves too. Raises ClusterUnknown."""
    brokers = cluster.broker_addr_table or {}
    held = [brokers[name].broker_addrs or {} for name in broker_names(cluster, cluster_name) if name in brokers]
    return hash_order(address for addresses in held for address in addresses.values())


async def chosen_masters(admin: AdminContext, line: CommandLine) -> list[str]:
    """The broker of -b, or the masters of the cluster of -c. Raises UsageError where neither is given."""
    if "b" in line:
        return [line.value("b")]
    return master_addresses(await admin.cluster_info(), cluster_of_line(line))


async def chosen_brokers(admin: AdminContext, line: CommandLine) -> list[str]:
    """The broker of -b, or all brokers of the cluster of -c. Raises UsageError where neither is given."""
    if "b" in line:
        return [line.value("b")]
    return all_addresses(await admin.cluster_info(), cluster_of_line(line))


def cluster_of_line(line: CommandLine) -> str:
    """The value of -c. Raises UsageError without it."""
    if "c" not in line:
        raise UsageError("Missing required option: [-b a broker's address, -c a cluster's name]")
    return line.value("c")

"""Checks that a start can require of the cluster: servers answer, topics exist, a group has one subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias, get_args

from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import ClientError, ClientOptionIllegal, NoRoute
from twisted_mq.protocol.bodies import ClusterInfo, ConsumerConnection, ConsumerData, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetConsumerConnectionListRequestHeader, GetConsumerListByGroupRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.routing.name_servers import NameServers
from twisted_mq.routing.route_cache import RouteCache

Require: TypeAlias = Literal["cluster", "topics"]
""""cluster" requires that a name server and a broker answer; "topics" also that each topic subscribed to exists.

For a consumer, both also require that the running members of its group have the same subscriptions.
"""


class BrokersUnreachable(NoRoute):
    """A name server answers, but no broker that it names does."""


class SubscriptionConflict(ClientError):
    """The running members of the group have other subscriptions: each would miss messages."""


class Asks(Protocol):
    """The part of an MQClient that the checks use."""

    name_servers: NameServers
    remoting: RemotingClient
    routes: RouteCache
    options: ClientOptions
    client_id: str


async def require_reached(
    client: Asks, group: str, require: Require | None, consumer: ConsumerData | None = None
) -> None:
    """Raise what is missing: NameServerUnreachable, BrokersUnreachable, TopicNotFound, SubscriptionConflict, AccessDenied.

    Raises BrokerError if a broker refuses to list the group's members, ClientOptionIllegal for an unknown `require`.
    """
    if require is None:
        return
    if require not in get_args(Require):
        raise ClientOptionIllegal(f'require: {require!r} is not valid; write "cluster" or "topics"')
    masters = await _masters(client)
    reached = await _reached(client, masters, group)
    if consumer is None:
        return
    topics = [one.topic for one in consumer.subscription_data_set if not one.topic.startswith(RETRY_PREFIX)]
    if require == "topics":
        for topic in topics:
            await client.routes.update(topic)
    for address in reached:
        await _check_subscriptions(client, address, consumer)


async def _masters(client: Asks) -> dict[str, str]:
    """Return address -> name of each master that the name server knows."""
    request = RemotingCommand.request(RequestCode.GET_BROKER_CLUSTER_INFO, {})
    cluster = await client.name_servers.ask(request, _cluster)
    brokers = (cluster.broker_addr_table or {}).items()
    masters = {one.broker_addrs[MASTER_ID]: name for name, one in brokers if MASTER_ID in (one.broker_addrs or {})}
    if not masters:
        servers = ";".join(client.name_servers.addresses)
        raise BrokersUnreachable(
            f"name server {servers} knows no master. Start a broker for it with mq up or twistd mqbroker"
        )
    return masters


def _cluster(answer: RemotingCommand) -> ClusterInfo:
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark or "")
    return decode_body(ClusterInfo, answer.body)


async def _reached(client: Asks, masters: dict[str, str], group: str) -> list[str]:
    """Return the addresses of the masters that answer, whatever they answer. Raises BrokersUnreachable."""
    request = RemotingCommand.request(
        RequestCode.GET_CONSUMER_LIST_BY_GROUP, encode_header(GetConsumerListByGroupRequestHeader(consumer_group=group))
    )
    reached, failures = [], {}
    for address, name in sorted(masters.items()):
        try:
            await client.remoting.invoke(address, request, client.options.api_timeout_seconds)
            reached.append(address)
        except RemotingError as error:
            failures[f"{name} at {address}"] = error
    if not reached:
        reasons = "; ".join(f"{broker}: {error}" for broker, error in failures.items())
        raise BrokersUnreachable(
            f"no broker answers ({reasons}). Check that it runs, and that this machine can reach the address that it "
            "registers (brokerIP1)"
        )
    return reached


async def _check_subscriptions(client: Asks, address: str, wanted: ConsumerData) -> None:
    """Raise SubscriptionConflict if the group's running members differ from this one."""
    header = GetConsumerConnectionListRequestHeader(consumer_group=wanted.group_name)
    request = RemotingCommand.request(RequestCode.GET_CONSUMER_CONNECTION_LIST, encode_header(header))
    answer = await client.remoting.invoke(address, request, client.options.api_timeout_seconds)
    if answer.code == ResponseCode.CONSUMER_NOT_ONLINE:
        return
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark or "")
    running = decode_body(ConsumerConnection, answer.body)
    if not {one.client_id for one in running.connection_set or ()} - {client.client_id}:
        return
    theirs = _texts((one.topic, one.expression_type, one.sub_string) for one in running.subscription_table.values())
    ours = _texts((one.topic, one.expression_type, one.sub_string) for one in wanted.subscription_data_set)
    if running.message_model is not None and running.message_model != wanted.message_model:
        theirs, ours = f"{running.message_model} {theirs}", f"{wanted.message_model} {ours}"
    if theirs != ours:
        raise SubscriptionConflict(
            f"group {wanted.group_name}: its running members subscribe to {theirs}, this one to {ours}. All members of a "
            "group need the same subscriptions: stop those members, or use another group"
        )


def _texts(subscriptions: Iterable[tuple[str, str, str]]) -> str:
    """Return topics and expressions in order, without the retry topic that each member has."""
    kept = sorted(one for one in subscriptions if not one[0].startswith(RETRY_PREFIX))
    return ", ".join(
        f"{topic} ({expression if kind == 'TAG' else f'{kind} {expression}'})" for topic, kind, expression in kept
    )

"""Requests for the state of a consumer group: its members, offsets and clients (Apache: DefaultMQAdminExtImpl)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls, select_address
from twisted_mq.protocol.bodies import (
    ConsumerConnection,
    ConsumerRunningInfo,
    ConsumeStats,
    MessageQueue,
    OffsetWrapper,
    TopicRouteData,
)
from twisted_mq.protocol.bodies.types import BROADCASTING
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumeStatsRequestHeader,
)
from twisted_mq.protocol.names.pop_topics import pop_retry_topic
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX, TIMER_TOPIC, is_lmq
from twisted_mq.protocol.names.validation import retry_topic
from twisted_mq.remoting.errors import RemotingError

PUSHES = "CONSUME_PASSIVELY"
"""The consume type of push consumers."""
YOUNG_MS = 2 * 60_000
"""The age below which a consumer's subscriptions may not have reached all brokers."""

_NO_STATS = "Not found the consumer group consume stats, because return offset table is empty, "
OFFLINE_TEXT = f"{_NO_STATS}maybe the consumer not online"
BROADCAST_TEXT = f"{_NO_STATS}the consumer is under the broadcast mode"


def group_of(topic: str) -> str:
    """Return the group that a retry topic belongs to (KeyBuilder.parseGroup)."""
    return topic.removeprefix(RETRY_PREFIX).split("+")[0]


def route_topic(topic: str, cluster_name: str | None) -> str:
    """Return the name whose route has the topic's brokers: light queues and the timer's topic have no route of their own."""
    return cluster_name if cluster_name and (is_lmq(topic) or topic == TIMER_TOPIC) else topic


def addresses_of(route: TopicRouteData) -> list[str]:
    """Return an address for each broker of a route, its master's if it has one."""
    found = (select_address(broker.broker_addrs) for broker in route.broker_datas or ())
    return [address for address in found if address]


async def group_route(admin: AdminCalls, group: str, topic: str | None = None, cluster: str | None = None) -> list[str]:
    """Return the addresses of the brokers of a group's retry topic, else of its topic. Raises BrokerError without a route."""
    names = [retry_topic(group)]
    if topic:
        names += [topic, pop_retry_topic(topic, group, False), *([cluster] if cluster and is_lmq(topic) else [])]
    failure: BrokerError | None = None
    for name in names:
        try:
            return addresses_of(await admin.topic_route(name))
        except BrokerError as error:
            failure = error
    assert failure is not None
    raise failure


async def broker_stats(admin: AdminCalls, address: str, group: str, topic: str | None = None) -> ConsumeStats:
    """Return the offsets of a group at one broker."""
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    return await admin.ask(address, ConsumeStats, RequestCode.GET_CONSUME_STATS, header)


async def consume_stats(
    admin: AdminCalls, group: str, topic: str | None = None, cluster: str | None = None
) -> ConsumeStats:
    """Return the offsets of a group at all its brokers. Raises BrokerError if it consumed nothing and has no member."""
    table: dict[MessageQueue, OffsetWrapper] = {}
    rate = 0.0
    for address in await group_route(admin, group, topic, cluster):
        stats = await broker_stats(admin, address, group, topic)
        table.update(stats.offset_table)
        rate += stats.consume_tps
    if not table:
        await _explain_no_stats(admin, group)
    return ConsumeStats(offset_table=table, consume_tps=rate)


async def _explain_no_stats(admin: AdminCalls, group: str) -> None:
    try:
        connection = await consumer_connection(admin, group)
    except (BrokerError, RemotingError):
        raise BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, OFFLINE_TEXT) from None
    if connection.message_model == BROADCASTING:
        raise BrokerError(ResponseCode.BROADCAST_CONSUMPTION, BROADCAST_TEXT)


def total_lag(stats: ConsumeStats) -> int:
    """Return the number of unconsumed messages in all queues (ConsumeStats.computeTotalDiff)."""
    return sum(offset.broker_offset - offset.consumer_offset for offset in stats.offset_table.values())


async def consumer_connection(admin: AdminCalls, group: str, address: str | None = None) -> ConsumerConnection:
    """Return the members of a group at a broker, by default its first one that knows any. Raises BrokerError without any."""
    failure = BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, "Not found the consumer group connection")
    for one in [address] if address else await group_route(admin, group):
        try:
            header = GetConsumerConnectionListRequestHeader(consumer_group=group)
            found = await admin.ask(one, ConsumerConnection, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        except BrokerError as error:
            failure = error
            continue
        if found.connection_set:
            return attrs.evolve(found, connection_set=sorted(found.connection_set, key=lambda one: one.client_id))
    raise failure


async def running_info(
    admin: AdminCalls, group: str, client_id: str, *, with_threads: bool = False
) -> ConsumerRunningInfo:
    """Return what a member of a group reports about itself, through the first broker of the group."""
    header = GetConsumerRunningInfoRequestHeader(consumer_group=group, client_id=client_id, jstack_enable=with_threads)
    addresses = await group_route(admin, group)
    return await admin.ask(addresses[0], ConsumerRunningInfo, RequestCode.GET_CONSUMER_RUNNING_INFO, header)


def is_push_type(info: ConsumerRunningInfo) -> bool:
    """Return whether a member is a push consumer."""
    return info.properties.get("PROP_CONSUME_TYPE") == PUSHES


def same_subscriptions(infos: Mapping[str, ConsumerRunningInfo], now_ms: int) -> bool:
    """Return whether all members have the same subscriptions.

    Also True if the first member started less than YOUNG_MS ago or is not a push consumer.
    """
    ordered = [infos[client_id] for client_id in sorted(infos)]
    started_ms = int(ordered[0].properties.get("PROP_CONSUMER_START_TIMESTAMP", 0))
    if not is_push_type(ordered[0]) or now_ms - started_ms <= YOUNG_MS:
        return True
    wanted = [{(one.topic, one.sub_string, one.expression_type) for one in info.subscription_set} for info in ordered]
    return all(one == wanted[0] for one in wanted)

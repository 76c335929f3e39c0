"""`mqadmin topicList` (Apache: TopicListSubCommand)."""

from __future__ import annotations

from collections.abc import Iterable

from twisted_mq.admin.calls import select_address
from twisted_mq.admin.errors import AdminError
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import hash_order, text_or_null
from twisted_mq.protocol.bodies import ClusterInfo
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.remoting.errors import RemotingError

HEAD = f"{'#Cluster Name':<20}  {'#Topic':<48}  {'#Consumer Group':<48}"
HIDDEN_PREFIXES = (RETRY_PREFIX, DLQ_PREFIX)
"""Topics that the table with clusters leaves out."""


async def topic_list(admin: AdminContext, line: CommandLine) -> None:
    if "c" in line:
        await _print_table(admin)
        return
    for topic in await admin.topic_list():
        admin.say(topic, topic=topic)


async def _print_table(admin: AdminContext) -> None:
    cluster = await admin.cluster_info()
    admin.say(HEAD)
    for topic in await admin.topic_list():
        if topic.startswith(HIDDEN_PREFIXES):
            continue
        cluster_name, groups = await _whereabouts(admin, topic, cluster)
        for row, group in zip(rows(cluster_name, topic, groups), groups or [""], strict=True):
            admin.say(row, cluster=cluster_name, topic=topic, consumerGroup=group)


async def _whereabouts(admin: AdminContext, topic: str, cluster: ClusterInfo) -> tuple[str | None, list[str]]:
    """Return cluster and consumer groups of a topic; unknown ones stay empty, as in Apache's table."""
    cluster_name: str | None = ""
    try:
        route = await admin.topic_route(topic)
        brokers = route.broker_datas or []
        cluster_name = cluster_of(brokers[0].broker_name, cluster) if brokers else ""
        addresses = [select_address(broker.broker_addrs) for broker in brokers]
        first = next((address for address in addresses if address), None)
        return cluster_name, await admin.consumer_groups(first, topic) if first else []
    except (AdminError, BrokerError, RemotingError) as error:
        admin.warn(f"{topic}: {error}")
        return cluster_name, []


def cluster_of(broker_name: str, cluster: ClusterInfo) -> str | None:
    """Return the cluster that a broker belongs to."""
    table = cluster.cluster_addr_table or {}
    return next((name for name in hash_order(table) if broker_name in table[name]), None)


def rows(cluster_name: str | None, topic: str, groups: Iterable[str]) -> list[str]:
    """Return a line for each consumer group, or one with an empty last column for a topic without groups."""
    name = text_or_null(cluster_name)[:20]
    return [f"{name:<20}  {topic[:64]:<64}  {group[:64]:<64}" for group in list(groups) or [""]]

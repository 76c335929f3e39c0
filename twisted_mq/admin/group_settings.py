"""Requests that read and change the settings of consumer groups, and that delete groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.protocol.bodies import ClusterInfo, SubscriptionGroupConfig, SubscriptionGroupWrapper, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import DeleteSubscriptionGroupRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX


async def all_masters(admin: AdminCalls) -> dict[str, str]:
    """Return broker name -> the address of its master, for all clusters, sorted."""
    return masters_among(await admin.cluster_info())


def masters_among(cluster: ClusterInfo) -> dict[str, str]:
    """Return the masters as `all_masters` does, from cluster data already read."""
    table = cluster.broker_addr_table or {}
    found = {name: (data.broker_addrs or {}).get(MASTER_ID) for name, data in sorted(table.items())}
    return {name: address for name, address in found.items() if address}


async def group_configs(admin: AdminCalls, address: str) -> dict[str, SubscriptionGroupConfig]:
    """Return the settings of all groups at a broker, by name.

    All are read, because Apache's broker creates a group that is asked for by name (GET_SUBSCRIPTIONGROUP_CONFIG).
    """
    wrapper = await admin.ask(address, SubscriptionGroupWrapper, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return wrapper.subscription_group_table


async def put_group(admin: AdminCalls, address: str, config: SubscriptionGroupConfig) -> None:
    """Create a group at a broker, or change its settings. Attributes change by signed names alone; all others stay."""
    changes = {name: value for name, value in (config.attributes or {}).items() if name[:1] in ("+", "-")}
    body = encode_body(attrs.evolve(config, attributes=changes))
    await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


async def delete_group(
    admin: AdminCalls, group: str, masters: Mapping[str, str], clusters: Iterable[str], *, offsets: bool = True
) -> None:
    """Delete a group with the topics of its retries and dead letters; without `offsets`, brokers keep its offsets."""
    header = DeleteSubscriptionGroupRequestHeader(group_name=group, clean_offset=offsets)
    topics = RETRY_PREFIX + group, DLQ_PREFIX + group
    for address in masters.values():
        await admin.invoke(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
        for topic in topics:
            await admin.delete_topic(address, topic)
    for cluster in clusters:
        for name_server in admin.name_servers:
            for topic in topics:
                await admin.delete_route(name_server, cluster, topic)

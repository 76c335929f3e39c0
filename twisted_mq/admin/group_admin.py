"""The part of `Admin` that manages consumer groups."""

from __future__ import annotations

from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.group_settings import delete_group, put_group
from twisted_mq.admin.groups import consume_stats, consumer_connection
from twisted_mq.admin.lag import QueueLag, groups_among, queue_lags
from twisted_mq.admin.member import AdminMember, answers
from twisted_mq.admin.results import GroupDescription, GroupMember
from twisted_mq.client.core.name_checks import check_group
from twisted_mq.protocol.bodies import (
    ConsumerConnection,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS

UNKNOWN_MEMBERS = (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SYSTEM_ERROR)
"""Answers for a group without members. Apache's broker answers SYSTEM_ERROR for a group that never had one."""


class GroupNotFound(AdminError):
    """Raised for a group that no broker knows."""


class GroupAdmin(AdminMember):
    """The methods of `Admin` for consumer groups."""

    @answers
    async def create_group(
        self,
        name: str,
        *,
        retry_max_times: int = 16,
        order: bool = False,
        broadcast: bool = True,
        cluster: str | None = None,
    ) -> None:
        """Create a group at every master of a cluster, or change the settings of an existing one.

        `retry_max_times` is how often a message is tried again before it becomes a dead letter. With `order`, messages
        that failed wait in their queue. Without `broadcast`, members can't consume in broadcast mode.
        """
        check_group(name)
        config = SubscriptionGroupConfig(
            group_name=name,
            retry_max_times=retry_max_times,
            consume_message_orderly=order,
            consume_broadcast_enable=broadcast,
        )
        for address in (await self._masters(cluster)).values():
            await put_group(self._calls, address, config)

    @answers
    async def delete_group(self, name: str, *, offsets: bool = True, cluster: str | None = None) -> None:
        """Delete a group with the topics of its retries and dead letters; without `offsets`, brokers keep its offsets.

        Raises GroupNotFound.
        """
        if name not in await self._configs(cluster):
            raise GroupNotFound(f"no broker has the group {name}", "list_groups() returns all groups")
        clusters = [cluster] if cluster else sorted((await self._calls.cluster_info()).cluster_addr_table or {})
        await delete_group(self._calls, name, await self._masters(cluster), clusters, offsets=offsets)

    @answers
    async def list_groups(self, *, cluster: str | None = None) -> list[str]:
        """Return the names of all groups with settings at a master or with a retry topic, sorted, without servers' own groups."""
        found = {*await self._configs(cluster), *groups_among(await self._calls.topic_list())}
        return sorted(found - set(BROKERS_GROUPS))

    @answers
    async def describe_group(self, name: str, *, cluster: str | None = None) -> GroupDescription:
        """Return a group's members, subscriptions and settings. Raises GroupNotFound."""
        connection = await self._connection(name)
        config = (await self._configs(cluster)).get(name)
        if config is None and not connection.connection_set:
            raise GroupNotFound(f"no broker has the group {name}", "list_groups() returns all groups")
        members = (GroupMember(one.client_id, one.client_addr, one.language) for one in connection.connection_set)
        wanted = {topic: one.sub_string for topic, one in sorted(connection.subscription_table.items())}
        return GroupDescription(
            name=name,
            members=tuple(members),
            subscriptions=wanted,
            message_model=connection.message_model,
            retry_max_times=None if config is None else config.retry_max_times,
            order=config is not None and config.consume_message_orderly,
        )

    @answers
    async def lag(self, group: str, topic: str | None = None) -> list[QueueLag]:
        """Return the lag of a group in each queue, sorted: of one topic, or of all.

        Raises BrokerError (CONSUMER_NOT_ONLINE, TOPIC_NOT_EXIST) for a group that consumed nothing and has no member.
        """
        return queue_lags(await consume_stats(self._calls, group, topic), self._calls.now_ms())

    async def _configs(self, cluster: str | None) -> dict[str, SubscriptionGroupConfig]:
        """Return group -> settings, from the first master that has the group."""
        found: dict[str, SubscriptionGroupConfig] = {}
        for address in (await self._masters(cluster)).values():
            code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            table = (await self._calls.ask(address, SubscriptionGroupWrapper, code)).subscription_group_table
            found = {**table, **found}
        return found

    async def _connection(self, name: str) -> ConsumerConnection:
        """Return the members of a group; an empty connection if none is connected."""
        try:
            return await consumer_connection(self._calls, name)
        except BrokerError as error:
            if error.response_code in UNKNOWN_MEMBERS:
                return ConsumerConnection()
            raise

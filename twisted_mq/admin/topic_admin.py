"""The part of `Admin` that manages topics."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.admin.calls import select_address
from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.member import AdminMember, answers
from twisted_mq.admin.results import TopicDescription, TopicQueue, TopicSettings, moment_of
from twisted_mq.admin.topics import TopicKind, brokers_own_topics, changed, kind_of, masters_of, put_topic, topic_config
from twisted_mq.client.core.name_checks import check_topic
from twisted_mq.protocol.bodies import TopicConfig, TopicRouteData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_READ, PERM_WRITE
from twisted_mq.routing.errors import ClientOptionIllegal, TopicNotFound

QUEUES = 8
"""The number of queues of a new topic at each broker (Apache: UpdateTopicSubCommand)."""
MOST_QUEUES = 1 << 16
ROUTE_LOOKS, ROUTE_PAUSE_SECONDS = 50, 0.1
"""The number of lookups of a new topic at the name server, and the pause between them."""


class TopicExists(AdminError):
    """Raised when a broker already has the topic to create."""


class TopicAdmin(AdminMember):
    """The methods of `Admin` for topics."""

    @answers
    async def create_topic(
        self,
        name: str,
        *,
        queues: int = QUEUES,
        order: bool = False,
        attributes: Mapping[str, str] | None = None,
        cluster: str | None = None,
    ) -> TopicDescription:
        """Create a topic at every master of a cluster, and wait until the name server has its route (5 s at most).

        `queues` is the number at each broker. `attributes` are the topic's, for example {"message.type": "FIFO"}. With
        `order`, other brokers do not take over the queues of an unreachable one (orderMessageEnable). `cluster` is
        optional if there is only one. Raises TopicExists, AdminError (unknown cluster, no route in time), BrokerError
        (refused).
        """
        check_topic(name)
        masters = await self._masters(cluster)
        for broker, address in masters.items():
            if await self._held(address, name) is not None:
                raise TopicExists(f"topic {name} already exists at broker {broker}", "change it with alter_topic")
        config = TopicConfig(
            topic_name=name, read_queue_nums=_count(queues), write_queue_nums=_count(queues), order=order
        )
        changes = {f"+{key}": value for key, value in (attributes or {}).items()}
        for address in masters.values():
            await put_topic(self._calls, address, config, changes)
        if order:
            await self._calls.put_order_setting(name, ";".join(f"{broker}:{queues}" for broker in masters))
        return await self._described(name, await self._new_route(name, set(masters)))

    @answers
    async def alter_topic(
        self,
        name: str,
        *,
        queues: int | None = None,
        readable: bool | None = None,
        writable: bool | None = None,
        attributes: Mapping[str, str | None] | None = None,
    ) -> TopicDescription:
        """Change a topic at all its masters. Arguments that are None change nothing. An attribute that is None is removed.

        Raises TopicNotFound, ClientOptionIllegal, BrokerError.
        """
        route = await self._route(name)
        changes = {f"-{key}" if value is None else f"+{key}": value or "" for key, value in (attributes or {}).items()}
        for address in masters_of(route).values():
            held = await topic_config(self._calls, address, name)
            reads, writes = held.read_queue_nums, held.write_queue_nums
            if queues is not None:
                reads = writes = _count(queues)
            perm = _permission(_permission(held.perm, PERM_READ, readable), PERM_WRITE, writable)
            await put_topic(self._calls, address, changed(held, reads, writes, perm), changes)
        return await self._described(name, route)

    @answers
    async def delete_topic(self, name: str, *, cluster: str | None = None) -> None:
        """Delete a topic and its messages at every master of a cluster and at all name servers. Raises TopicNotFound."""
        await self._route(name)
        for address in (await self._masters(cluster)).values():
            await self._calls.delete_topic(address, name)
        info = await self._calls.cluster_info()
        for name_server in self._calls.name_servers:
            for one in [cluster] if cluster else sorted(info.cluster_addr_table or {}):
                await self._calls.delete_route(name_server, one, name)

    @answers
    async def describe_topic(self, name: str) -> TopicDescription:
        """Return a topic's settings at each broker, and the begin and end of each queue. Raises TopicNotFound."""
        return await self._described(name, await self._route(name))

    @answers
    async def list_topics(self, *, kinds: tuple[TopicKind, ...] = (TopicKind.NORMAL,)) -> list[str]:
        """Return the names of all topics of these kinds, sorted."""
        own = await brokers_own_topics(self._calls)
        return sorted(topic for topic in await self._calls.topic_list() if kind_of(topic, own) in kinds)

    async def _held(self, address: str, name: str) -> TopicConfig | None:
        """Return a topic's settings at a broker; None if the broker does not have the topic."""
        try:
            return await topic_config(self._calls, address, name)
        except BrokerError as error:
            if error.response_code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise

    async def _new_route(self, name: str, brokers: set[str]) -> TopicRouteData:
        for _ in range(ROUTE_LOOKS):
            try:
                route = await self._route(name)
            except TopicNotFound:
                route = TopicRouteData()
            if brokers <= {data.broker_name for data in route.queue_datas or ()}:
                return route
            await self._calls.sleep(ROUTE_PAUSE_SECONDS)
        seconds = ROUTE_LOOKS * ROUTE_PAUSE_SECONDS
        raise AdminError(f"topic {name} was created, but the name server has no route to it after {seconds:g} s")

    async def _described(self, name: str, route: TopicRouteData) -> TopicDescription:
        settings: list[TopicSettings] = []
        queues: list[TopicQueue] = []
        for data in sorted(route.broker_datas or (), key=lambda one: one.broker_name):
            address = select_address(data.broker_addrs)
            if address is None:
                continue
            settings.append(_settings(data.broker_name, await topic_config(self._calls, address, name)))
            table = (await self._calls.topic_stats(address, name)).offset_table
            queues += [
                TopicQueue(queue, one.min_offset, one.max_offset, moment_of(one.last_update_timestamp))
                for queue, one in table.items()
            ]
        kind = kind_of(name, await brokers_own_topics(self._calls))
        return TopicDescription(name, kind, tuple(settings), tuple(sorted(queues, key=lambda one: one.queue)))


def _settings(broker: str, config: TopicConfig) -> TopicSettings:
    return TopicSettings(
        broker=broker,
        read_queues=config.read_queue_nums,
        write_queues=config.write_queue_nums,
        readable=bool(config.perm & PERM_READ),
        writable=bool(config.perm & PERM_WRITE),
        order=config.order,
        attributes=dict(config.attributes or {}),
    )


def _count(queues: int) -> int:
    """Check a number of queues and return it. Raises ClientOptionIllegal."""
    if isinstance(queues, bool) or not isinstance(queues, int) or not 1 <= queues <= MOST_QUEUES:
        raise ClientOptionIllegal(f"queues: must be 1 to {MOST_QUEUES}, got {queues!r}")
    return queues


def _permission(perm: int, bit: int, wanted: bool | None) -> int:
    return perm if wanted is None else perm | bit if wanted else perm & ~bit

"""Declares ordered topics, and removes declarations."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.cli.admin.update_topic import GivenTopicSettings
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.ordered.session import COORDINATOR_KEY, OrderCommandSession
from twisted_mq.client.core.broker_calls import BrokerCalls
from twisted_mq.client.ordered.errors import OrderedTopicUnknown
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.ordering import declaring
from twisted_mq.ordering.documents import MOST_QUEUES
from twisted_mq.ordering.health import MASTER, SLAVE
from twisted_mq.ordering.lists import OrderedTopic
from twisted_mq.protocol.bodies import BrokerData, ClusterInfo, TopicConfig, TopicConfigAndQueueMapping, decode_body
from twisted_mq.protocol.bodies.topic_config import ORDER, ORDER_QUEUES, ORDER_TOGETHER
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetTopicConfigRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.validation import topic_fault

SLAVE_READ_KEY = "slaveReadEnable"


def declaration(topic: str, queues: int, groups: str, *, together: bool) -> OrderedTopic:
    """Return the declaration of the command line. Raises CliError."""
    names = tuple(part.strip() for part in groups.split(",") if part.strip())
    fault = topic_fault(topic)
    if fault is not None:
        raise CliError(f"topic {topic!r}: {fault}")
    if not names or len(set(names)) < len(names):
        raise CliError(
            f"--groups {groups!r} must name each broker group once", "separate names with commas: broker-a,broker-b"
        )
    if queues > MOST_QUEUES:
        raise CliError(f"--queues {queues}: a topic can have at most {MOST_QUEUES} ordered queues")
    return OrderedTopic(topic, queues, names, together)


async def create(session: OrderCommandSession, declared: OrderedTopic) -> None:
    """Create the topic at the brokers of all groups, then declare it. An unfinished earlier run is finished.

    A declared topic may get more groups. Raises CliError for groups that cannot keep order, and for another
    declaration of the topic.
    """
    masters = [await _master(session, await session.admin.cluster_info(), group) for group in declared.groups]
    known = await _known_groups(session.coordinator, declared)
    for group, master in zip(declared.groups, masters, strict=True):
        if group not in known:
            await _refuse_messages(session, group, master, declared.topic)
    for master in masters:
        await _create_at(session, master, declared)
    await declaring.declare(session.coordinator, declared)


async def _create_at(session: OrderCommandSession, master: str, declared: OrderedTopic) -> None:
    """Create the topic unless the broker has it from an earlier run. Raises BrokerError for a topic that is not ordered."""
    mode = ORDER_TOGETHER if declared.together else ORDER_QUEUES
    settings = GivenTopicSettings(
        topic=declared.topic,
        read_queues=declared.queues,
        write_queues=declared.queues,
        perm=6,
        sys_flag=0,
        order=False,
        attributes={f"+{ORDER}": mode},
    )
    known = await _known_at(session, master, declared.topic)
    if known is None or known.order_mode != mode or known.write_queue_nums != declared.queues:
        await session.admin.invoke(master, RequestCode.UPDATE_AND_CREATE_TOPIC, settings.header())


async def _known_at(session: OrderCommandSession, master: str, topic: str) -> TopicConfig | None:
    try:
        answer = await session.admin.invoke(
            master, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader(topic=topic)
        )
    except BrokerError as error:
        if error.response_code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        raise
    return decode_body(TopicConfigAndQueueMapping, answer.body)


async def _master(session: OrderCommandSession, cluster: ClusterInfo, group: str) -> str:
    """Return the master's address. Raises CliError if the group cannot keep order."""
    addresses = _addresses(cluster, group)
    if MASTER_ID not in addresses:
        raise CliError(f"group {group} has no master registered at the name server", "start it")
    slaves = len(addresses) - 1
    if slaves != 1:
        raise CliError(
            f"group {group} has {slaves or 'no'} slaves registered at the name server",
            f"an ordered group is a master and exactly one slave: a broker with brokerName={group}, brokerId=1 and"
            " brokerRole=SLAVE",
        )
    for broker_id, address in addresses.items():
        await _check_settings(session, f"broker {broker_id} of {group}", address, is_slave=broker_id != MASTER_ID)
    return addresses[MASTER_ID]


async def _check_settings(session: OrderCommandSession, broker: str, address: str, *, is_slave: bool) -> None:
    config = await BrokerCalls(session.admin.client).broker_config(address)
    if not config.get(COORDINATOR_KEY):
        raise CliError(
            f"{broker} has no {COORDINATOR_KEY}",
            "an ordered group is a master with brokerRole=SYNC_MASTER and a slave, both with that key",
        )
    if is_slave and config.get(SLAVE_READ_KEY) != "true":
        raise CliError(f"{broker} has no {SLAVE_READ_KEY}=true", "without it consumers stop when the master is lost")


def _addresses(cluster: ClusterInfo, group: str) -> dict[int, str]:
    brokers: dict[str, BrokerData] = cluster.broker_addr_table or {}
    if group not in brokers:
        known = ", ".join(sorted(brokers)) or "none"
        raise CliError(f"no broker group {group!r} at this name server", f"it knows: {known}")
    return dict(brokers[group].broker_addrs)


async def _known_groups(coordinator: ICoordinator, declared: OrderedTopic) -> tuple[str, ...]:
    """Return the topic's present groups. Raises CliError for another declaration of it than one that only lacks groups."""
    try:
        known = await read_topic(coordinator, declared.topic)
    except OrderedTopicUnknown:
        return ()
    if attrs.evolve(known, groups=declared.groups) != declared or not set(known.groups) <= set(declared.groups):
        together = ", together" if known.together else ""
        raise CliError(
            f"topic {declared.topic} is already declared: {known.queues} queues on {','.join(known.groups)}{together}",
            f"to add groups, name these and the new ones; `mq order delete {declared.topic}` deletes the topic",
        )
    return known.groups


async def _refuse_messages(session: OrderCommandSession, group: str, master: str, topic: str) -> None:
    """Refuse a topic with messages: a declaration starts new epochs, and would take them for its own. Raises CliError."""
    if await _known_at(session, master, topic) is None:
        return
    stats = await session.admin.topic_stats(master, topic)
    if any(offset.max_offset > offset.min_offset for offset in stats.offset_table.values()):
        raise CliError(
            f"group {group} has older messages of topic {topic}",
            f"use another name, or delete them first: mqadmin deleteTopic -t {topic} -c CLUSTER",
        )


async def delete(session: OrderCommandSession, topic: str) -> None:
    """Remove the declaration, then delete the topic with its messages at all brokers and the name servers.

    Raises OrderedTopicUnknown.
    """
    coordinator = session.coordinator
    declared = await read_topic(coordinator, topic)
    await declaring.take_back(coordinator, topic)
    await _delete_at_brokers(session, declared)


async def _delete_at_brokers(session: OrderCommandSession, declared: OrderedTopic) -> None:
    cluster = await session.admin.cluster_info()
    brokers = cluster.broker_addr_table or {}
    for group in declared.groups:
        addresses = brokers[group].broker_addrs if group in brokers else {}
        for broker_id in (MASTER, SLAVE):
            if (
                broker_id in addresses
            ):  # a slave that kept the queues would take the messages of a new topic for old ones
                await _unless_missing(session, addresses[broker_id], declared.topic)
            else:
                what = f"broker {broker_id} of {group} is not running"
                session.admin.warn(
                    f"{what}: delete the topic there with mqadmin deleteTopic before it is declared again"
                )
    for name in _clusters(cluster, declared.groups):
        for server in session.admin.name_servers:
            await session.admin.delete_route(server, name, declared.topic)


async def _unless_missing(session: OrderCommandSession, master: str, topic: str) -> None:
    try:
        await session.admin.delete_topic(master, topic)
    except BrokerError as error:
        if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
            raise


def _clusters(cluster: ClusterInfo, groups: Sequence[str]) -> list[str]:
    table = cluster.cluster_addr_table or {}
    return sorted(name for name, members in table.items() if not set(groups).isdisjoint(members))

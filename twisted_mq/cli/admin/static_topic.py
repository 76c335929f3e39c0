"""Implements `mqadmin updateStaticTopic`, `remappingStaticTopic`: topics whose logical queues are on several brokers.

They work with brokers of this project and Apache's.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from twisted_mq.admin.topics import creation
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.files import read_bytes, write_private_file
from twisted_mq.cli.admin.static_mapping import (
    OPEN,
    Plan,
    Remapping,
    block_round_up,
    checked,
    completed,
    created,
    detail_of,
    remapped,
    with_pieces,
)
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import (
    ClusterInfo,
    LogicQueueMappingItem,
    MessageQueue,
    TopicConfigAndQueueMapping,
    TopicRemappingDetailWrapper,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetTopicConfigRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID

CREATE, MOVE = "CREATE_OR_UPDATE", "REMAPPING"
BLOCK = 10_000
"""A moved queue's offsets continue at the next multiple of this, or at the one after it."""


async def update_static_topic(admin: AdminContext, line: CommandLine) -> None:
    topic, cluster = line.value("t"), await admin.cluster_info()
    if "mf" in line:
        plan: Plan = _of_file(topic, line.value("mf")).broker_config_map
    else:
        held = await _held(admin, cluster, topic)
        _write(admin, "old", topic, CREATE, Remapping(held, frozenset(), frozenset()))
        targets = {*_targets(line, cluster), *held}
        plan = created(topic, line.number("qn", 0), targets, held, admin.now_ms())
        _write(admin, "new", topic, CREATE, Remapping(plan, frozenset(), frozenset()))
    whole = completed(topic, plan, _brokers_beside(cluster, plan))
    await _tell(admin, cluster, topic, whole, sorted(whole), force=line.is_true("fr"))


async def remapping_static_topic(admin: AdminContext, line: CommandLine) -> None:
    topic, cluster = line.value("t"), await admin.cluster_info()
    if "mf" in line:
        found = _of_file(topic, line.value("mf"))
        moved = Remapping(
            found.broker_config_map, frozenset(found.broker_to_map_in), frozenset(found.broker_to_map_out)
        )
    else:
        held = await _held(admin, cluster, topic)
        if not held:
            raise CliError("No topic route to do the remapping")
        _write(admin, "old", topic, CREATE, Remapping(held, frozenset(), frozenset()))
        moved = remapped(topic, held, _targets(line, cluster), admin.now_ms())
        _write(admin, "new", topic, MOVE, moved)
    whole = completed(topic, moved.plan, _brokers_beside(cluster, moved.plan))
    await _move(admin, cluster, topic, attrs.evolve(moved, plan=whole), force=line.is_true("fr"))


def _of_file(topic: str, path: str) -> TopicRemappingDetailWrapper:
    """Return a mapping from a file. Raises CliError if it does not fit together."""
    found = decode_body(TopicRemappingDetailWrapper, read_bytes(path))
    if not found.broker_config_map:
        raise CliError(f"{path} does not contain a mapping")
    checked(topic, found.broker_config_map)
    return found


def _targets(line: CommandLine, cluster: ClusterInfo) -> list[str]:
    """Return the brokers of -b, or all of the clusters of -c. Raises UsageError without any."""
    names = line.parts("b") or [
        broker for name in line.parts("c") for broker in (cluster.cluster_addr_table or {}).get(name, ())
    ]
    if not names:
        raise UsageError("Find none brokers, do nothing")
    return sorted(names)


def _master(cluster: ClusterInfo, broker: str) -> str:
    """Return the address of a broker's master. Raises CliError."""
    data = (cluster.broker_addr_table or {}).get(broker)
    address = None if data is None else (data.broker_addrs or {}).get(MASTER_ID)
    if address is None:
        raise CliError(f"Can't find addr for broker {broker}")
    return address


def _brokers_beside(cluster: ClusterInfo, plan: Plan) -> list[str]:
    """Return all brokers of the clusters that have one of the plan's."""
    tables = (cluster.cluster_addr_table or {}).values()
    return sorted({broker for members in tables if set(members) & plan.keys() for broker in members})


async def _held(admin: AdminContext, cluster: ClusterInfo, topic: str) -> Plan:
    """Return the topic's present state at the brokers."""
    held: dict[str, TopicConfigAndQueueMapping] = {}
    for broker in sorted(cluster.broker_addr_table or {}):
        try:
            held[broker] = await admin.ask(
                _master(cluster, broker),
                TopicConfigAndQueueMapping,
                RequestCode.GET_TOPIC_CONFIG,
                GetTopicConfigRequestHeader(topic=topic, lo=True),
            )
        except BrokerError as error:
            if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
                raise
    return held


def _write(admin: AdminContext, age: str, topic: str, kind: str, mapping: Remapping) -> None:
    """Write the mapping to a file, from which it can be set again."""
    epoch = max([detail_of(broker, config).epoch for broker, config in mapping.plan.items()], default=admin.now_ms())
    wrapper = TopicRemappingDetailWrapper(
        topic, kind, epoch, dict(mapping.plan), sorted(mapping.map_in), sorted(mapping.map_out)
    )
    path = write_private_file(f"{topic}-{epoch}.{'before' if age == 'old' else 'after'}", encode_body(wrapper))
    admin.say(f"The {age} mapping data is written to file {path}", mapping=age, file=path)


async def _tell(
    admin: AdminContext, cluster: ClusterInfo, topic: str, plan: Plan, brokers: Iterable[str], *, force: bool
) -> None:
    """Send brokers their parts of the plan."""
    addresses = {broker: _master(cluster, broker) for broker in brokers}
    for broker, address in addresses.items():
        header = creation(attrs.evolve(plan[broker], topic_name=topic), force=force)
        body = encode_body(detail_of(broker, plan[broker]))
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, header, body)


async def _move(admin: AdminContext, cluster: ClusterInfo, topic: str, moved: Remapping, *, force: bool) -> None:
    """Tell the new leaders first, then the old ones, which then stop writing. Then set where the new ones' offsets begin."""
    plan, map_in, map_out = dict(moved.plan), sorted(moved.map_in), sorted(moved.map_out)
    await _tell(admin, cluster, topic, plan, map_in, force=force)
    await _tell(admin, cluster, topic, plan, map_out, force=force)
    for broker in map_out:
        ends = (await admin.topic_stats(_master(cluster, broker), topic)).offset_table
        for queue_id, pieces in detail_of(broker, plan[broker]).hosted_queues.items():
            if len(pieces) > 1 and pieces[-1].logic_offset == OPEN:
                old = pieces[-2]
                end = ends.get(MessageQueue(topic, old.bname or "", old.queue_id))
                begun = _begun(pieces, None if end is None else end.max_offset)
                for name in (broker, begun[-1].bname or ""):
                    plan[name] = with_pieces(name, plan[name], queue_id, begun)
    await _tell(admin, cluster, topic, plan, map_in, force=force)
    await _tell(admin, cluster, topic, plan, sorted(plan.keys() - moved.map_in - moved.map_out), force=force)


def _begun(pieces: list[LogicQueueMappingItem], end: int | None) -> list[LogicQueueMappingItem]:
    """Return the pieces with the begin of the last one after the end of the one before. Raises CliError without that end."""
    old = pieces[-2]
    if end is None or end < old.start_offset:
        raise CliError(f"Cannot get the max offset for old leader {old.bname}-{old.queue_id}")
    logic_offset = block_round_up(old.logic_offset + end - old.start_offset, BLOCK)
    return [*pieces[:-1], attrs.evolve(pieces[-1], logic_offset=logic_offset)]

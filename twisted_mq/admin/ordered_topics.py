"""Reads the state of an ordered topic: its lists, groups, leaders, unconsumed messages, and what blocks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs
from twisted.internet import defer

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import consumer_connection
from twisted_mq.admin.ordered_states import Leader, TopicState, UnitState
from twisted_mq.client.ordered.group_states import GroupState, read_groups
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.coordination.election import candidate_of, leader_of, term_of
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.ordering.deleted import DELETED_UNCONSUMED, deleted_of_topic
from twisted_mq.ordering.documents import DocumentFault, decode_lists, decode_unreached
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import (
    TOPICS,
    consumer_group_path,
    consumers_path,
    producers_path,
    unit_path,
    unreached_path,
)
from twisted_mq.protocol.bodies import ConsumeStats, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetConsumeStatsRequestHeader
from twisted_mq.remoting.errors import RemotingError

AT_ONCE = 32
"""The number of units that are read at the same time."""


@attrs.frozen
class OrderSession:
    """Connections for ordered topics: `admin` asks brokers and name servers, `coordinator` is the coordinator."""

    admin: AdminCalls
    coordinator: ICoordinator


async def declared_topics(session: OrderSession) -> list[str]:
    """Return the names of all ordered topics, sorted."""
    return sorted(await session.coordinator.children(TOPICS))


async def read_state(session: OrderSession, topic: str) -> TopicState:
    """Read the state of a topic. Raises OrderedTopicUnknown, QueueBlocked, and as the coordinator's reads do."""
    coordinator = session.coordinator
    declared = await read_topic(coordinator, topic)
    slots = defer.DeferredSemaphore(AT_ONCE)
    reads = [
        slots.run(lambda unit: defer.Deferred.fromCoroutine(_read_unit(coordinator, topic, unit)), unit)
        for unit in declared.units
    ]
    units: list[UnitState] = await defer.gatherResults(reads, consumeErrors=True)
    named = {group for unit in units for group in (*unit.lists.send, *(term.group for term in unit.lists.consume))}
    groups = await read_groups(coordinator, dict.fromkeys((*declared.groups, *sorted(named))))
    lags = {group: await _lags(session, topic, groups[group], _consumers(units)) for group in _with_backlog(units)}
    silent: list[str] = []
    deleted = {group: await _deleted(session, topic, state, silent) for group, state in groups.items()}
    found: list[UnitState] = []
    for unit in units:
        known = _with_lags(unit, declared, lags, deleted)
        term = known.lists.consumed
        cut_off = {} if term is None else await _cut_off(session, known, groups[term.group])
        found.append(attrs.evolve(known, cut_off=cut_off))
    return TopicState(declared, groups, tuple(found), frozenset(silent))


async def _read_unit(coordinator: ICoordinator, topic: str, unit: str) -> UnitState:
    path = unit_path(topic, unit)
    node = await coordinator.read(path)
    lists, problem = Lists(), None
    try:
        if node is None:
            problem = f"{path} is missing; declare the topic again with `mq order create`"
        else:
            lists = decode_lists(path, node.data)
    except DocumentFault as fault:
        problem = f"{fault}; {fault.remedy}"
    producers = await _producers(coordinator, topic, unit)
    consumers = await _consumer_groups(coordinator, topic, unit)
    unreached = await _unreached(coordinator, unreached_path(topic, unit), lists)
    return UnitState(unit, lists, problem, producers, consumers, unreached=unreached)


async def _unreached(coordinator: ICoordinator, path: str, lists: Lists) -> str | None:
    """Return the producer that reports that it cannot reach the current head; None without such a report."""
    node = await coordinator.read(path)
    try:
        report = None if node is None else decode_unreached(path, node.data)
    except DocumentFault:
        return None  # brokers ignore it, too
    return report.client if report is not None and (report.group, report.epoch) == (lists.head, lists.epoch) else None


async def _producers(coordinator: ICoordinator, topic: str, unit: str) -> tuple[Leader, ...]:
    """Return the candidates of each producer group. Only one of all groups has a leader."""
    path = producers_path(topic, unit)
    names = [name for name in await coordinator.children(path) if term_of(name) is not None]
    leader = leader_of(names)
    counts = Counter(map(candidate_of, names))
    found = {group: Leader(group, candidates=counts[group]) for group in sorted(counts)}
    node = None if leader is None else await coordinator.read(f"{path}/{leader}")
    if leader is not None and node is not None:
        group = candidate_of(leader)
        found[group] = Leader(group, node.data.decode(errors="replace"), term_of(leader), counts[group])
    return tuple(found.values())


async def _consumer_groups(coordinator: ICoordinator, topic: str, unit: str) -> tuple[Leader, ...]:
    groups = await coordinator.children(consumers_path(topic, unit))
    return tuple([await _leader(coordinator, consumer_group_path(group, topic, unit), group) for group in groups])


async def _leader(coordinator: ICoordinator, path: str, group: str) -> Leader:
    names = await coordinator.children(path)
    name = leader_of(names)
    node = None if name is None else await coordinator.read(f"{path}/{name}")
    if name is None or node is None:
        return Leader(group)
    return Leader(group, node.data.decode(errors="replace"), term_of(name), len(names))


def _consumers(units: Iterable[UnitState]) -> list[str]:
    return sorted({leader.group for unit in units for leader in unit.consumers})


def _with_backlog(units: Iterable[UnitState]) -> list[str]:
    return sorted({term.group for unit in units for term in unit.lists.consume})


Lags = dict[int, dict[str, int]]
"""Queue -> consumer group -> unconsumed messages. The key "" counts those that wait for a first group."""


async def _lags(session: OrderSession, topic: str, state: GroupState, groups: Sequence[str]) -> Lags | None:
    """Return the lags at the broker that serves the group; None if it can't be asked."""
    if not state.members:
        return None
    address = state.members[min(state.members)].address
    try:
        stats = await session.admin.topic_stats(address, topic)
        ends = {queue.queue_id: (offset.max_offset, offset.min_offset) for queue, offset in stats.offset_table.items()}
        known = set(groups) | set(await session.admin.consumer_groups(address, topic))
        committed = {group: await _committed(session, address, topic, group) for group in sorted(known)}
    except (BrokerError, RemotingError):
        return None
    return {
        queue_id: {group: max(0, end - offsets.get(queue_id, first)) for group, offsets in committed.items()}
        or {"": end - first}
        for queue_id, (end, first) in ends.items()
    }


async def _cut_off(session: OrderSession, unit: UnitState, state: GroupState) -> dict[str, str]:
    """Return active consumers by consumer group, if no broker of `state` has a connection of them.

    Groups that consumed everything are left out.
    """
    found: dict[str, str] = {}
    for leader in unit.consumers:
        if leader.client is None or not unit.waiting.get(leader.group):
            continue
        connected: set[str] = set()
        for member in state.members.values():
            try:
                members = await consumer_connection(session.admin, leader.group, member.address)
                connected |= {one.client_id for one in members.connection_set}
            except (BrokerError, RemotingError):
                continue  # it knows no member of the group, or is reported as a broker that does not answer
        if leader.client not in connected:
            found[leader.group] = leader.client
    return found


async def _deleted(session: OrderSession, topic: str, state: GroupState, silent: list[str]) -> dict[int, int]:
    """Return, by queue, the most messages that a broker deleted unconsumed. Adds brokers that do not answer to `silent`."""
    found: Counter[int] = Counter()
    for member in state.members.values():
        try:
            text = (await session.admin.broker_runtime(member.address)).get(DELETED_UNCONSUMED, "{}")
            found |= Counter(deleted_of_topic(text, topic))
        except (BrokerError, RemotingError):
            silent.append(member.address)
    return dict(found)


async def _committed(session: OrderSession, address: str, topic: str, group: str) -> dict[int, int]:
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    try:
        answer = await session.admin.invoke(address, RequestCode.GET_CONSUME_STATS, header)
    except BrokerError:
        return {}  # the group has not consumed here
    table = decode_body(ConsumeStats, answer.body).offset_table
    return {queue.queue_id: offset.consumer_offset for queue, offset in table.items() if queue.topic == topic}


def _with_lags(
    unit: UnitState,
    declared: OrderedTopic,
    lags: Mapping[str, Lags | None],
    deleted: Mapping[str, Mapping[int, int]],
) -> UnitState:
    queues = range(declared.queues) if declared.together else () if unit.problem else (int(unit.unit),)
    backlog: dict[str, int | None] = {}
    for term in unit.lists.consume:
        found = lags[term.group]
        backlog[term.group] = None if found is None else sum(max(found.get(one, {"": 0}).values()) for one in queues)
    first = None if unit.lists.consumed is None else lags[unit.lists.consumed.group]
    waiting: Counter[str] = Counter()
    for queue_id in queues if first is not None else ():
        waiting.update((first or {}).get(queue_id, {}))
    lost = {group: sum(counts.get(queue_id, 0) for queue_id in queues) for group, counts in deleted.items()}
    lost = {group: count for group, count in lost.items() if count}
    return attrs.evolve(unit, backlog=backlog, waiting=dict(waiting), deleted=lost)

"""What is known of an ordered topic: its lists, its groups, who leads, what is still to be consumed, what blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs
from twisted.internet import defer

from twisted_mq.admin.calls import Admin
from twisted_mq.client.ordered.group_states import GroupState, read_groups, reasons_without_head
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.coordination.election import candidate_of, leader_of, term_of
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.ordering.deleted import DELETED_UNCONSUMED, deleted_of_topic
from twisted_mq.ordering.documents import DocumentFault, decode_lists
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import TOPICS, consumer_group_path, consumers_path, producers_path, unit_path
from twisted_mq.protocol.bodies import ConsumeStats, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetConsumeStatsRequestHeader
from twisted_mq.remoting.errors import RemotingError

AT_ONCE = 32
"""Units read at the same time."""


@attrs.frozen
class OrderSession:
    """`admin` asks brokers and name servers."""

    admin: Admin
    coordinator: ICoordinator


@attrs.frozen
class Leader:
    """Who is active for a client group; without a `client` nobody is. `candidates` counts it and those that stand by."""

    group: str
    client: str | None = None
    term: int | None = None
    candidates: int = 0


@attrs.frozen
class UnitState:
    """One unit. `backlog` is by broker group: messages not consumed by the group that is furthest behind; None: unknown."""

    unit: str
    lists: Lists = attrs.field(factory=Lists)
    problem: str | None = None
    producers: tuple[Leader, ...] = ()
    consumers: tuple[Leader, ...] = ()
    backlog: Mapping[str, int | None] = attrs.field(factory=dict)
    deleted: Mapping[str, int] = attrs.field(factory=dict)
    """By broker group: messages that a full disk deleted before they were consumed."""


@attrs.frozen
class TopicState:
    """One topic."""

    declared: OrderedTopic
    groups: Mapping[str, GroupState]
    units: tuple[UnitState, ...]
    silent: frozenset[str] = frozenset()
    """Addresses of brokers that did not answer."""

    def blocks(self, unit: UnitState) -> list[str]:
        """What stands still or was lost, why, and what would free it."""
        return [*self._waits(unit), *self._lost(unit), *self._unknown(unit)]

    def _unknown(self, unit: UnitState) -> list[str]:
        groups = dict.fromkeys((*unit.lists.send[:1], *(term.group for term in unit.lists.consume)))
        addresses = [member.address for group in groups for member in self.groups[group].members.values()]
        return [
            f"not known: broker {address} is connected to the coordinator, and does not answer this command; check the network"
            for address in addresses
            if address in self.silent
        ]

    def _lost(self, unit: UnitState) -> list[str]:
        return [
            f"{group} deleted {count} messages that were not consumed, its disk was full: they are lost, its log names them; free"
            " its disk, this is said until it restarts"
            for group, count in sorted(unit.deleted.items())
            if count
        ]

    def _waits(self, unit: UnitState) -> list[str]:
        if unit.problem is not None:
            return [f"blocked: {unit.problem}"]
        lists, found = unit.lists, []
        if lists.head is None:
            declared = (self.groups[group] for group in self.declared.groups)
            found.append(f"senders wait: {'; '.join(reasons_without_head(lists, declared))}")
        term = lists.consumed
        if term is None:
            return found
        if not self.groups[term.group].members:
            found.append(f"consumers wait: no broker of {term.group} is there; start one of them")
        elif term.group != lists.head or len(lists.consume) > 1:
            idle = [leader.group for leader in unit.consumers if leader.client is None]
            if idle:
                found.append(
                    f"{term.group} is kept by groups without a running consumer: {', '.join(idle)}; start them"
                )
            elif not unit.consumers:
                found.append(f"{term.group} waits for its first consumer group; start a consumer")
        return found


async def declared_topics(session: OrderSession) -> list[str]:
    """All ordered topics, in order."""
    return sorted(await session.coordinator.children(TOPICS))


async def read_state(session: OrderSession, topic: str) -> TopicState:
    """Raises OrderedTopicUnknown, QueueBlocked, and as the coordinator's reads do."""
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
    found = tuple(_with_lags(unit, declared, lags, deleted) for unit in units)
    return TopicState(declared, groups, found, frozenset(silent))


async def _read_unit(coordinator: ICoordinator, topic: str, unit: str) -> UnitState:
    path = unit_path(topic, unit)
    node = await coordinator.read(path)
    lists, problem = Lists(), None
    try:
        if node is None:
            problem = f"{path} is missing; declare the topic again: mq order create"
        else:
            lists = decode_lists(path, node.data)
    except DocumentFault as fault:
        problem = f"{fault}; {fault.remedy}"
    producers = await _producers(coordinator, topic, unit)
    consumers = await _consumer_groups(coordinator, topic, unit)
    return UnitState(unit, lists, problem, producers, consumers)


async def _producers(coordinator: ICoordinator, topic: str, unit: str) -> tuple[Leader, ...]:
    """One of all groups leads."""
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


async def _lags(session: OrderSession, topic: str, state: GroupState, groups: Sequence[str]) -> dict[int, int] | None:
    """By queue, at the broker that serves the group; None where it can't be asked."""
    if not state.members:
        return None
    address = state.members[min(state.members)].address
    lags: dict[int, int] = {}
    try:
        stats = await session.admin.topic_stats(address, topic)
        ends = {queue.queue_id: (offset.max_offset, offset.min_offset) for queue, offset in stats.offset_table.items()}
        known = set(groups) | set(await session.admin.consumer_groups(address, topic))
        for group in sorted(known):
            committed = await _committed(session, address, topic, group)
            for queue_id, (end, first) in ends.items():
                lag = end - committed.get(queue_id, first)
                lags[queue_id] = max(lags.get(queue_id, 0), lag)
    except (BrokerError, RemotingError):
        return None
    return lags if known else {queue_id: end - first for queue_id, (end, first) in ends.items()}


async def _deleted(session: OrderSession, topic: str, state: GroupState, silent: list[str]) -> dict[int, int]:
    """By queue, the most messages that a broker of the group deleted unconsumed. What does not answer becomes `silent`."""
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
    lags: Mapping[str, Mapping[int, int] | None],
    deleted: Mapping[str, Mapping[int, int]],
) -> UnitState:
    queues = range(declared.queues) if declared.together else () if unit.problem else (int(unit.unit),)
    backlog: dict[str, int | None] = {}
    for term in unit.lists.consume:
        found = lags[term.group]
        backlog[term.group] = None if found is None else sum(found.get(queue_id, 0) for queue_id in queues)
    lost = {group: sum(counts.get(queue_id, 0) for queue_id in queues) for group, counts in deleted.items()}
    return attrs.evolve(unit, backlog=backlog, deleted={group: count for group, count in lost.items() if count})

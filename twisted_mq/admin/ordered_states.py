"""The state of an ordered topic for operators: what waits or was lost in each unit, why, and how to free it. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from twisted_mq.client.ordered.group_states import GroupState, reasons_without_head
from twisted_mq.ordering.health import MASTER, SLAVE
from twisted_mq.ordering.lists import Lists, OrderedTopic, Term


@attrs.frozen
class Leader:
    """The active client of a client group; None without one. `candidates` counts it and its standbys."""

    group: str
    client: str | None = None
    term: int | None = None
    candidates: int = 0


@attrs.frozen
class UnitState:
    """The state of a unit.

    `backlog` is the number of messages by broker group that the consumer group furthest behind has not consumed, None if unknown.
    """

    unit: str
    lists: Lists = attrs.field(factory=Lists)
    problem: str | None = None
    producers: tuple[Leader, ...] = ()
    consumers: tuple[Leader, ...] = ()
    backlog: Mapping[str, int | None] = attrs.field(factory=dict)
    waiting: Mapping[str, int] = attrs.field(factory=dict)
    """The number of messages of the first term that each consumer group has not consumed."""
    cut_off: Mapping[str, str] = attrs.field(factory=dict)
    """The active consumer of each consumer group, if no broker of the first term's group has a connection of it."""
    unreached: str | None = None
    """The producer that reports that it cannot reach the head."""
    deleted: Mapping[str, int] = attrs.field(factory=dict)
    """The number of messages of each broker group that a full disk deleted before they were consumed."""


@attrs.frozen
class TopicState:
    """The state of an ordered topic."""

    declared: OrderedTopic
    groups: Mapping[str, GroupState]
    units: tuple[UnitState, ...]
    silent: frozenset[str] = frozenset()
    """Addresses of brokers that did not answer."""

    def blocks(self, unit: UnitState) -> list[str]:
        """Return what waits or was lost, why, and what would free it."""
        if unit.problem is not None:
            return [f"blocked: {unit.problem}"]
        return [*self._senders(unit), *self._consumers(unit), *self._lost(unit), *self._unknown(unit)]

    def _senders(self, unit: UnitState) -> Iterator[str]:
        lists = unit.lists
        if lists.head is None:
            declared = (self.groups[group] for group in self.declared.groups)
            yield f"senders wait: {'; '.join(reasons_without_head(lists, declared))}"
            return
        obstacle = self.groups[lists.head].obstacle()
        if obstacle is None and unit.unreached is None:
            return
        obstacle = obstacle or f"{unit.unreached}, the active producer, cannot reach the master of {lists.head}"
        well = [group for group in lists.send[1:] if self.groups[group].obstacle() is None]
        if well and unit.unreached is None:
            yield f"senders wait: {obstacle}; {well[0]} takes over within one session timeout"
        elif well:
            again = f"within 10 session timeouts if {lists.head} was reported before"
            yield f"senders wait: {obstacle}; {well[0]} takes over, {again}"
        elif any(state.members for state in self.groups.values()):
            yield f"senders wait: {obstacle}, and no other group is healthy; start the missing brokers"
        else:
            yield f"senders wait: {obstacle}, and no broker is running to hand over; start the brokers"

    def _consumers(self, unit: UnitState) -> Iterator[str]:
        lists, term = unit.lists, unit.lists.consumed
        if term is None:
            return
        for later in lists.consume[1:]:
            if not self.groups[later.group].members:
                yield f"consumers will wait for epoch {later.epoch}: no broker of {later.group} is running; start one of them"
        if not self.groups[term.group].members:
            yield f"consumers wait: no broker of {term.group} is running; start one of them"
            return
        yield from self._without_consumer(unit, term)
        if term.group != lists.head:
            yield from self._endless(term)

    def _without_consumer(self, unit: UnitState, term: Term) -> Iterator[str]:
        idle = [leader.group for leader in unit.consumers if leader.client is None]
        others_wait = term.group != unit.lists.head or len(unit.lists.consume) > 1
        if others_wait and idle:
            yield f"{term.group} is held by groups without a running consumer: {', '.join(idle)}; start them"
        elif others_wait and not unit.consumers:
            yield f"{term.group} waits for its first consumer group; start a consumer"
        else:
            for group in idle:
                if unit.waiting.get(group, 0):
                    yield f"consumers wait: {group} has no running consumer for {unit.waiting[group]} messages; start one"
        for group, client in sorted(unit.cut_off.items()):
            yield (
                f"consumers wait: {client}, the active consumer of {group}, has no connection to a broker of {term.group}; check"
                " the network between them"
            )

    def _endless(self, term: Term) -> Iterator[str]:
        """Yield why a term cannot end: it ends when a broker that is certain to have all its messages reports them consumed."""
        members = self.groups[term.group].members
        speaker = MASTER if MASTER in members else SLAVE
        if speaker in members and not members[speaker].complete:
            partner = "slave" if speaker == MASTER else "master"
            why = members[speaker].fault or "it restarted, and is not yet in sync with its partner"
            yield (
                f"epoch {term.epoch} of {term.group} cannot end, because broker {speaker} may not have all its messages: "
                f"{why}; start its"
                f" {partner}, or check replication"
            )

    def _lost(self, unit: UnitState) -> Iterator[str]:
        for group, count in sorted(unit.deleted.items()):
            yield (
                f"{group} deleted {count} messages that were not consumed, because its disk was full; its log lists them. "
                "Free its disk; this is shown until it restarts"
            )

    def _unknown(self, unit: UnitState) -> Iterator[str]:
        groups = dict.fromkeys((*unit.lists.send[:1], *(term.group for term in unit.lists.consume)))
        for group in groups:
            addresses = [member.address for member in self.groups[group].members.values()]
            silent = [address for address in addresses if address in self.silent]
            for address in silent:
                yield (
                    f"not known: broker {address} is connected to the coordinator, but does not answer this command; check the"
                    " network"
                )
            if group in unit.backlog and unit.backlog[group] is None and addresses and not silent:
                yield f"the backlog of {group} is not known, because no broker of it reports it; check its log"

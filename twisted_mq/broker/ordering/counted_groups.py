"""Keeps the consumer groups whose backlog counts: those with a node below the unit, which all brokers see.

The first broker that a group pulls from creates its node, or its own candidates do. It counts until an operator deletes it.
A coordinator that was restored from an older state has forgotten the groups that came later. The committed offsets of each broker
still name them, so they count again before a term ends that they may not have consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.ordering.units import BrokerUnit
from twisted_mq.coordination.interfaces import Conflict, CoordinationError, Delete, ICoordinator
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.logs import Logger
from twisted_mq.ordering.paths import consumer_group_path, consumers_path


class CountedGroups:
    """The counted groups. `noted(unit)` is called when another group of the unit counts; `committed` returns the existing groups
    that have an offset on a topic at this broker.
    """

    log = Logger()

    def __init__(
        self,
        coordinator: ICoordinator,
        noted: Callable[[BrokerUnit], object],
        committed: Callable[[str], Collection[str]],
    ) -> None:
        self._coordinator = coordinator
        self._committed = committed
        self._noted = noted
        self._noting: set[tuple[str, str, str]] = set()

    async def read(self, unit: BrokerUnit) -> None:
        """Ask again which groups count, and count those that the coordinator has forgotten. Fails as its calls do."""
        path = consumers_path(unit.topic, unit.name)
        known = frozenset(await self._coordinator.children(path))
        forgotten = sorted(set(self._committed(unit.topic)) - known)
        if forgotten:
            self.log.warn("groups have offsets here and did not count, they count again: {p} {g}", p=path, g=forgotten)
            paths = [consumer_group_path(group, unit.topic, unit.name) for group in forgotten]
            await make_paths(self._coordinator, paths)
        unit.consumer_groups = known.union(forgotten)

    def note(self, unit: BrokerUnit, consumer_group: str) -> None:
        """Count a group, soon."""
        key = (unit.topic, unit.name, consumer_group)
        if key not in self._noting:
            self._noting.add(key)
            noting = defer.ensureDeferred(self._note(unit, consumer_group))
            noting.addErrback(self._failed).addBoth(lambda _: self._noting.discard(key))

    async def _note(self, unit: BrokerUnit, consumer_group: str) -> None:
        path = consumer_group_path(consumer_group, unit.topic, unit.name)
        try:
            await make_paths(self._coordinator, [path])
        except CoordinationError as error:
            self.log.warn("group not counted, its pulls wait: {path} {e}", path=path, e=error)
            return
        unit.consumer_groups |= {consumer_group}
        self._noted(unit)

    def forget(self, unit: BrokerUnit, consumer_group: str) -> None:
        """Stop counting a group, unless it has a living candidate."""
        defer.ensureDeferred(self._forget(unit, consumer_group)).addErrback(self._failed)

    async def _forget(self, unit: BrokerUnit, consumer_group: str) -> None:
        path = consumer_group_path(consumer_group, unit.topic, unit.name)
        try:
            if await self._coordinator.read(path) is not None:
                await self._coordinator.commit([Delete(path)])
            unit.consumer_groups -= {consumer_group}
        except Conflict:
            self.log.warn("deleted group still counts, one of its consumers is a candidate: {path}", path=path)
        except CoordinationError as error:
            self.log.warn("deleted group still counts, delete it again: {path} {e}", path=path, e=error)

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("consumer groups of an ordered unit", reason)

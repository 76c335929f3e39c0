"""Declares ordered topics in the coordinator, with the empty lists of their units, and removes declarations."""

from __future__ import annotations

from twisted_mq.coordination.interfaces import Conflict, Create, Delete, ICoordinator, Operation, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.documents import encode_lists, encode_topic
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import LEADERS, ROOTS, topic_path, unit_path

AT_ONCE = 1000
"""Nodes of units in one change of the coordinator."""


async def declare(coordinator: ICoordinator, declared: OrderedTopic) -> None:
    """Declare the topic and all its units; existing units stay as they are, and the groups become those of `declared`.

    Fails as `commit` does.
    """
    await make_paths(coordinator, ROOTS)
    path = topic_path(declared.topic)
    there = set(await coordinator.children(path))
    missing: list[Operation] = [
        Create(unit_path(declared.topic, unit), encode_lists(Lists())) for unit in declared.units if unit not in there
    ]
    known, document = await coordinator.read(path), encode_topic(declared)
    if known is None:
        missing.insert(0, Create(path, document))
    elif known.data != document:
        missing.insert(0, Put(path, document, known.version))
    for begin in range(0, len(missing), AT_ONCE):
        await coordinator.commit(missing[begin : begin + AT_ONCE])


async def take_back(coordinator: ICoordinator, topic: str) -> None:
    """Remove the declaration of a topic; no broker takes its sends from then on. Fails as `commit` does."""
    path = topic_path(topic)
    units = [Delete(unit_path(topic, unit)) for unit in await coordinator.children(path)]
    for begin in range(0, len(units), AT_ONCE):
        await coordinator.commit(units[begin : begin + AT_ONCE])
    await coordinator.commit([Delete(path)])
    await _delete_below(coordinator, f"{LEADERS}/{topic}")


async def _delete_below(coordinator: ICoordinator, path: str) -> None:
    """Delete a node and all below it, except nodes that others create again meanwhile."""
    for name in await coordinator.children(path):
        await _delete_below(coordinator, f"{path}/{name}")
    try:
        await coordinator.commit([Delete(path)])
    except Conflict:
        return

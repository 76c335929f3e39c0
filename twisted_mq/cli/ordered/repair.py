"""Repairs lists that are older than the stores, after the coordinator was restored from an older state."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.ordered.session import OrderCommandSession
from twisted_mq.client.ordered.group_states import GroupState, read_groups
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.coordination.election import DIGITS
from twisted_mq.coordination.interfaces import Conflict, Create, Delete, ICoordinator, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.documents import DocumentFault, encode_lists, read_lists
from twisted_mq.ordering.lists import Lists
from twisted_mq.ordering.paths import consumer_group_path, producers_path, unit_path
from twisted_mq.ordering.rules import repaired
from twisted_mq.protocol.text.json_value import Json

COLUMNS = ("queue", "epoch", "consume", "stores", "epoch after", "consume after")
MOST_AT_ONCE = 500
"""Numbers of candidates that are used up in one change."""


@attrs.frozen
class Repair:
    """The repair of one unit: its lists as they are at `version`, and after it."""

    unit: str
    version: int
    before: Lists
    after: Lists

    def row(self) -> tuple[object, ...]:
        """Return the repair as a row under COLUMNS."""
        stores = " ".join(f"{mark.group}:{mark.epoch}" for mark in self.before.stores)
        return self.unit, self.before.epoch, _terms(self.before), stores, self.after.epoch, _terms(self.after)

    def as_json(self) -> dict[str, Json]:
        """Return the same as an object."""
        return {
            "unit": self.unit,
            "epoch": self.before.epoch,
            "consume": _terms(self.before).split(),
            "stores": {mark.group: mark.epoch for mark in self.before.stores},
            "epochAfter": self.after.epoch,
            "consumeAfter": _terms(self.after).split(),
        }


async def find_repairs(session: OrderCommandSession, topic: str, without: Collection[str]) -> list[Repair]:
    """Return the repairs of all units whose lists are older than a store.

    Raises CliError if a group did not report what its store holds, unless it is one of `without`.
    """
    declared = await read_topic(session.coordinator, topic)
    found = [await _find(session.coordinator, topic, unit) for unit in declared.units]
    repairs = [repair for repair in found if repair is not None]
    for repair in repairs:
        named = {*declared.groups, *(term.group for term in repair.before.consume)}
        silent = sorted(named - {mark.group for mark in repair.before.stores} - set(without))
        if silent:
            raise CliError(
                f"queue {repair.unit}: the contents of the stores of {', '.join(silent)} are not known",
                "start a broker of each. If all stores of a group are lost, use --without GROUP: its messages are lost",
            )
    return repairs


async def _find(coordinator: ICoordinator, topic: str, unit: str) -> Repair | None:
    path = unit_path(topic, unit)
    node = await coordinator.read(path)
    if node is None:
        raise CliError(f"{path} is missing", "declare the topic again: mq order create")
    try:
        lists = read_lists(path, node.data)
    except DocumentFault as fault:
        raise CliError(f"{fault}", fault.remedy) from fault
    return None if lists.overtaken_by is None else Repair(unit, node.version, lists, repaired(lists))


async def write_repairs(session: OrderCommandSession, topic: str, repairs: Collection[Repair]) -> None:
    """Write the lists of the repairs, after everything else that the coordinator forgot. Raises CliError."""
    coordinator = session.coordinator
    groups = sorted({mark.group for repair in repairs for mark in repair.before.stores})
    consumers = await _consumer_groups(session, topic, (await read_groups(coordinator, groups)).values())
    for repair in repairs:
        await make_paths(coordinator, [consumer_group_path(one, topic, repair.unit) for one in consumers])
        leader = max(mark.leader for mark in repair.before.stores)
        await _pass_numbers(coordinator, producers_path(topic, repair.unit), leader)
        try:
            path = unit_path(topic, repair.unit)
            await coordinator.commit([Put(path, encode_lists(repair.after), repair.version)])
        except Conflict as error:
            raise CliError(f"queue {repair.unit}: its lists have changed", "run the command again") from error


async def _consumer_groups(session: OrderCommandSession, topic: str, states: Collection[GroupState]) -> list[str]:
    """Return the consumer groups that have committed offsets at a broker: what they have not consumed counts."""
    found: set[str] = set()
    for state in states:
        for member in state.members.values():
            found |= set(await session.admin.consumer_groups(member.address, topic))
    return sorted(found)


async def _pass_numbers(coordinator: ICoordinator, path: str, number: int) -> None:
    """Use up the numbers of candidates below a path up to `number`, so that the next leader's term is above it."""
    await make_paths(coordinator, [path])
    missing = 1
    while missing > 0:
        create = Create(f"{path}/passed-", sequential=True)
        made = await coordinator.commit([create] * min(missing, MOST_AT_ONCE))
        await coordinator.commit([Delete(one) for one in made])
        missing = number - int(made[-1][-DIGITS:])


def _terms(lists: Lists) -> str:
    return " ".join(f"{term.group}:{term.epoch}" for term in lists.consume)

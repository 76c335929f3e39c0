"""Applies an event to a unit's lists in the coordinator: read, apply the rule, write unless another client wrote meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.coordination.interfaces import Check, Conflict, Create, Delete, ICoordinator, Operation, Put
from twisted_mq.ordering.documents import decode_lists, encode_lists, read_lists
from twisted_mq.ordering.health import MASTER, SLAVE
from twisted_mq.ordering.lists import Lists
from twisted_mq.ordering.paths import member_path, unit_path
from twisted_mq.ordering.rules import Event, Fault, Ready, Reported, apply

ATTEMPTS = 8

CATCHING_UP = "/catching-up"
"""A node that exists only within a change."""


async def change(
    coordinator: ICoordinator, topic: str, unit: str, event: Event, fault: Fault, also: Sequence[Operation] = ()
) -> Lists:
    """Return the lists after the event. They are written when this fires, together with `also`.

    Fails with a Refused, with DocumentFault, and as `commit` does: with Conflict if the unit is not declared, if
    others were quicker each time, or if a group's health is not as `fault` says. After NoAnswer it is not known
    whether they were written; the same event again does no harm.
    """
    path = unit_path(topic, unit)
    decode = read_lists if isinstance(event, Reported) else decode_lists
    for attempt in range(ATTEMPTS):
        node = await coordinator.read(path)
        if node is None:
            raise Conflict(f"{path} is missing: declare the topic with mq order create")
        before = decode(path, node.data)
        after = apply(before, event, fault)
        if after is before:
            return before
        try:
            checks = _checks(before, after, event)
            await coordinator.commit([Put(path, encode_lists(after), node.version), *checks, *also])
            return after
        except Conflict:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


async def catch_up(coordinator: ICoordinator) -> None:
    """Fire when every later read is at least as new as this call. Fails as `commit` does.

    The server of an ensemble on which a session begins may lag behind the others; after a change it has everything before that.
    """
    await coordinator.commit(is_absent(CATCHING_UP))


def is_absent(path: str) -> list[Operation]:
    """Return operations that fail with Conflict if the node exists. Its parent has to exist."""
    return [Create(path), Delete(path)]


def _checks(before: Lists, after: Lists, event: Event) -> list[Operation]:
    """Return checks that both brokers of a group that becomes the head, or joins the list, are there at that moment."""
    joins = event.group if isinstance(event, Ready) else None
    group = after.head if after.epoch != before.epoch else joins
    return [] if group is None else [Check(member_path(group, broker_id)) for broker_id in (MASTER, SLAVE)]

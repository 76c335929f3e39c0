"""Plans maintenance: retires a group and restores it, hands a queue over to another group."""

from __future__ import annotations

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.ordered.session import OrderCommandSession
from twisted_mq.client.ordered.group_states import read_groups
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.coordination.interfaces import Conflict, Create, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.changes import change
from twisted_mq.ordering.documents import DocumentFault, GroupWish, decode_lists, encode_group
from twisted_mq.ordering.lists import WHOLE_TOPIC, Lists
from twisted_mq.ordering.paths import BROKERS, GROUPS, TOPICS, group_path, topic_path, unit_path
from twisted_mq.ordering.rules import Moved, Refused

LOOK_SECONDS = 0.2
"""The interval at which the send lists are checked for a group."""


async def wish(session: OrderCommandSession, group: str, *, retired: bool) -> None:
    """Record the wish for a group. Raises CliError if no ordered topic and no broker knows it."""
    coordinator = session.coordinator
    await _check_known(session, group)
    await make_paths(coordinator, [GROUPS])
    data = encode_group(GroupWish(retired))
    try:
        await coordinator.commit([Create(group_path(group), data)])
    except Conflict:
        await coordinator.commit([Put(group_path(group), data, None)])


async def _check_known(session: OrderCommandSession, group: str) -> None:
    known = {
        group for topic in await _topics(session) for group in (await read_topic(session.coordinator, topic)).groups
    }
    known |= set(await session.coordinator.children(BROKERS))
    if group not in known:
        names = ", ".join(sorted(known)) or "none"
        raise CliError(
            f"no ordered topic and no broker connected to the coordinator has the group {group!r}",
            f"they have: {names}",
        )


async def _topics(session: OrderCommandSession) -> tuple[str, ...]:
    return await session.coordinator.children(TOPICS)


async def sending_units(session: OrderCommandSession, group: str) -> list[str]:
    """Return TOPIC/UNIT of each unit whose send list has the group."""
    found = []
    for topic in await _topics(session):
        for unit in await session.coordinator.children(topic_path(topic)):
            lists = await _lists(session, topic, unit)
            if lists is not None and group in lists.send:
                found.append(f"{topic}/{unit}")
    return found


async def _lists(session: OrderCommandSession, topic: str, unit: str) -> Lists | None:
    node = await session.coordinator.read(unit_path(topic, unit))
    try:
        return None if node is None else decode_lists(unit_path(topic, unit), node.data)
    except DocumentFault:
        return None  # no producer sends there


async def left_send_lists(session: OrderCommandSession, group: str, seconds: float) -> list[str]:
    """Return the units that still have the group in their send lists after at most that time; empty when it has left all."""
    limit_ms = session.admin.now_ms() + seconds * 1000
    while (units := await sending_units(session, group)) and session.admin.now_ms() < limit_ms:
        await session.admin.sleep(LOOK_SECONDS)
    return units


async def move(session: OrderCommandSession, topic: str, queue: str, group: str) -> Lists:
    """Hand the sends of a queue over. Raises CliError if a rule forbids it now."""
    declared = await read_topic(session.coordinator, topic)
    if queue not in declared.units:
        units = WHOLE_TOPIC if declared.together else f"0 to {declared.queues - 1}"
        raise CliError(f"topic {topic} has no queue {queue!r} that moves by itself", f"it has {units}")
    if group not in declared.groups:
        raise CliError(f"group {group!r} is not one of topic {topic}", f"it has {', '.join(declared.groups)}")
    states = await read_groups(session.coordinator, declared.groups)
    try:
        return await change(
            session.coordinator,
            topic,
            queue,
            Moved(group),
            lambda one: states[one].obstacle() if one in states else None,
        )
    except Refused as error:
        raise CliError(f"not moved: {error}", f"mq order show {topic} shows the lists") from error
    except DocumentFault as fault:
        raise CliError(f"topic {topic} queue {queue} is blocked: {fault}", fault.remedy) from fault
    except Conflict as error:
        raise CliError(
            f"not moved: {error}", "a broker of the group is not running, or the lists changed: try again"
        ) from error

"""Shows consumer groups: the list, a group's clients, lag and subscriptions; moves its offsets after a preview."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.group_settings import all_masters, group_configs
from twisted_mq.admin.groups import consume_stats, consumer_connection, running_info
from twisted_mq.admin.lag import QueueLag, groups_among, queue_lags
from twisted_mq.admin.offsets import TO_THE_END, Move, goals_of_time, planned_moves, reset_members, reset_stored
from twisted_mq.console.answers import Answer, BadInput, NotThere, Page, Redirect
from twisted_mq.console.forms import link, when
from twisted_mq.console.pages.group_settings import at_brokers
from twisted_mq.console.subscriptions import conflicts
from twisted_mq.console.visit import ListPage, Visit, cut
from twisted_mq.console.wide import ManyQueues, lag_of, move_of, queues_of_group
from twisted_mq.protocol.bodies import ConsumerConnection, ConsumerRunningInfo, ConsumeStats, MessageQueue
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import ResetOffsetRequestHeader
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS, RETRY_PREFIX, TOOLS_GROUPS
from twisted_mq.protocol.names.versions import version_name
from twisted_mq.remoting.errors import RemotingError

MOST_MEMBERS = 64
"""The most members that are asked for their state; further members of a group are only listed."""

GOALS = {"time": "a time", "earliest": "the first message", "latest": "the end"}
FIRST_MS = 0


@attrs.frozen
class ConsumerGroupState:
    """The state of a group; None for values that no broker can report."""

    name: str
    connection: ConsumerConnection | None = None
    lags: list[QueueLag] | None = None
    rate: float | None = None
    queues: ManyQueues | None = None
    """Its queues, if they are too many to collect how far it is in each."""

    @property
    def members(self) -> int:
        return 0 if self.connection is None else len(self.connection.connection_set)

    @property
    def topics(self) -> list[str]:
        names = {one.queue.topic for one in self.lags or ()} if self.queues is None else {*self.queues.routes}
        return sorted(name for name in names if not name.startswith(RETRY_PREFIX))

    @property
    def waiting(self) -> int | None:
        return None if self.lags is None else sum(one.waiting for one in self.lags)

    @property
    def behind_seconds(self) -> int | None:
        known = [one.behind_seconds for one in self.lags or () if one.behind_seconds is not None]
        return max(known, default=None)


async def group_state(admin: AdminCalls, name: str) -> ConsumerGroupState:
    """Ask the group's brokers for its state."""
    connection: ConsumerConnection | None = None
    stats: ConsumeStats | None = None
    try:
        connection = await consumer_connection(admin, name)
    except (ProtocolError, RemotingError):
        connection = None  # no member is connected, or none knows
    try:
        queues = await queues_of_group(admin, name)
        if queues.are_many:
            return ConsumerGroupState(name, connection, queues=queues)
        stats = await consume_stats(admin, name)
    except (ProtocolError, RemotingError):
        return ConsumerGroupState(name, connection)
    return ConsumerGroupState(name, connection, queue_lags(stats, admin.now_ms()), stats.consume_tps)


async def groups(visit: Visit) -> Answer:
    """Show a page of the list."""
    wanted = visit.text("q").lower()
    every = await _all_groups(visit.admin)
    names = [name for name in every if wanted in name.lower()]
    shown = cut(names, visit.number("page", "The page", 1, 1))
    rows = await concurrently(lambda name: group_state(visit.admin, name), shown.rows)
    return Page("groups.html", {"slice": shown, "rows": rows, "q": visit.text("q"), "total": len(every)})


async def _all_groups(admin: AdminCalls) -> list[str]:
    """Return groups with settings at a master, or with a retry topic; without those of servers and tools."""
    found = set(groups_among(await admin.topic_list()))
    for names in await concurrently(lambda address: _known_groups(admin, address), (await all_masters(admin)).values()):
        found.update(names)
    return sorted(name for name in found - BROKERS_GROUPS - TOOLS_GROUPS if not name.startswith("CID_RMQ_SYS_"))


async def _known_groups(admin: AdminCalls, address: str) -> list[str]:
    """Return a broker's groups; None if it does not report them."""
    try:
        return list(await group_configs(admin, address))
    except (ProtocolError, RemotingError):
        return []


@attrs.frozen
class GroupClient:
    """A client of a group; `info` is its own report, None if it does not answer."""

    client_id: str
    address: str
    language: str
    version: str
    info: ConsumerRunningInfo | None = None

    @property
    def queues(self) -> list[MessageQueue] | None:
        return None if self.info is None else sorted({*self.info.mq_table, *self.info.mq_pop_table})


async def group(visit: Visit) -> Answer:
    """Show a group."""
    name = visit.needed("name", "The group's name")
    state = await group_state(visit.admin, name)
    settings = await at_brokers(visit.admin, name)
    is_seen = state.connection or state.lags is not None or state.queues or any(one.config for one in settings)
    if not is_seen and name not in groups_among(await visit.admin.topic_list()):
        raise NotThere(f"No broker has a group {name}.")
    members = await _members(visit.admin, state)
    infos = {one.client_id: one.info for one in members if one.info is not None}
    values = {
        "state": state,
        "slice": await _lags(visit, state),
        "members": members,
        "holders": _holders(members),
        "conflicts": conflicts(infos),
        "goals": GOALS,
        "silent": sum(one.info is None for one in members),
        "settings": settings,
        "config": next((one.config for one in settings if one.config is not None), None),
    }
    return Page("group.html", values)


async def _lags(visit: Visit, state: ConsumerGroupState) -> ListPage[QueueLag]:
    """Return a page of how far the group is in each queue."""
    number, queues = visit.number("page", "The page", 1, 1), state.queues
    if queues is None:
        return cut(state.lags or (), number)
    page = queues.page(number)
    rows = await concurrently(lambda queue: lag_of(visit.admin, queues, state.name, queue), page.rows)
    return ListPage(rows, page.number, page.pages, page.total)


async def _members(admin: AdminCalls, state: ConsumerGroupState) -> list[GroupClient]:
    found = [
        GroupClient(one.client_id, one.client_addr, one.language, version_name(one.version))
        for one in (state.connection.connection_set if state.connection else ())
    ]
    asked = await concurrently(lambda one: _with_info(admin, state.name, one), found[:MOST_MEMBERS])
    return [*asked, *found[MOST_MEMBERS:]]


async def _with_info(admin: AdminCalls, group: str, member: GroupClient) -> GroupClient:
    try:
        return attrs.evolve(member, info=await running_info(admin, group, member.client_id))
    except (ProtocolError, RemotingError):
        return member


def _holders(members: list[GroupClient]) -> dict[MessageQueue, str]:
    """Return the client that holds each queue."""
    return {queue: member.client_id for member in members for queue in member.queues or ()}


# moving offsets


@attrs.frozen
class Goal:
    """The place to which a form moves a group; -1 ms for the end of each queue."""

    group: str
    topic: str
    kind: str
    time_ms: int

    def __str__(self) -> str:
        return f"{when(self.time_ms)} UTC" if self.kind == "time" else GOALS[self.kind]


def _goal(visit: Visit) -> Goal:
    """Return the goal of a form. Raises BadInput."""
    group, topic = visit.needed("name", "The group's name"), visit.needed("topic", "The topic")
    kind = visit.text("to", "time")
    if kind not in GOALS:
        raise BadInput(f"{kind!r} is not a position: choose a time, the first message or the end.")
    if kind != "time":
        return Goal(group, topic, kind, FIRST_MS if kind == "earliest" else TO_THE_END)
    time_ms = visit.time_ms("time", "The time")
    if time_ms is None:
        raise BadInput("Enter the time that the group should be reset to.")
    return Goal(group, topic, kind, time_ms)


async def preview(visit: Visit) -> Answer:
    """Show what moving would do, without changing anything."""
    admin, goal, number = visit.admin, _goal(visit), visit.number("page", "The page", 1, 1)
    route = await admin.topic_route(goal.topic)
    queues = ManyQueues.of({goal.topic: route}, readable=True)
    if queues.are_many:
        page = queues.page(number)
        moves = await concurrently(lambda queue: move_of(admin, queues, goal.group, queue, goal.time_ms), page.rows)
        shown = ListPage(moves, page.number, page.pages, page.total)
    else:
        moves = await planned_moves(admin, goal.group, await goals_of_time(admin, goal.topic, route, goal.time_ms))
        shown = cut(moves, number)
    members = (await group_state(admin, goal.group)).members
    values = {"goal": goal, "slice": shown, "sums": _sums(moves), "members": members, "is_part": queues.are_many}
    fields = {"name": goal.group, "topic": goal.topic, "to": goal.kind, "time": visit.text("time") or None}
    return Page("reset.html", {**values, "fields": fields})


def _sums(moves: list[Move]) -> dict[str, int]:
    return {"again": sum(one.again for one in moves), "skipped": sum(one.skipped for one in moves)}


async def reset(visit: Visit) -> Answer:
    """Move the group, and its members if some are connected."""
    admin, goal = visit.admin, _goal(visit)
    route = await admin.topic_route(goal.topic)
    header = ResetOffsetRequestHeader(group=goal.group, topic=goal.topic, timestamp=goal.time_ms, is_force=True)
    table = await reset_members(admin, route, header)
    if table is None:
        stored = reset_stored(admin, goal.group, goal.topic, goal.time_ms, True, route)
        moved = len([done async for done in stored])
    else:
        moved = len(table)
    visit.tell(f"{goal.group} is at {goal} in {moved} queues of {goal.topic}.", good=moved > 0)
    return Redirect(link("/group", name=goal.group))

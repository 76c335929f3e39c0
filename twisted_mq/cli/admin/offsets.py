"""Implements `mqadmin resetOffsetByTime`, `skipAccumulatedMessage`, `cloneGroupOffset`: move the offsets of a group.

With --dry-run they show, queue by queue, where the group is, where it would be, and when those messages were stored.
"""

from __future__ import annotations

from twisted_mq.admin.groups import consume_stats, route_topic
from twisted_mq.admin.offsets import (
    TO_THE_END,
    Goals,
    Move,
    commit_offset,
    goals_of_time,
    planned_moves,
    reset_at,
    reset_members,
    reset_stored,
)
from twisted_mq.admin.queues import broker_address, offset_at
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import date_text
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.cli.output import progress
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.headers import ResetOffsetRequestHeader

OFFSETS = TextTable.of("{:<40.32}  {:<40}  {:<40}", broker="#brokerName", queueId="#queueId", offset="#offset")
MOVES = TextTable.of(
    "{:<32.32}  {:<4}  {:<20}  {:<20}  {:<12}  {:<12}  {}",
    broker="#Broker Name",
    queueId="#QID",
    consumerOffset="#Consumer Offset",
    newOffset="#New Offset",
    again="#Again",
    skipped="#Skipped",
    storedAt="#Stored",
)


def _table(last: str) -> TextTable:
    return TextTable.of(
        "{:<20.32}  {:<20}  {:<20}  {:<20}  {:<20}  {:<20}",
        broker="#brokerName",
        queueId="#queueId",
        brokerOffset="#brokerOffset",
        consumerOffset="#consumerOffset",
        timestampOffset="#timestampOffset",
        newOffset=last,
    )


RESET, SKIPPED = _table("#resetOffset"), _table("#rollbackOffset")


async def reset_offset_by_time(admin: AdminContext, line: CommandLine) -> None:
    group, topic, text = line.value("g"), line.value("t"), line.value("s")
    time_ms = line.time("s", admin.now_ms())
    if "b" in line and line.number("q", -1) >= 0:
        await _reset_queue(admin, line, time_ms)
        return
    if "dry-run" in line:
        await _preview(admin, line, time_ms)
        return
    force, cluster = line.is_true("f", True), line.value("c") or None
    words = f"topic[{topic}], force[{str(force).lower()}], timestamp(string)[{text}], timestamp(long)[{time_ms}]"
    table = await _reset_or_none(admin, line, time_ms)
    if table is None:
        admin.say(f"reset consumer offset by specified consumerGroup[{group}], {words}")
        await reset_offline(admin, group, topic, time_ms, force, route_topic(topic, cluster), RESET)
        return
    admin.say(f"start reset consumer offset by specified, group[{group}], {words}")
    _show(admin, table)


async def skip_accumulated_message(admin: AdminContext, line: CommandLine) -> None:
    if "dry-run" in line:
        await _preview(admin, line, TO_THE_END)
        return
    table = await _reset_or_none(admin, line, TO_THE_END)
    if table is None:
        topic, force = line.value("t"), line.is_true("f", True)
        await reset_offline(admin, line.value("g"), topic, TO_THE_END, force, topic, SKIPPED)
    else:
        _show(admin, table)


def _show(admin: AdminContext, table: dict[MessageQueue, int]) -> None:
    admin.say(OFFSETS.head)
    for queue in sorted(table):
        admin.row(OFFSETS, queue.broker_name, queue.queue_id, table[queue])


async def _reset_or_none(admin: AdminContext, line: CommandLine, time_ms: int) -> dict[MessageQueue, int] | None:
    """Return the new offsets, which the brokers sent to the consumers; None if no consumer is connected."""
    topic = line.value("t")
    route = await admin.topic_route(route_topic(topic, line.value("c") or None))
    header = ResetOffsetRequestHeader(
        group=line.value("g"), topic=topic, timestamp=time_ms, is_force=line.is_true("f", True)
    )
    return await reset_members(admin, route, header)


async def _reset_queue(admin: AdminContext, line: CommandLine, time_ms: int) -> None:
    """Move one queue of one broker to an offset or a time."""
    group, topic, address, queue_id = line.value("g"), line.value("t"), line.value("b"), line.number("q", 0)
    queue = MessageQueue(topic, "", queue_id)
    offset = line.number("o", 0) if "o" in line else await offset_at(admin, address, queue, time_ms)
    if "dry-run" in line:
        await show_moves(admin, await planned(admin, group, {address: {queue: offset}}))
        return
    admin.say(
        f"start reset consumer offset by specified, group[{group}], topic[{topic}], queueId[{queue_id}], "
        f"broker[{address}], timestamp(string)[{line.value('s')}], timestamp(long)[{time_ms}]"
    )
    admin.say(f"reset consumer offset to {offset}", queueId=queue_id, offset=offset)
    if offset > 0:
        await commit_offset(admin, address, group, queue, offset)
        await reset_at(admin, address, ResetOffsetRequestHeader(
            group=group, topic=topic, queue_id=queue_id, offset=offset, timestamp=0, is_force=False))  # fmt: skip


async def clone_group_offset(admin: AdminContext, line: CommandLine) -> None:
    source, target, topic = line.value("s"), line.value("d"), line.value("t")
    stats = await consume_stats(admin, source)
    route = await admin.topic_route(topic)
    held = {
        queue: offset.consumer_offset for queue, offset in stats.offset_table.items() if offset.consumer_offset >= 0
    }
    if "dry-run" in line:
        goals: dict[str, dict[MessageQueue, int | None]] = {}
        for queue, offset in held.items():
            goals.setdefault(broker_address(route, queue.broker_name), {})[queue] = offset
        await show_moves(admin, await planned(admin, target, goals))
        return
    for queue, offset in sorted(held.items()):
        await commit_offset(admin, broker_address(route, queue.broker_name), target, queue, offset)
    admin.say(
        f"clone group offset success. srcGroup[{source}], destGroup=[{target}], topic[{topic}]",
        srcGroup=source, destGroup=target, topic=topic, queues=len(held),
    )  # fmt: skip


async def _preview(admin: AdminContext, line: CommandLine, time_ms: int) -> None:
    """Show where a reset to a time would move the group."""
    topic = line.value("t")
    route = await admin.topic_route(route_topic(topic, line.value("c") or None))
    goals = await goals_of_time(admin, topic, route, time_ms)
    moves = await planned(admin, line.value("g"), goals)
    await show_moves(admin, moves if line.is_true("f", True) else [move for move in moves if move.goes_back])


async def reset_offline(
    admin: AdminContext, group: str, topic: str, time_ms: int, force: bool, route_topic: str, table: TextTable
) -> None:
    """Move a group without a running consumer to a time, -1 for the end, and print each queue."""
    route = await admin.topic_route(route_topic)
    admin.say(table.head)
    async for done in reset_stored(admin, group, topic, time_ms, force, route):
        admin.row(
            table,
            done.broker_name,
            done.queue_id,
            done.broker_offset,
            done.consumer_offset,
            done.timestamp_offset,
            done.rollback_offset,
        )


async def planned(admin: AdminContext, group: str, goals: Goals) -> list[Move]:
    """Return the moves, with a bar on a terminal while they are computed."""
    total = sum(map(len, goals.values()))
    with progress("queues", total, hidden=total < 10) as advance:
        return await planned_moves(admin, group, goals, advance)


async def show_moves(admin: AdminContext, moves: list[Move]) -> None:
    """Print how many messages would come again or be skipped, and from when."""
    admin.say(MOVES.head)
    for move in moves:
        stored = None if move.stored_ms is None else date_text(move.stored_ms)
        row = MOVES.value(
            [move.queue.broker_name, move.queue.queue_id, move.before, move.after, move.again, move.skipped, stored]
        )
        shown = {name: "-" if value is None else value for name, value in row.items()}
        admin.say_value(MOVES.line(list(shown.values())), row)
    again, skipped = sum(move.again for move in moves), sum(move.skipped for move in moves)
    admin.say(f"\n{again} messages would come again, {skipped} would be skipped. Nothing was changed.")

"""Shows a preview of moving a group's offsets: how many messages would come again or be skipped, and from when."""

from __future__ import annotations

from twisted_mq.admin.offsets import Goals, Move, planned_moves
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.java_format import date_text
from twisted_mq.cli.admin.tables import Table
from twisted_mq.cli.output import progress

MOVES = Table.of(
    "{:<32.32}  {:<4}  {:<20}  {:<20}  {:<12}  {:<12}  {}",
    broker="#Broker Name",
    queueId="#QID",
    consumerOffset="#Consumer Offset",
    newOffset="#New Offset",
    again="#Again",
    skipped="#Skipped",
    storedAt="#Stored",
)


async def planned(admin: AdminContext, group: str, goals: Goals) -> list[Move]:
    """Return the moves, with a bar on a terminal while they are computed."""
    total = sum(map(len, goals.values()))
    with progress("queues", total, hidden=total < 10) as advance:
        return await planned_moves(admin, group, goals, advance)


async def show_moves(admin: AdminContext, moves: list[Move]) -> None:
    """Print the table and its sums."""
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

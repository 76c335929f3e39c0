"""What moving a group's offsets would do: how many messages would come again or be skipped, and from when they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.groups import broker_stats
from twisted_mq.cli.admin.java_format import date_text
from twisted_mq.cli.admin.queues import pull_at
from twisted_mq.cli.admin.tables import Table
from twisted_mq.cli.output import progress
from twisted_mq.protocol.bodies import ConsumeStats, MessageQueue
from twisted_mq.protocol.errors import BrokerError

Goals = Mapping[str, Mapping[MessageQueue, int | None]]
"""Broker's address -> queue -> the offset to move to; None for the queue's end."""

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


@attrs.frozen
class Move:
    """One queue. `before` is None where the group has no offset; `stored_ms` is of the message at `after`, None at the end."""

    queue: MessageQueue
    address: str
    before: int | None
    after: int
    stored_ms: int | None = None

    @property
    def again(self) -> int:
        """Messages that were consumed and would come once more."""
        return max(0, (self.before or 0) - self.after)

    @property
    def skipped(self) -> int:
        """Messages that would never come."""
        return max(0, self.after - (self.before or 0))

    @property
    def goes_back(self) -> bool:
        return self.before is not None and self.after <= self.before


async def planned_moves(admin: AdminContext, group: str, goals: Goals) -> list[Move]:
    """What would happen to each queue, in order. Changes nothing."""
    total = sum(map(len, goals.values()))
    moves: list[Move] = []
    with progress("queues", total, hidden=total < 10) as advance:
        for address, queues in goals.items():
            for move in await _moves_at(admin, group, address, queues):
                moves.append(attrs.evolve(move, stored_ms=await _stored_ms(admin, move)))
                advance(1)
    return sorted(moves, key=lambda move: move.queue)


async def _moves_at(
    admin: AdminContext, group: str, address: str, queues: Mapping[MessageQueue, int | None]
) -> Iterator[Move]:
    try:
        stats = await broker_stats(admin, address, group)
    except BrokerError:  # the broker does not know the group
        stats = ConsumeStats()
    held = {(queue.topic, queue.queue_id): offset.consumer_offset for queue, offset in stats.offset_table.items()}
    ends = await _ends(admin, address, {queue.topic for queue in queues})
    return (
        Move(queue, address, held.get(key), ends.get(key, 0) if goal is None else goal)
        for queue, goal in queues.items()
        for key in [(queue.topic, queue.queue_id)]
    )


async def _ends(admin: AdminContext, address: str, topics: set[str]) -> dict[tuple[str, int], int]:
    """The end of each queue of these topics at a broker."""
    tables = [(await admin.topic_stats(address, topic)).offset_table for topic in sorted(topics)]
    return {(queue.topic, queue.queue_id): offset.max_offset for table in tables for queue, offset in table.items()}


async def _stored_ms(admin: AdminContext, move: Move) -> int | None:
    found = (await pull_at(admin, move.address, move.queue, move.after, 1)).messages
    return found[0].store_timestamp if found else None


async def show_moves(admin: AdminContext, moves: list[Move]) -> None:
    """The table and its sums."""
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

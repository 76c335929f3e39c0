"""The part of `Admin` that moves the offsets of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from twisted_mq.admin.groups import consume_stats
from twisted_mq.admin.member import AdminMember, answers
from twisted_mq.admin.offsets import TO_THE_END, Goals, Move, goals_of_time, planned_moves, put_offset, reset_at
from twisted_mq.admin.queues import broker_address
from twisted_mq.admin.results import OffsetMove, moment_of
from twisted_mq.client.core.name_checks import check_group
from twisted_mq.client.core.times import Moment, moment_ms
from twisted_mq.protocol.bodies import MessageQueue, TopicRouteData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import ResetOffsetRequestHeader
from twisted_mq.routing.errors import ClientOptionIllegal

Place: TypeAlias = "Moment | Literal['earliest', 'latest'] | Mapping[MessageQueue, int]"
"""A time, the begin or end of all queues, or a mapping of queues to offsets."""

ENDS_MS = {"earliest": 0, "latest": TO_THE_END}


class OffsetAdmin(AdminMember):
    """The methods of `Admin` for the offsets of groups."""

    @answers
    async def reset_offsets(self, group: str, topic: str, *, to: Place, preview: bool = True) -> list[OffsetMove]:
        """Return the move of a group in each queue of a topic, sorted; with `preview=False`, make the moves.

        `to` is a datetime or seconds since 1970 (the first message stored then or later), "earliest", "latest", or a
        mapping of queues to offsets. Members that are connected continue at the new offsets. A group that a broker does
        not have is created there. Raises TopicNotFound, ClientOptionIllegal (an impossible time, queue or offset).
        """
        check_group(group)
        route = await self._route(topic)
        return await self._moved(group, topic, await self._goals(topic, route, to), preview)

    @answers
    async def copy_offsets(self, source: str, target: str, topic: str, *, preview: bool = True) -> list[OffsetMove]:
        """Return the move of `target` to the offset of `source` in each queue; with `preview=False`, make the moves.

        Raises TopicNotFound, and BrokerError for a source that consumed nothing of the topic.
        """
        check_group(target)
        route = await self._route(topic)
        table = (await consume_stats(self._calls, source, topic)).offset_table
        held = {queue: one.consumer_offset for queue, one in table.items() if one.consumer_offset >= 0}
        return await self._moved(target, topic, await self._goals(topic, route, held), preview)

    async def _moved(self, group: str, topic: str, goals: Goals, preview: bool) -> list[OffsetMove]:
        moves = await planned_moves(self._calls, group, goals)
        for move in [] if preview else moves:
            await self._move(group, topic, move)
        return [
            OffsetMove(one.queue, one.before, one.after, moment_of(one.stored_ms), one.again, one.skipped)
            for one in moves
        ]

    async def _goals(self, topic: str, route: TopicRouteData, to: Place) -> Goals:
        """Return the offset to move to in each queue. Raises ClientOptionIllegal."""
        if isinstance(to, Mapping):
            return await self._named_goals(topic, route, to)
        if isinstance(to, str):
            if to not in ENDS_MS:
                raise ClientOptionIllegal(f"to: {to!r} is not a position; use 'earliest', 'latest', a time or offsets")
            return await goals_of_time(self._calls, topic, route, ENDS_MS[to])
        return await goals_of_time(self._calls, topic, route, moment_ms(to, "to"))

    async def _named_goals(self, topic: str, route: TopicRouteData, offsets: Mapping[MessageQueue, int]) -> Goals:
        goals: dict[str, dict[MessageQueue, int | None]] = {}
        for queue, offset in offsets.items():
            if queue.topic != topic:
                raise ClientOptionIllegal(f"to: queue {queue} does not belong to topic {topic}")
            goals.setdefault(broker_address(route, queue.broker_name), {})[queue] = offset
        for address, queues in goals.items():
            table = (await self._calls.topic_stats(address, topic)).offset_table
            for queue in queues:
                span, offset = table.get(queue), offsets[queue]
                if span is None or not span.min_offset <= offset <= span.max_offset:
                    held = "does not exist" if span is None else f"has {span.min_offset} to {span.max_offset}"
                    raise ClientOptionIllegal(f"to: offset {offset} in queue {queue}, which {held}")
        return goals

    async def _move(self, group: str, topic: str, move: Move) -> None:
        """Store the offset, then have the broker reset its members: to this offset, or to the time if it can't."""
        await put_offset(self._calls, move.address, group, move.queue, move.after)
        header = ResetOffsetRequestHeader(
            group=group,
            topic=topic,
            queue_id=move.queue.queue_id,
            offset=move.after,
            timestamp=TO_THE_END if move.stored_ms is None else move.stored_ms,
            is_force=True,
        )
        try:
            await reset_at(self._calls, move.address, header)
        except BrokerError as error:
            if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise

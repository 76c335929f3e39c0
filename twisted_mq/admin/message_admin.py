"""The part of `Admin` that finds messages, and manages dead letters."""

from __future__ import annotations

from twisted_mq.admin.dead_letters import GivenUp, Resent, given_up, resend
from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.found_messages import FOREVER_MS, find_message, messages_of_key
from twisted_mq.admin.member import AdminMember, answers
from twisted_mq.admin.message_value import message_line
from twisted_mq.admin.queues import TopicReader
from twisted_mq.client.core.times import Moment, moment_ms
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX
from twisted_mq.routing.errors import ClientOptionIllegal, TopicNotFound

LIMIT = 32
DEAD_LIMIT = 1000


class MessageAdmin(AdminMember):
    """The methods of `Admin` for messages and dead letters. They read messages without a group: no offset moves."""

    @answers
    async def messages(
        self,
        topic: str,
        *,
        message_id: str | None = None,
        key: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = LIMIT,
    ) -> list[MessageExt]:
        """Return messages by id, by key, or by the time when they were stored, oldest first, at most `limit`.

        `message_id` is what a send returned, or an offset id: it finds messages of the last three days. `since` is
        included, `until` is not; both are datetimes or seconds since 1970. Empty if nothing is found. Raises
        TopicNotFound, ClientOptionIllegal.
        """
        if message_id is not None and (key, since, until) != (None, None, None):
            raise ClientOptionIllegal("message_id cannot be combined with key, since or until")
        _check_limit(limit)
        begin_ms = None if since is None else moment_ms(since, "since")
        end_ms = None if until is None else moment_ms(until, "until")
        await self._route(topic)
        if message_id is None and key is None:
            return await self._stored(topic, begin_ms, end_ms, limit)
        try:
            if message_id is not None:
                return [await find_message(self._calls, topic, message_id, None, known_brokers_alone=True)]
            last_ms = FOREVER_MS if end_ms is None else end_ms - 1
            found = await messages_of_key(self._calls, topic, key or "", limit, begin_ms or 0, last_ms)
        except BrokerError as error:
            if error.response_code in (ResponseCode.NO_MESSAGE, ResponseCode.QUERY_NOT_FOUND):
                return []
            raise
        return sorted(found, key=lambda one: one.store_timestamp)[:limit]

    @answers
    async def dead_letter_groups(self) -> list[GivenUp]:
        """Return each group that has dead letters, sorted, with their number and the number not sent again."""
        return await given_up(self._calls)

    @answers
    async def dead_letters(
        self, group: str, *, since: Moment | None = None, until: Moment | None = None, limit: int = DEAD_LIMIT
    ) -> list[MessageExt]:
        """Return the dead letters of a group, oldest first, at most `limit`; empty for a group without any.

        `since` and `until` limit the time when they became dead letters, as in `messages`.
        """
        _check_limit(limit)
        begin_ms = None if since is None else moment_ms(since, "since")
        end_ms = None if until is None else moment_ms(until, "until")
        return await self._dead(group, begin_ms, end_ms, limit)

    @answers
    async def resend_dead_letters(
        self, group: str, *, message_id: str | None = None, again: bool = False, preview: bool = False
    ) -> list[Resent]:
        """Send dead letters to their original topics, each once, in order; return what was sent.

        The offset of the group GROUP-resent records the position. With `again`, those sent before are sent, too; with
        `message_id`, only that one, and the position stays; with `preview`, nothing is sent. Raises SendFailed,
        AdminError (a message that does not name its topic, a group without dead letters).
        """

        def chosen(message: MessageExt) -> bool:
            return message_id in (message.unique_key, message.msg_id, message.properties.get("DLQ_ORIGIN_MESSAGE_ID"))

        wanted = None if message_id is None else chosen
        try:
            await self._route(DLQ_PREFIX + group)
        except TopicNotFound:
            raise AdminError(
                f"group {group} has no dead letters", "dead_letter_groups() returns the groups that have some"
            ) from None
        return [one async for one in resend(self._calls, group, wanted, again=again, preview=preview)]

    @answers
    async def export_dead_letters(self, group: str, *, limit: int = DEAD_LIMIT) -> list[str]:
        """Return a group's dead letters as JSON lines, oldest first, with the keys of `mq consume --json`."""
        _check_limit(limit)
        return [message_line(one) for one in await self._dead(group, None, None, limit)]

    async def _dead(self, group: str, begin_ms: int | None, end_ms: int | None, limit: int) -> list[MessageExt]:
        try:
            await self._route(DLQ_PREFIX + group)
        except TopicNotFound:
            return []
        return await self._stored(DLQ_PREFIX + group, begin_ms, end_ms, limit)

    async def _stored(self, topic: str, begin_ms: int | None, end_ms: int | None, limit: int) -> list[MessageExt]:
        """Return the oldest messages that were stored in a period."""
        reader = await TopicReader.of(self._calls, topic)
        found: list[MessageExt] = []
        for queue in reader.queues(topic):
            first, last = await reader.span(queue, begin_ms, end_ms)
            of_queue: list[MessageExt] = []
            async for result in reader.pulls(queue, first, last):
                of_queue += [one for one in result.messages if one.queue_offset < last]
                if len(of_queue) >= limit:
                    break
            found += of_queue[:limit]
        return sorted(found, key=lambda one: one.store_timestamp)[:limit]


def _check_limit(limit: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ClientOptionIllegal(f"limit: must be at least 1, got {limit!r}")

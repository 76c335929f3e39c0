"""Finds messages by id, by key or by time; shows a message with its body, its traces and its consumers."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.found_messages import FOREVER_MS, find_message, messages_of_key, traces_of
from twisted_mq.admin.message_tracks import MessageTrack, message_tracks
from twisted_mq.admin.queues import TopicReader, readable_queues
from twisted_mq.console.answers import Answer, BadInput, Download, Page, Redirect
from twisted_mq.console.bodies import VIEWS, body_view
from twisted_mq.console.forms import link, said
from twisted_mq.console.timeline import Timeline, timeline
from twisted_mq.console.visit import ListPage, Visit, cut
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError, RocketMQError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.trace import TRACE_TOPIC
from twisted_mq.remoting.errors import RemotingError

WAYS = {"time": "by time", "key": "by key", "id": "by id"}
MOST_SHOWN = 200
MOST_OF_A_QUEUE = 32
MOST_TRACES = 64


async def messages(visit: Visit) -> Answer:
    """Show the forms, and the result of the one that was sent."""
    way, topic = visit.text("by", "time"), visit.text("topic")
    if way not in WAYS:
        raise BadInput(f"{way!r} is not a way to find messages.")
    if way == "id" and topic and visit.text("id"):
        return Redirect(link("/message", topic=topic, id=visit.text("id")))
    queues = await _queues(visit, topic) if topic and way == "time" else None
    found, problems = await _found(visit, way, topic, queues) if topic else (None, [])
    values = {
        "slice": queues,
        "problems": problems,
        "way": way,
        "ways": WAYS,
        "topic": topic,
        "key": visit.text("key"),
        "id": visit.text("id"),
        "begin": visit.text("begin"),
        "end": visit.text("end"),
        "found": None if found is None else sorted(found, key=lambda one: -one.store_timestamp)[:MOST_SHOWN],
        "most_of_a_queue": MOST_OF_A_QUEUE,
    }
    return Page("messages.html", values)


async def _queues(visit: Visit, topic: str) -> ListPage[MessageQueue]:
    """Return the queues of a topic that a page searches."""
    route = await visit.admin.topic_route(topic)
    return cut(readable_queues(topic, route), visit.number("page", "The page", 1, 1))


async def _found(
    visit: Visit, way: str, topic: str, queues: ListPage[MessageQueue] | None
) -> tuple[list[MessageExt] | None, list[str]]:
    """Return the messages, or None if a form is not filled in, and the brokers that cannot be asked."""
    begin_ms, end_ms = visit.time_ms("begin", "From"), visit.time_ms("end", "To")
    if queues is not None:
        return await _stored_between(visit.admin, topic, queues.rows, begin_ms, end_ms)
    key = visit.text("key")
    if not key:
        return None, []
    try:
        found = await messages_of_key(visit.admin, topic, key, MOST_SHOWN, begin_ms or 0, end_ms or FOREVER_MS)
        return found, []
    except BrokerError as error:
        if error.response_code != ResponseCode.NO_MESSAGE:
            raise
        return [], []


async def _stored_between(
    admin: AdminCalls, topic: str, queues: Sequence[MessageQueue], begin_ms: int | None, end_ms: int | None
) -> tuple[list[MessageExt], list[str]]:
    """Return each queue's first messages from a time on, or its last ones without a time; and the brokers that cannot be
    asked.
    """
    reader = await TopicReader.of(admin, topic)
    problems: dict[str, None] = {}

    async def of_queue(queue: MessageQueue) -> list[MessageExt]:
        first, last = await reader.span(queue, begin_ms, end_ms)
        if begin_ms is None:
            first = max(first, last - MOST_OF_A_QUEUE)
        found: list[MessageExt] = []
        async for result in reader.pulls(queue, first, last):
            found += [one for one in result.messages if one.queue_offset < last]
            if len(found) >= MOST_OF_A_QUEUE:
                break
        return found[:MOST_OF_A_QUEUE]

    async def of_queue_or_none(queue: MessageQueue) -> list[MessageExt]:
        try:
            return await of_queue(queue)
        except (AdminError, RocketMQError) as error:
            problems[f"{queue.broker_name}: {said(error)}"] = None
            return []

    by_queue = await concurrently(of_queue_or_none, queues)
    return [message for found in by_queue for message in found], list(problems)


async def message(visit: Visit) -> Answer:
    """Show a message."""
    found = await _wanted(visit)
    kind = visit.text("view")
    if kind and kind not in VIEWS:
        raise BadInput(f"{kind!r} is not a view of a body.")
    traces, trace_problem = await _traces(visit.admin, found)
    values = {
        "message": found,
        "asked": {"topic": found.topic, "id": found.msg_id},
        "view": body_view(found.body, kind),
        "views": VIEWS,
        "tracks": await _tracks(visit.admin, found),
        "timeline": traces,
        "trace_problem": trace_problem,
    }
    return Page("message.html", values)


async def _wanted(visit: Visit) -> MessageExt:
    topic, message_id = visit.needed("topic", "The topic"), visit.needed("id", "The message's id")
    return await find_message(visit.admin, topic, message_id, None, known_brokers_alone=True)


async def body(visit: Visit) -> Answer:
    """Return the body's bytes."""
    found = await _wanted(visit)
    return Download(f"{found.unique_key or found.msg_id}.bin", "application/octet-stream", found.body)


async def _tracks(admin: AdminCalls, found: MessageExt) -> list[MessageTrack]:
    try:
        return await message_tracks(admin, found)
    except (ProtocolError, RemotingError):
        return []


async def _traces(admin: AdminCalls, found: MessageExt) -> tuple[Timeline | None, str]:
    """Return the traces of clients, or why there are none."""
    message_id = found.unique_key or found.msg_id
    try:
        kept = await messages_of_key(admin, TRACE_TOPIC, message_id, MOST_TRACES, 0, FOREVER_MS)
    except BrokerError as error:
        if error.response_code in (ResponseCode.NO_MESSAGE, ResponseCode.TOPIC_NOT_EXIST):
            return (
                None,
                "No client has traced this message. Enable traces with message_trace=True in producers and consumers.",
            )
        return None, said(error)
    except (ProtocolError, RemotingError) as error:
        return None, said(error)
    try:
        shown = [one for trace in kept for one in traces_of(trace, message_id)]
    except ValueError:
        return None, "A trace of this message cannot be read."
    return timeline(shown), ""

"""Shows dead letters: groups that have some, the newest of a group; sends them again, and exports them."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.dead_letters import dead_letters, fresh, given_up_by, origin_topic
from twisted_mq.admin.dead_letters import resend as resend_all
from twisted_mq.admin.found_messages import find_message
from twisted_mq.admin.message_value import message_line
from twisted_mq.admin.queues import TopicReader
from twisted_mq.admin.sending import started_producer
from twisted_mq.console.answers import Answer, BadInput, Download, NotThere, Page, Redirect
from twisted_mq.console.forms import link
from twisted_mq.console.visit import Visit, cut
from twisted_mq.console.wide import ManyQueues
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX

MOST_SHOWN = 100
"""The newest dead letters of each queue that are shown."""
MOST_RESENT = 1000
"""The most chosen ones that one click sends again."""
MOST_EXPORTED_BYTES = 32 * 1024 * 1024
SENDERS = "mq_console"


@attrs.frozen
class DeadLetters:
    """The number of a group's dead letters; None if it is not added up because they have too many queues."""

    group: str
    messages: int | None = None
    not_resent: int | None = None


async def groups(visit: Visit) -> Answer:
    """Show a page of the groups that have dead letters."""
    every = sorted(topic for topic in await visit.admin.topic_list() if topic.startswith(DLQ_PREFIX))
    shown = cut([topic.removeprefix(DLQ_PREFIX) for topic in every], visit.number("page", "The page", 1, 1))
    rows = await concurrently(lambda name: _state(visit.admin, name), shown.rows)
    return Page("dead_letters.html", {"slice": shown, "rows": rows})


async def _state(admin: AdminCalls, name: str) -> DeadLetters:
    topic = DLQ_PREFIX + name
    if ManyQueues.of({topic: await admin.topic_route(topic)}).are_many:
        return DeadLetters(name)
    state = await given_up_by(admin, name)
    return DeadLetters(name, state.messages, state.not_resent)


async def group(visit: Visit) -> Answer:
    """Show the newest dead letters of a group, those of one page of its queues."""
    name = visit.needed("name", "The group's name")
    topic = DLQ_PREFIX + name
    queues = ManyQueues.of({topic: await visit.admin.topic_route(topic)}, readable=True)
    state = await _state(visit.admin, name)
    page = queues.page(visit.number("page", "The page", 1, 1))
    found = await _newest(queues.reader(visit.admin, topic), page.rows)
    older = state.messages - len(found) if state.messages is not None and page.pages == 1 else 0
    values = {"state": state, "messages": found, "older": older, "origin_topic": origin_topic, "slice": page}
    return Page("dead_letters_of.html", {**values, "dlq_topic": topic})


async def _newest(reader: TopicReader, queues: Iterable[MessageQueue]) -> list[MessageExt]:
    found: list[MessageExt] = []
    for queue in queues:
        first, end = await reader.span(queue, None, None)
        async for result in reader.pulls(queue, max(first, end - MOST_SHOWN), end):
            found += result.messages
    return sorted(found, key=lambda message: -message.store_timestamp)


async def resend(visit: Visit) -> Answer:
    """Send the chosen ones again or, in the background, all that were not sent again yet."""
    name = visit.needed("name", "The group's name")
    if visit.text("which") == "rest":
        state = await _state(visit.admin, name)
        visit.jobs.start(_job(visit, name), state.not_resent or 0, resend_all(visit.admin, name))
        return Redirect(link("/dead-letters/progress", name=name))
    sent = await _resend_chosen(visit.admin, name, visit.every("id"))
    visit.tell(f"{sent} dead letters of {name} were sent again to their original topics.", good=sent > 0)
    return Redirect(link("/dead-letters/group", name=name))


def _job(visit: Visit, group: str) -> str:
    """Return the name of the job that sends a group's dead letters again; each cluster has its own."""
    return f"{visit.session.cluster}/{group}"


async def _resend_chosen(admin: AdminCalls, group: str, ids: list[str]) -> int:
    """Send the chosen ones again; the progress of sending the others stays as it is."""
    if not ids:
        raise BadInput("Choose the dead letters to send again.")
    if len(ids) > MOST_RESENT:
        raise BadInput(f"{MOST_RESENT} dead letters can be sent again at once at most.")
    topic = DLQ_PREFIX + group
    chosen = [await find_message(admin, topic, one, None, known_brokers_alone=True) for one in ids]
    if any(message.topic != topic for message in chosen):
        raise BadInput(f"Not all of these are dead letters of {group}.")
    async with started_producer(admin, SENDERS) as producer:
        for message in chosen:
            await producer.send(fresh(message))
    return len(chosen)


async def progress(visit: Visit) -> Answer:
    """Return the progress of sending a group's dead letters again."""
    name = visit.needed("name", "The group's name")
    job = visit.jobs.find(_job(visit, name))
    if job is None:
        raise NotThere(f"No resend of {name} is running, or the console was restarted.")
    return Page("dead_letters_progress.html", {"job": job, "state": await _state(visit.admin, name)})


async def stop(visit: Visit) -> Answer:
    """Stop sending again; the broker keeps the record of what was sent."""
    name = visit.needed("name", "The group's name")
    job = visit.jobs.find(_job(visit, name))
    if job is not None:
        job.stop()
    return Redirect(link("/dead-letters/progress", name=name))


async def export(visit: Visit) -> Answer:
    """Export all dead letters of a group, one JSON object per line."""
    name = visit.needed("name", "The group's name")
    reader = await TopicReader.of(visit.admin, DLQ_PREFIX + name)
    lines: list[bytes] = []
    total = 0
    async for _, message in dead_letters(visit.admin, reader, name, begin_anew=True):
        lines.append(message_line(message).encode())
        total += len(lines[-1])
        if total > MOST_EXPORTED_BYTES:
            raise BadInput(f"These are more than {MOST_EXPORTED_BYTES >> 20} MiB: use `mq dlq export {name}`.")
    return Download(f"dead-letters-{name}.jsonl", "application/x-ndjson", b"".join(lines))

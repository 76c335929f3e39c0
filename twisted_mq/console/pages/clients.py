"""Shows clients: connected producers, a consumer with its state and stack, and a message handed to a consumer directly."""

from __future__ import annotations

from twisted_mq.admin.found_messages import find_message
from twisted_mq.admin.group_settings import all_masters
from twisted_mq.admin.groups import consumer_connection, is_push_type, running_info
from twisted_mq.admin.producers import producers as all_producers
from twisted_mq.console.answers import Answer, BadInput, Page, Redirect
from twisted_mq.console.forms import link
from twisted_mq.console.visit import Visit, cut
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import ConsumeMessageDirectlyResultRequestHeader
from twisted_mq.protocol.names.versions import version_name

LISTENER_SECONDS = 15.0
"""The time that a listener has for a message that it gets directly."""


async def producers(visit: Visit) -> Answer:
    """Show a page of the connected producers."""
    wanted = visit.text("q").lower()
    every = await all_producers(visit.admin, await all_masters(visit.admin))
    found = [one for one in every if wanted in one.group.lower() or wanted in one.info.client_id.lower()]
    shown = cut(found, visit.number("page", "The page", 1, 1))
    values = {"slice": shown, "q": visit.text("q"), "total": len(every), "version_name": version_name}
    return Page("producers.html", values)


async def consumer(visit: Visit) -> Answer:
    """Show a member of a consumer group, with its stack if asked for."""
    group, client_id = visit.needed("group", "The group's name"), visit.needed("client", "The client's id")
    with_stack = "stack" in visit.fields
    info = await running_info(visit.admin, group, client_id, with_threads=with_stack)
    started = info.properties.get("PROP_CONSUMER_START_TIMESTAMP", "")
    values = {
        "group": group,
        "client_id": client_id,
        "info": info,
        "started_ms": int(started) if started.isascii() and started.isdigit() and len(started) < 15 else None,
        "queues": sorted(info.mq_table.items()),
        "pops": sorted(info.mq_pop_table),
        "with_stack": with_stack,
    }
    return Page("consumer.html", values)


async def consume_directly(visit: Visit) -> Answer:
    """Hand a message to a member of a group, and show the result of its listener."""
    admin, topic = visit.admin, visit.needed("topic", "The topic")
    group = visit.needed("group", "The group's name")
    found = await find_message(admin, topic, visit.needed("id", "The message's id"), None, known_brokers_alone=True)
    client_id = visit.text("client") or await _first_member(visit, group)
    if not is_push_type(await running_info(admin, group, client_id)):
        raise BadInput(f"{client_id} pulls messages itself: only a consumer with a listener can receive one.")
    header = ConsumeMessageDirectlyResultRequestHeader(
        consumer_group=group, client_id=client_id, topic=topic, msg_id=found.msg_id
    )
    answer = await admin.invoke(
        found.store_host, RequestCode.CONSUME_MESSAGE_DIRECTLY, header, timeout_seconds=LISTENER_SECONDS
    )
    result = decode_body(ConsumeMessageDirectlyResult, answer.body)
    said = f" and said: {result.remark}" if result.remark else ""
    visit.tell(
        f"{client_id} answered {result.consume_result} after {result.spent_time_mills} ms{said}.",
        good=result.consume_result in ("CR_SUCCESS", "CR_COMMIT"),
    )
    return Redirect(link("/message", topic=topic, id=found.msg_id))


async def _first_member(visit: Visit, group: str) -> str:
    """Return a connected member. Raises BrokerError if none is connected."""
    return (await consumer_connection(visit.admin, group)).connection_set[0].client_id

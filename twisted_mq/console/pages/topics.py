"""Shows topics: the list, a topic's route, status and settings; changes topics, and sends a test message."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.group_settings import all_masters, masters_among
from twisted_mq.admin.groups import addresses_of
from twisted_mq.admin.sending import send_once
from twisted_mq.admin.statistics import Counted, counted
from twisted_mq.admin.topics import (
    TopicKind,
    brokers_own_topics,
    changed,
    kind_of,
    masters_of,
    own_topics_of,
    put_topic,
    topic_config,
)
from twisted_mq.client.producing.send_result import SendStatus
from twisted_mq.console.answers import Answer, BadInput, Page, Redirect
from twisted_mq.console.forms import link, said
from twisted_mq.console.visit import ListPage, Visit, cut
from twisted_mq.console.wide import ManyQueues, offset_of
from twisted_mq.protocol.bodies import MessageQueue, TopicConfig, TopicOffset, TopicRouteData
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.flags import perm_text
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.names.validation import topic_fault
from twisted_mq.remoting.errors import RemotingError

PERMISSIONS = {6: "read and write", 4: "read only", 2: "write only"}
TYPES = {
    "": "any, as before 5.0",
    "NORMAL": "normal",
    "FIFO": "in order",
    "DELAY": "timed",
    "TRANSACTION": "transactional",
    "PRIORITY": "by priority",
    "MIXED": "mixed",
}
"""The attribute message.type."""
MOST_QUEUES = 1024
MOST_BODY_BYTES = 256 * 1024
SENDERS = "mq_console"
"""The producer group of test messages."""


@attrs.frozen
class TopicRow:
    """A topic in the list; without a route if it has none any more."""

    name: str
    kind: TopicKind
    route: TopicRouteData | None = None
    problem: str | None = None

    @property
    def brokers(self) -> list[str]:
        return sorted(one.broker_name for one in self.route.broker_datas or ()) if self.route else []

    @property
    def reads(self) -> int | None:
        return sum(one.read_queue_nums for one in self.route.queue_datas or ()) if self.route else None

    @property
    def writes(self) -> int | None:
        return sum(one.write_queue_nums for one in self.route.queue_datas or ()) if self.route else None

    @property
    def perms(self) -> str:
        found = sorted({perm_text(one.perm) for one in self.route.queue_datas or ()}) if self.route else []
        return ", ".join(found)


async def topics(visit: Visit) -> Answer:
    """Show a page of the list: topics of one kind whose names contain a text."""
    cluster = await visit.admin.cluster_info()
    own = own_topics_of(cluster)
    wanted, kind = visit.text("q").lower(), visit.text("kind", TopicKind.NORMAL)
    if kind not in (*TopicKind, "all"):
        raise BadInput(f"{kind!r} is not a kind of topics.")
    every = await visit.admin.topic_list()
    names = sorted(name for name in every if wanted in name.lower() and (kind == "all" or kind_of(name, own) == kind))
    shown = cut(names, visit.number("page", "The page", 1, 1))
    rows = await concurrently(lambda name: _row(visit.admin, name, kind_of(name, own)), shown.rows)
    values = {"slice": shown, "rows": rows, "q": visit.text("q"), "kind": kind, "kinds": ["all", *TopicKind]}
    more = {"permissions": PERMISSIONS, "types": TYPES, "masters": list(masters_among(cluster))}
    return Page("topics.html", {**values, "total": len(every), **more})


async def _row(admin: AdminCalls, name: str, kind: TopicKind) -> TopicRow:
    try:
        return TopicRow(name, kind, await admin.topic_route(name))
    except (ProtocolError, RemotingError) as error:
        return TopicRow(name, kind, problem=said(error))


@attrs.frozen
class QueueRow:
    """A queue of a topic."""

    queue: MessageQueue
    offset: TopicOffset

    @property
    def messages(self) -> int:
        return self.offset.max_offset - self.offset.min_offset


@attrs.frozen
class TopicAtBroker:
    """A topic at one broker; if the broker cannot report it, `config` is None and `problem` says why."""

    broker_name: str
    address: str
    config: TopicConfig | None = None
    problem: str | None = None


async def topic(visit: Visit) -> Answer:
    """Show a topic."""
    admin, name = visit.admin, visit.needed("name", "The topic's name")
    route = await admin.topic_route(name)
    number = visit.number("page", "The page", 1, 1)
    every = ManyQueues.of({name: route})
    if every.are_many:
        shown, problems = await _shown_queues(admin, every, number)
        messages = None
    else:
        queues, problems = await _queues(admin, name, route)
        shown = cut(queues, number)
        messages = sum(row.messages for row in queues) if not problems else None
    settings = await concurrently(lambda one: _at_broker(admin, name, *one), masters_of(route).items())
    values = {
        "name": name,
        "kind": kind_of(name, await brokers_own_topics(admin)),
        "route": route,
        "slice": shown,
        "messages": messages,
        "problems": problems,
        "settings": settings,
        "first": next((one.config for one in settings if one.config is not None), None),
        "groups": await _groups(admin, name, route),
        "sent": await _sent(admin, name, route),
        "permissions": PERMISSIONS,
        "perm_text": perm_text,
    }
    return Page("topic.html", values)


async def _queues(admin: AdminCalls, name: str, route: TopicRouteData) -> tuple[list[QueueRow], list[str]]:
    """Return the state of the queues, and the brokers that do not report it."""
    found: list[QueueRow] = []
    problems: list[str] = []
    for address in addresses_of(route):
        try:
            table = (await admin.topic_stats(address, name)).offset_table
        except (ProtocolError, RemotingError) as error:
            problems.append(f"{address}: {said(error)}")
            continue
        found += [QueueRow(queue, offset) for queue, offset in table.items()]
    return sorted(found, key=lambda row: row.queue), problems


async def _shown_queues(admin: AdminCalls, every: ManyQueues, number: int) -> tuple[ListPage[QueueRow], list[str]]:
    """Return the same for the queues of one page."""
    page = every.page(number)
    problems: dict[str, None] = {}

    async def row(queue: MessageQueue) -> QueueRow | None:
        try:
            return QueueRow(queue, await offset_of(every.reader(admin, queue.topic), queue))
        except (AdminError, ProtocolError, RemotingError) as error:
            problems[f"{queue.broker_name}: {said(error)}"] = None
            return None

    rows = [one for one in await concurrently(row, page.rows) if one is not None]
    return ListPage(rows, page.number, page.pages, page.total), list(problems)


async def _at_broker(admin: AdminCalls, name: str, broker_name: str, address: str) -> TopicAtBroker:
    try:
        return TopicAtBroker(broker_name, address, await topic_config(admin, address, name))
    except (ProtocolError, RemotingError) as error:
        return TopicAtBroker(broker_name, address, problem=said(error))


async def _groups(admin: AdminCalls, name: str, route: TopicRouteData) -> list[str] | None:
    """Return the groups that consume it at any broker; None if no broker can say."""
    found: set[str] = set()
    answered = False
    for address in addresses_of(route):
        try:
            found.update(await admin.consumer_groups(address, name))
            answered = True
        except (ProtocolError, RemotingError):
            continue
    return sorted(found) if answered else None


async def _sent(admin: AdminCalls, name: str, route: TopicRouteData) -> Counted | None:
    try:
        return await counted(admin, route, "TOPIC_PUT_NUMS", name)
    except (ProtocolError, RemotingError):
        return None


# changes


def _numbers(visit: Visit) -> tuple[int, int, int]:
    """Return read queues, write queues and permission of a form. Raises BadInput."""
    reads = visit.number("read_queues", "Read queues", 8, 1, MOST_QUEUES)
    writes = visit.number("write_queues", "Write queues", 8, 1, MOST_QUEUES)
    perm = visit.number("perm", "The permission", 6)
    if perm not in PERMISSIONS:
        raise BadInput("The permission must be to read, to write, or both.")
    return reads, writes, perm


async def create(visit: Visit) -> Answer:
    """Create a topic, at the chosen masters or at all."""
    name = visit.needed("name", "The topic's name")
    fault = topic_fault(name)
    if fault:
        raise BadInput(fault)
    if name in await visit.admin.topic_list():
        raise BadInput(f"Topic {name} already exists: change it on its page.")
    reads, writes, perm = _numbers(visit)
    kind, order = visit.text("type"), "order" in visit.fields
    if kind not in TYPES:
        raise BadInput(f"{kind!r} is not a message type.")
    masters = await _chosen_masters(visit)
    attributes = {"+message.type": kind} if kind else {}
    for address in masters.values():
        await put_topic(visit.admin, address, TopicConfig(name, reads, writes, perm, order=order), attributes)
    if order:  # queues of a broker that is away do not move to others
        await visit.admin.put_order_setting(name, ";".join(f"{broker}:{writes}" for broker in masters))
    visit.tell(f"Topic {name} is created at {len(masters)} brokers; its route will follow soon.")
    return Redirect(link("/topics", q=name))


async def _chosen_masters(visit: Visit) -> dict[str, str]:
    """Return broker name -> address of the masters that a form names; all if it names none. Raises BadInput."""
    masters, chosen = await all_masters(visit.admin), visit.every("broker")
    if not masters:
        raise BadInput("No master is running to create the topic.")
    unknown = [name for name in chosen if name not in masters]
    if unknown:
        raise BadInput(f"No master of {', '.join(unknown)} is running.")
    return {name: address for name, address in masters.items() if not chosen or name in chosen}


async def change(visit: Visit) -> Answer:
    """Change numbers of queues and permission, at all masters of the topic."""
    name = visit.needed("name", "The topic's name")
    reads, writes, perm = _numbers(visit)
    masters = masters_of(await visit.admin.topic_route(name))
    for address in masters.values():
        config = await topic_config(visit.admin, address, name)
        await put_topic(visit.admin, address, changed(config, reads, writes, perm))
    visit.tell(f"Topic {name} is changed at {len(masters)} brokers.")
    return Redirect(link("/topic", name=name))


async def delete(visit: Visit) -> Answer:
    """Delete the topic at all its brokers and at the name servers; the user has to type its name."""
    admin, name = visit.admin, visit.needed("name", "The topic's name")
    if visit.text("typed") != name:
        raise BadInput(f"Type the name {name} to delete it.")
    if kind_of(name, await brokers_own_topics(admin)) == TopicKind.SYSTEM:
        raise BadInput("System topics cannot be deleted.")
    route = await admin.topic_route(name)
    for broker in route.broker_datas or ():
        for address in (broker.broker_addrs or {}).values():
            await admin.delete_topic(address, name)
    for cluster_name in sorted({broker.cluster for broker in route.broker_datas or ()}):
        for name_server in admin.name_servers:
            await admin.delete_route(name_server, cluster_name, name)
    visit.tell(f"Topic {name} is deleted.")
    return Redirect("/topics")


async def send(visit: Visit) -> Answer:
    """Send one message, as it was typed."""
    name, body = visit.needed("name", "The topic's name"), visit.whole("body").encode("utf-8", "replace")
    if len(body) > MOST_BODY_BYTES:
        raise BadInput(f"The body has {len(body)} bytes; the limit of this page is {MOST_BODY_BYTES}.")
    message = Message.make(name, body, visit.text("tags") or None, visit.text("keys") or None, _properties(visit))
    delay_level = visit.number("delay_level", "The delay level", 0, 0, 18)
    if delay_level:
        message.delay_time_level = delay_level
    result = await send_once(visit.admin, message, SENDERS)
    visit.tell(
        f"{result.status.name}: {result.msg_id} is in queue {result.queue.queue_id} of {result.queue.broker_name}.",
        good=result.status == SendStatus.SEND_OK,
        link=None if delay_level else link("/message", topic=name, id=result.offset_msg_id),
    )
    return Redirect(link("/topic", name=name))


def _properties(visit: Visit) -> dict[str, str]:
    """Return the lines name=value of a form as properties. Raises BadInput for other lines."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, visit.whole("properties").splitlines())):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"Properties must be lines of the form name=value, got {line!r}.")
        found[key.strip()] = value.strip()
    return found

"""Implements `mqadmin consumerProgress` (Apache: ConsumerProgressSubCommand): how far groups are behind."""

from __future__ import annotations

import contextlib
import datetime

from twisted_mq.admin.groups import (
    PUSHES,
    consume_stats,
    consumer_connection,
    group_of,
    running_info,
    total_lag,
)
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import date_text, fixed
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.cli.output import progress
from twisted_mq.protocol.bodies import ConsumerConnection, ConsumeStats, MessageQueue, OffsetWrapper
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.names.versions import version_name
from twisted_mq.remoting.errors import RemotingError

_KEYS = ("topic", "broker", "queueId", "brokerOffset", "consumerOffset")
_HEADS = ("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset")
_FIRST = "{:<64}  {:<32}  {:<4}  {:<20}  {:<20}  "
_CUT = "{:<64.64}  {:<32.32}  {:<4}  {:<20}  {:<20}  "
QUEUES = TextTable(
    (_FIRST + "{:<20} {:<20}{}").format(*_HEADS, "#Diff", "#Inflight", "#LastTime"),
    _CUT + "{:<20} {:<20} {}",
    (*_KEYS, "diff", "inflight", "lastTime"),
)
QUEUES_WITH_CLIENTS = TextTable(
    (_FIRST + "{:<20} {:<20} {:<20}{}").format(*_HEADS, "#Client IP", "#Diff", "#Inflight", "#LastTime"),
    _CUT + "{:<20} {:<20} {:<20} {}",
    (*_KEYS, "clientIp", "diff", "inflight", "lastTime"),
)
GROUPS = TextTable.of(
    "{:<64.64}  {:<6}  {:<24} {:<5}  {:<14}  {:<7}  {}",
    group="#Group",
    count="#Count",
    version="#Version",
    type="#Type",
    model="#Model",
    tps="#TPS",
    diffTotal="#Diff Total",
)


async def consumer_progress(admin: AdminContext, line: CommandLine) -> None:
    if "g" in line:
        await _one_group(admin, line)
    else:
        await _all_groups(admin)


async def _one_group(admin: AdminContext, line: CommandLine) -> None:
    group = line.value("g")
    stats = await consume_stats(admin, group, line.value("t") or None, line.value("c") or None)
    clients = await _queue_clients(admin, group) if line.is_true("s") else None
    table = QUEUES if clients is None else QUEUES_WITH_CLIENTS
    admin.say(table.head)
    for queue in sorted(stats.offset_table):
        admin.row(table, *queue_row(queue, stats.offset_table[queue], clients))
    _sums(admin, stats)


def queue_row(
    queue: MessageQueue,
    offset: OffsetWrapper,
    clients: dict[MessageQueue, str] | None = None,
    zone: datetime.tzinfo | None = None,
) -> list[str | int]:
    """Return a queue's row under QUEUES, or with its client under QUEUES_WITH_CLIENTS."""
    last = date_text(offset.last_timestamp, zone) if offset.last_timestamp else "N/A"
    return [
        queue.topic,
        queue.broker_name,
        queue.queue_id,
        offset.broker_offset,
        offset.consumer_offset,
        *([] if clients is None else [clients.get(queue, "N/A")]),
        offset.broker_offset - offset.consumer_offset,
        offset.pull_offset - offset.consumer_offset,
        last,
    ]


def _sums(admin: AdminContext, stats: ConsumeStats) -> None:
    inflight = sum(offset.pull_offset - offset.consumer_offset for offset in stats.offset_table.values())
    admin.say("")
    admin.say(f"Consume TPS: {fixed(stats.consume_tps, 2)}", consumeTps=stats.consume_tps)
    admin.say(f"Consume Diff Total: {total_lag(stats)}", diffTotal=total_lag(stats))
    admin.say(f"Consume Inflight Total: {inflight}", inflightTotal=inflight)


async def _queue_clients(admin: AdminContext, group: str) -> dict[MessageQueue, str]:
    """Return the address of each queue's client; unknown ones are left out."""
    held: dict[MessageQueue, str] = {}
    try:
        for connection in (await consumer_connection(admin, group)).connection_set:
            info = await running_info(admin, group, connection.client_id)
            held.update(dict.fromkeys(info.mq_table, connection.client_id.split("@")[0]))
    except (ProtocolError, RemotingError) as error:
        admin.warn(f"owners of queues are not known: {error}")
    return held


async def _all_groups(admin: AdminContext) -> None:
    admin.say(GROUPS.head)
    groups = [group_of(topic) for topic in await admin.topic_list() if topic.startswith(RETRY_PREFIX)]
    with progress("groups", len(groups), hidden=len(groups) < 10) as advance:
        for group in groups:
            admin.row(GROUPS, *await _group_row(admin, group))
            advance(1)


async def _group_row(admin: AdminContext, group: str) -> list[str | int]:
    """Return a group's row under GROUPS; unknown values are shown as Apache's tool does, as zero or OFFLINE."""
    stats, connection = ConsumeStats(), ConsumerConnection()
    with contextlib.suppress(ProtocolError, RemotingError):
        stats = await consume_stats(admin, group)
    with contextlib.suppress(ProtocolError, RemotingError):
        connection = await consumer_connection(admin, group)
    members = connection.connection_set
    pushes = bool(members) and connection.consume_type == PUSHES
    return [
        group,
        len(members),
        version_name(min(one.version for one in members)) if members else "OFFLINE",
        ("PULL" if connection.consume_type == "CONSUME_ACTIVELY" else "PUSH") if members else "",
        (connection.message_model or "null") if pushes else "",
        int(stats.consume_tps),
        total_lag(stats),
    ]
